// A Waku node for interop tests, on the go-waku library. What it adds to stock go-waku is what
// js-waku and nwaku's clients need: the mplex muxer, metadata with the shards in both fields, Store
// v3 and light push v3 servers, and one long-lived filter push stream a js-waku peer. What it leaves
// out is what tests do not want: rate limits, NTP, NAT and DNS.
//
// With -gateway it is a participant's own node instead: it serves REST alone and reaches the
// network through the service node it is given, by relay or as an edge node without relay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/libp2p/go-libp2p"
	mplex "github.com/libp2p/go-libp2p-mplex"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/waku-org/go-waku/cmd/waku/server/rest"
	"github.com/waku-org/go-waku/waku/v2/node"
	"github.com/waku-org/go-waku/waku/v2/peerstore"
	"github.com/waku-org/go-waku/waku/v2/protocol"
	"github.com/waku-org/go-waku/waku/v2/protocol/filter"
	"github.com/waku-org/go-waku/waku/v2/protocol/lightpush"
	"github.com/waku-org/go-waku/waku/v2/protocol/relay"
)

const (
	tcpPort    = 60000
	wsPort     = 60001
	restPort   = 8645
	maxMessage = 150 * 1024
	maxPeers   = 200
	redial     = 500 * time.Millisecond
	muxerOfJS  = "/mplex/6.7.0" // js-waku brings no other by default, go-waku never chooses it
)

type settings struct {
	key, address string
	network      shards
	store        string
	service      multiaddr.Multiaddr // nil: this is a service node
	relay        bool
	relayCache   uint
	filterCache  uint
}

func main() {
	s := settings{network: ofAutosharding}
	flag.Func("shards", "CLUSTER:SHARD,SHARD,… (default 1:0,1,2,3,4,5,6,7)", s.network.parse)
	flag.StringVar(&s.key, "nodekey", "", "32 bytes in hex; makes the peer id")
	flag.StringVar(&s.address, "address", "127.0.0.1", "IPv4 address to listen on and to tell")
	flag.StringVar(&s.store, "store", "memory", "Store v3: a file, memory or none")
	gateway := flag.String("gateway", "", "multiaddr of a service node: serve REST alone, and use that")
	flag.BoolVar(&s.relay, "relay", true, "false with -gateway: light push and filter instead")
	flag.UintVar(&s.relayCache, "relay-cache", 1000, "messages that REST keeps for a relay topic")
	flag.UintVar(&s.filterCache, "filter-cache", 1000, "messages that REST keeps for a filter topic")
	flag.Parse()
	if *gateway != "" {
		s.service = multiaddr.StringCast(*gateway)
	}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	quiet := zap.NewProductionConfig()
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	log, err := quiet.Build()
	if err != nil {
		return err
	}
	options, err := s.options(log)
	if err != nil {
		return err
	}
	waku, err := node.New(options...)
	if err != nil {
		return err
	}
	if err := waku.Start(ctx); err != nil {
		return err
	}
	if s.service == nil {
		if err := serve(ctx, waku, s.network, s.store, log); err != nil {
			return err
		}
	} else if err := join(ctx, waku, s.network, s.service); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Add(1)
	rest.NewWakuRest(waku, rest.RestConfig{
		Address: s.address, Port: restPort,
		RelayCacheCapacity: s.relayCache, FilterCacheCapacity: s.filterCache,
	}, log).Start(ctx, &running)
	go hearOfClosing(ctx, waku.FilterLightnode())
	fmt.Println(`{"event":"ready"}`)
	<-ctx.Done()
	return nil
}

// hearOfClosing reads what go-waku's REST server leaves unread: a subscription that is told, with its
// lock held, that it is closing waits for a reader, and each push that comes later waits for the lock.
func hearOfClosing(ctx context.Context, client *filter.WakuFilterLightNode) {
	known := map[string]bool{}
	for ctx.Err() == nil {
		for _, subscription := range client.Subscriptions() {
			if !known[subscription.ID] {
				known[subscription.ID] = true
				go func() { <-subscription.Closing }()
			}
		}
		time.Sleep(redial)
	}
}

