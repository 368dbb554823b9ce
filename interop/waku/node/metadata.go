package main

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/waku-org/go-waku/waku/v2/protocol/metadata/pb"
)

const (
	metadataID  = protocol.ID("/vac/waku/metadata/1.0.0")
	maxMetadata = 1 << 16
)

// serveMetadata tells the shards in field 2, unpacked, which js-waku reads, and in field 3, packed,
// which go-waku reads; stock go-waku writes field 3 alone, and js-waku then knows no shard of it.
func serveMetadata(ctx context.Context, h host.Host, in shards) {
	var indices []uint32
	for _, shard := range in.indices {
		indices = append(indices, uint32(shard))
	}
	id := proto.Uint32(uint32(in.cluster))
	h.SetStreamHandler(metadataID, func(s network.Stream) {
		defer s.Close()
		if pbio.NewDelimitedReader(s, maxMetadata).ReadMsg(&pb.WakuMetadataRequest{}) != nil {
			_ = s.Reset()
			return
		}
		_ = pbio.NewDelimitedWriter(s).WriteMsg(
			&pb.WakuMetadataResponse{ClusterId: id, Shards: indices, ShardsDeprecated: indices})
	})
	// go-waku itself sends a request without field 2 when a peer connects, which js-waku takes for
	// the truth as well: say it again, in full, before and after that.
	h.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
		go func(who peer.ID) {
			for _, wait := range []time.Duration{50 * time.Millisecond, 250 * time.Millisecond} {
				time.Sleep(wait)
				s, err := h.NewStream(ctx, who, metadataID)
				if err != nil {
					return
				}
				_ = pbio.NewDelimitedWriter(s).WriteMsg(
					&pb.WakuMetadataRequest{ClusterId: id, Shards: indices, ShardsDeprecated: indices})
				_ = pbio.NewDelimitedReader(s, maxMetadata).ReadMsg(&pb.WakuMetadataResponse{})
				_ = s.Close()
			}
		}(c.RemotePeer())
	}})
}
