package main

// Minimal reproductions of go-waku v0.10.1's defects (docs/interop.md): each passes while the defect
// is there. `go test -tags "gowaku_no_rln" .` takes two minutes, as some wait for timers.

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/waku-org/go-waku/waku/v2/node"
	"github.com/waku-org/go-waku/waku/v2/protocol"
	"github.com/waku-org/go-waku/waku/v2/protocol/filter"
	filterpb "github.com/waku-org/go-waku/waku/v2/protocol/filter/pb"
	"github.com/waku-org/go-waku/waku/v2/protocol/metadata/pb"
	"github.com/waku-org/go-waku/waku/v2/protocol/relay"
)

func TestTheFilterTimeoutDropsTheYoungerSubscriptions(t *testing.T) {
	const topic, who = "/waku/2/rs/1/0", peer.ID("subscriber")
	subscribers := filter.NewSubscribersMap(time.Hour)
	subscribers.Start(t.Context())
	subscribers.Set(who, topic, []string{"/a/1/b/proto"})
	time.Sleep(65 * time.Second) // the map is looked through once a minute
	if subscribers.Has(who) {
		t.Fatal("a subscription of a minute outlives a timeout of an hour: the defect is gone")
	}
}

func TestMetadataLacksTheFieldThatJSReads(t *testing.T) {
	waku := started(t)
	client := clientOf(t, waku.Host())
	stream, err := client.NewStream(t.Context(), waku.Host().ID(), metadataID)
	if err != nil {
		t.Fatal(err)
	}
	answer := &pb.WakuMetadataResponse{}
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(&pb.WakuMetadataRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := pbio.NewDelimitedReader(stream, maxMetadata).ReadMsg(answer); err != nil {
		t.Fatal(err)
	}
	// js-waku reads field 2, which go-waku calls deprecated and leaves empty.
	if len(answer.Shards) != len(ofAutosharding.indices) || len(answer.ShardsDeprecated) != 0 {
		t.Fatalf("field 3 %v, field 2 %v: the defect is gone", answer.Shards, answer.ShardsDeprecated)
	}
}

func TestARefusedFilterRequestIsLeftOpen(t *testing.T) {
	server, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	full := filter.NewWakuFilterFullNode(nil, prometheus.NewRegistry(), zap.NewNop())
	full.SetHost(server)
	if err := full.Start(t.Context(), relay.NewSubscription(protocol.NewContentFilter(""))); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, server)
	ping := func() (*filterpb.FilterSubscribeResponse, network.Stream) {
		stream, err := client.NewStream(t.Context(), server.ID(), filter.FilterSubscribeID_v20beta1)
		if err != nil {
			t.Fatal(err)
		}
		request := &filterpb.FilterSubscribeRequest{
			RequestId:           "ping",
			FilterSubscribeType: filterpb.FilterSubscribeRequest_SUBSCRIBER_PING,
		}
		answer := &filterpb.FilterSubscribeResponse{}
		if err := pbio.NewDelimitedWriter(stream).WriteMsg(request); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseWrite()
		if err := pbio.NewDelimitedReader(stream, maxMetadata).ReadMsg(answer); err != nil {
			t.Fatal(err)
		}
		return answer, stream
	}
	ping()
	refused, stream := ping() // in the same second
	if refused.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("status %d: the second request of a second is not refused", refused.StatusCode)
	}
	_ = stream.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := stream.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		t.Fatal("the refused stream is closed after its answer: the defect is gone")
	}
}

func TestAPeerThatComesBackIsHungUpOn(t *testing.T) {
	waku := started(t)
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	line := lineTo(t, waku.Host())
	before := connected(t, key, peer.AddrInfo{ID: waku.Host().ID(), Addrs: []multiaddr.Multiaddr{line.address}})
	for range 3 { // of two connections libp2p takes the one with more streams
		stream, err := before.NewStream(t.Context(), waku.Host().ID(), metadataID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Write([]byte{9}); err != nil { // the length of a request that never comes
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	line.isCut.Store(true)
	after := connected(t, key, peer.AddrInfo{ID: waku.Host().ID(), Addrs: waku.Host().Addrs()})
	// go-waku asks each new connection for metadata, but by whichever connection of that peer, and
	// when no answer comes it closes them all: with mplex after 10 s, here when yamux notices.
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if len(after.Network().ConnsToPeer(waku.Host().ID())) == 0 {
			return
		}
	}
	t.Fatal("the new connection is open: the defect is gone")
}

// line is a TCP connection that can be cut silently.
type line struct {
	address multiaddr.Multiaddr
	isCut   atomic.Bool
}

func lineTo(t *testing.T, server host.Host) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address, err := manet.FromNetAddr(listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	made := &line{address: address}
	_, target, err := manet.DialArgs(tcpAddress(t, server))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", target)
			if err != nil {
				return
			}
			go made.carry(here, there)
			go made.carry(there, here)
		}
	}()
	return made
}

func (l *line) carry(from, to net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !l.isCut.Load() {
			_, _ = to.Write(buffer[:n])
		}
	}
}

func tcpAddress(t *testing.T, server host.Host) multiaddr.Multiaddr {
	t.Helper()
	for _, address := range server.Addrs() {
		if network, _, err := manet.DialArgs(address); err == nil && network == "tcp4" {
			return address
		}
	}
	t.Fatalf("no TCP among %v", server.Addrs())
	return nil
}

func started(t *testing.T) *node.WakuNode {
	t.Helper()
	waku, err := node.New(node.WithClusterID(ofAutosharding.cluster), node.WithShards(ofAutosharding.indices))
	if err != nil {
		t.Fatal(err)
	}
	if err := waku.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(waku.Stop)
	return waku
}

// connected answers requests for metadata, as go-waku hangs up on all others.
func connected(t *testing.T, key crypto.PrivKey, server peer.AddrInfo) host.Host {
	t.Helper()
	client, err := libp2p.New(libp2p.NoListenAddrs, libp2p.Identity(key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	serveMetadata(t.Context(), client, ofAutosharding)
	if err := client.Connect(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	return client
}

func clientOf(t *testing.T, server host.Host) host.Host {
	t.Helper()
	client, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	info := peer.AddrInfo{ID: server.ID(), Addrs: server.Addrs()}
	if err := client.Connect(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	return client
}
