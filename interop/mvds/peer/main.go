// A node of the 2/MVDS reference, driven by JSON lines: commands on stdin, what happens on stdout.
//
// v0.0.23 is the last tag of the reference whose field numbers are those of the specification.
package main

import (
	"flag"
	"log"
	"os"
	"time"

	"github.com/vacp2p/mvds/node"
	"github.com/vacp2p/mvds/peers"
	"github.com/vacp2p/mvds/state"
	"github.com/vacp2p/mvds/store"
	"go.uber.org/zap"
)

var modes = map[string]node.Mode{"batch": node.BATCH, "interactive": node.INTERACTIVE}

func main() {
	log.SetFlags(0)
	id := flag.String("id", "", "this peer's id, in hex; at most 65 bytes, filled up with zeros")
	mode := flag.String("mode", "batch", "batch or interactive")
	epoch := flag.Duration("epoch", 50*time.Millisecond, "how long an epoch is")
	resend := flag.Int64("resend", 4, "epochs after which a record is sent again")
	flag.Parse()

	var self state.PeerID
	if err := fill(self[:], *id); err != nil {
		log.Fatalf("-id: %v", err)
	}
	chosen, known := modes[*mode]
	if !known {
		log.Fatalf("-mode %q: it is batch or interactive", *mode)
	}

	lines := newLines(os.Stdin, os.Stdout)
	link := &link{lines: lines, arrived: make(chan packet)}
	messages, records := store.NewDummyStore(), state.NewSyncState()
	// The reference adds what this function returns to the send epoch, rather than taking it for one.
	nextEpoch := func(uint64, int64) int64 { return *resend }
	n := node.NewNode(messages, link, records, nextEpoch, 0, self, chosen, peers.NewMemoryPersistence(), zap.NewNop())

	received := n.Subscribe()
	go func() {
		for message := range received {
			id := message.ID()
			lines.write(line{"event": "message", "id": hex(id[:]), "group": hex(message.GroupId), "timestamp": message.Timestamp, "body": hex(message.Body)})
		}
	}()
	driver := &driver{node: n, link: link, messages: messages, records: records, epoch: *epoch}
	lines.write(line{"event": "ready"})
	lines.serve(driver.run)
}
