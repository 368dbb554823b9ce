package main

// Minimal reproductions of go-waku v0.10.1's defects (docs/interop.md): each passes while the defect
// is there. `go test -tags "gowaku_no_rln" .` takes a minute, as one of them waits for a timer.

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
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
	waku, err := node.New(node.WithClusterID(ofAutosharding.cluster), node.WithShards(ofAutosharding.indices))
	if err != nil {
		t.Fatal(err)
	}
	if err := waku.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer waku.Stop()
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
