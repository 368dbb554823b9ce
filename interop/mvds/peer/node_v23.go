//go:build !later

package main

import (
	"github.com/vacp2p/mvds/node"
	"github.com/vacp2p/mvds/peers"
	"github.com/vacp2p/mvds/state"
	"github.com/vacp2p/mvds/store"
	"go.uber.org/zap"
)

// v0.0.23 is the last tag of the reference whose field numbers are those of the specification.

const (
	batch       = node.BATCH
	interactive = node.INTERACTIVE
)

func newNode(self state.PeerID, mode node.Mode, link *link, next node.CalculateNextEpoch) (*node.Node, state.SyncState) {
	records := state.NewSyncState()
	return node.NewNode(store.NewDummyStore(), link, records, next, 0, self, mode, peers.NewMemoryPersistence(), zap.NewNop()), records
}