func (s settings) options(log *zap.Logger) ([]node.WakuNodeOption, error) {
	key, err := crypto.GenerateKey()
	if s.key != "" {
		key, err = crypto.HexToECDSA(s.key)
	}
	if err != nil {
		return nil, err
	}
	ip := net.ParseIP(s.address)
	if ip == nil {
		return nil, fmt.Errorf("-address %q is no IP address", s.address)
	}
	tell := func(format string, port int) multiaddr.Multiaddr {
		return multiaddr.StringCast(fmt.Sprintf(format, s.address, port))
	}
	options := []node.WakuNodeOption{
		node.WithLogger(log), node.WithLogLevel(zap.ErrorLevel), node.WithPrivateKey(key),
		node.WithPrometheusRegisterer(prometheus.NewRegistry()),
		node.WithHostAddress(&net.TCPAddr{IP: ip, Port: tcpPort}),
		node.WithAdvertiseAddresses(tell("/ip4/%s/tcp/%d", tcpPort), tell("/ip4/%s/tcp/%d/ws", wsPort)),
		node.WithWebsockets(s.address, wsPort),
		node.WithClusterID(s.network.cluster), node.WithShards(s.network.indices),
		node.WithMaxConnectionsPerIP(0), node.WithMaxPeerConnections(maxPeers),
		// Without a capacity a node without relay divides by zero after ten minutes.
		node.WithPeerStoreCapacity(maxPeers),
		node.WithMaxMsgSize(maxMessage), node.WithKeepAlive(10*time.Second, time.Minute),
		node.WithWakuFilterLightNode(),
		node.WithLibP2POptions(
			libp2p.Transport(tcp.NewTCPTransport),
			libp2p.Muxer("/yamux/1.0.0", yamux.DefaultTransport),
			libp2p.Muxer(muxerOfJS, mplex.DefaultTransport),
		),
	}
	if s.relay {
		options = append(options, node.WithWakuRelayAndMinPeers(0))
	}
	if s.service == nil {
		options = append(options, node.WithLightPush(lightpush.WithRateLimiter(rate.Inf, 0)))
	}
	return options, nil
}

// serve makes a service node of it.
func serve(ctx context.Context, waku *node.WakuNode, in shards, store string, log *zap.Logger) error {
	for _, topic := range in.topics() {
		filter := protocol.NewContentFilter(topic)
		if _, err := waku.Relay().Subscribe(ctx, filter, relay.WithoutConsumer()); err != nil {
			return err
		}
	}
	serveMetadata(ctx, waku.Host(), in)
	serveLightPush(waku)
	if store != "none" {
		archive, err := openArchive(store)
		if err != nil {
			return err
		}
		serveStore(waku, archive)
	}
	// A timeout of 0, as go-waku drops the subscriptions that are younger than it, once a minute.
	pusher := filter.NewWakuFilterFullNode(nil, prometheus.NewRegistry(), log,
		filter.WithTimeout(0), filter.WithFullNodeRateLimiter(rate.Inf, 0))
	pusher.SetHost(newPushHost(waku.Host()))
	if err := pusher.Start(ctx, waku.Broadcaster().RegisterForAll(relay.WithBufferSize(1024))); err != nil {
		return err
	}
	return hangUp(waku.Host())
}

// hangUp ends the connections that came before all was served, as go-waku listens first: js-waku looks
// once, on identify, at what a node serves, and would hear nothing by filter on such a connection.
func hangUp(host host.Host) error {
	for _, connection := range host.Network().Conns() {
		if err := connection.Close(); err != nil {
			return err
		}
	}
	return nil
}

// join makes a gateway of it, which stays connected to its service node: go-waku dials once.
func join(ctx context.Context, waku *node.WakuNode, in shards, service multiaddr.Multiaddr) error {
	info, err := peer.AddrInfoFromP2pAddr(service)
	if err != nil {
		return err
	}
	introduce := func() error {
		_, err := waku.AddPeer([]multiaddr.Multiaddr{service}, peerstore.Static, in.topics(),
			relay.WakuRelayID_v200, filter.FilterSubscribeID_v20beta1, lightpush.LightPushID_v20beta1, storeID)
		return err
	}
	if err := introduce(); err != nil {
		return err
	}
	dial := func() error {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return waku.Host().Connect(network.WithForceDirectDial(attempt, "gateway"), *info)
	}
	for try := 0; dial() != nil; try++ {
		if try == 20 {
			return errors.New("the service node does not answer")
		}
		time.Sleep(redial)
	}
	go func() {
		for ctx.Err() == nil {
			if waku.Host().Network().Connectedness(info.ID) != network.Connected {
				_ = dial()
			}
			_ = introduce() // go-waku forgets a peer, static or not, whose metadata it could not get once
			time.Sleep(redial)
		}
	}()
	return nil
}
