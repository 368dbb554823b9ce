//go:build later

package main

import (
	"github.com/vacp2p/mvds/dependency"
	"github.com/vacp2p/mvds/node"
	"github.com/vacp2p/mvds/peers"
	"github.com/vacp2p/mvds/state"
	"github.com/vacp2p/mvds/store"
	"go.uber.org/zap"
)

// v0.0.25, the last tag, numbers the fields from 1 on (built with -tags later -modfile=later.mod).

const (
	batch       = node.BatchMode
	interactive = node.InteractiveMode
)

func newNode(self state.PeerID, mode node.Mode, link *link, next node.CalculateNextEpoch) (*node.Node, state.SyncState) {
	records := state.NewMemorySyncState()
	return node.NewNode(store.NewMemoryMessageStore(), link, records, next, 0, self, mode, peers.NewMemoryPersistence(),
		dependency.NewInMemoryTracker(), node.EventualMode, zap.NewNop()), records
}
