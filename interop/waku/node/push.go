package main

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/waku-org/go-waku/waku/v2/protocol/filter"
)

const pushTimeout = 5 * time.Second

// pushHost gives go-waku's filter server one long-lived push stream a js-waku peer in place of one
// a message: js-waku 0.0.36 never closes its half of such a stream and takes at most 100, so that
// it falls silent after 100 messages. go-waku's own clients read one message a stream, and keep that.
type pushHost struct {
	host.Host
	mu      sync.Mutex
	streams map[peer.ID]*keptStream
}

// keptStream is locked from NewStream to the Close or Reset with which go-waku ends a push.
type keptStream struct {
	network.Stream
	mu     sync.Mutex
	broken bool
}

func newPushHost(h host.Host) *pushHost {
	return &pushHost{Host: h, streams: map[peer.ID]*keptStream{}}
}

func (h *pushHost) NewStream(ctx context.Context, id peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if len(ids) != 1 || ids[0] != filter.FilterPushID_v20beta1 || !h.isJS(id) {
		return h.Host.NewStream(ctx, id, ids...)
	}
	h.mu.Lock()
	kept := h.streams[id]
	if kept == nil {
		kept = &keptStream{broken: true}
		h.streams[id] = kept
	}
	h.mu.Unlock()
	kept.mu.Lock()
	if kept.broken || kept.Conn().IsClosed() {
		stream, err := h.Host.NewStream(ctx, id, ids...)
		if err != nil {
			kept.broken = true
			kept.mu.Unlock()
			return nil, err
		}
		kept.Stream, kept.broken = stream, false
	}
	_ = kept.SetWriteDeadline(time.Now().Add(pushTimeout))
	return kept, nil
}

func (h *pushHost) isJS(id peer.ID) bool {
	for _, conn := range h.Network().ConnsToPeer(id) {
		if conn.ConnState().StreamMultiplexer == muxerOfJS {
			return true
		}
	}
	return false
}

func (s *keptStream) Close() error {
	s.mu.Unlock()
	return nil
}

func (s *keptStream) Reset() error {
	s.broken = true
	err := s.Stream.Reset()
	s.mu.Unlock()
	return err
}
