package main

import (
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/named-data/ndnd/fw/core"
	"github.com/named-data/ndnd/fw/defn"
	"github.com/named-data/ndnd/fw/dispatch"
	"github.com/named-data/ndnd/fw/face"
	"github.com/named-data/ndnd/fw/fw"
	"github.com/named-data/ndnd/fw/mgmt"
	"github.com/named-data/ndnd/fw/table"
	enc "github.com/named-data/ndnd/std/encoding"
)

// runForwarder starts ndnd's own threads one by one: the stock daemon (v1.5.3) opens UDP on every
// interface whatever its configuration says, and a test must not listen to the network.
func runForwarder(arguments []string) {
	flags := flag.NewFlagSet("forwarder", flag.ExitOnError)
	socket := flags.String("unix", "", "path of the unix socket")
	port := flags.Uint("tcp", 0, "TCP port on 127.0.0.1; 0: none")
	multicast := flags.String("multicast", "", "prefix whose Interests go to everybody")
	flags.Parse(arguments)

	configuration := core.DefaultConfig()
	configuration.Core.LogLevel = "WARN"
	configuration.Fw.Threads = 1
	configuration.Tables.Rib.ReadvertiseNlsr = false
	core.C, core.StartTimestamp = configuration, time.Now()
	core.OpenLogger()
	face.Initialize()
	table.Initialize()
	face.MakeNullLinkService(face.MakeNullTransport()).Run(nil)
	go mgmt.MakeMgmtThread().Run()
	fw.Threads = []*fw.Thread{fw.NewThread(0)}
	go fw.Threads[0].Run()
	dispatch.InitializeFWThreads([]dispatch.FWThread{fw.Threads[0]})
	if *multicast != "" {
		strategy := mustName("/localhost/nfd/strategy/multicast").Append(enc.NewVersionComponent(1))
		table.FibStrategyTable.SetStrategyEnc(mustName(*multicast), strategy)
	}
	if *socket != "" {
		listener, err := face.MakeUnixStreamListener(defn.MakeUnixFaceURI(*socket))
		fatal(err)
		go listener.Run()
	}
	if *port != 0 {
		listener, err := face.MakeTCPListener(defn.MakeTCPFaceURI(4, "127.0.0.1", uint16(*port)))
		fatal(err)
		go listener.Run()
	}
	emit(map[string]any{"event": "forwarder"})
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	if *socket != "" {
		os.Remove(*socket)
	}
}
