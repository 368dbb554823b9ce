package main

// Minimal reproductions of go-waku v0.10.1's defects (docs/interop.md): each passes while the defect
// is there. `go test -tags "gowaku_no_rln" .` takes a minute, as one of them waits for a timer.

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/waku-org/go-waku/waku/v2/node"
	"github.com/waku-org/go-waku/waku/v2/protocol/filter"
	"github.com/waku-org/go-waku/waku/v2/protocol/metadata/pb"
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
	client, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	info := peer.AddrInfo{ID: waku.Host().ID(), Addrs: waku.Host().Addrs()}
	if err := client.Connect(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	stream, err := client.NewStream(t.Context(), info.ID, metadataID)
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
