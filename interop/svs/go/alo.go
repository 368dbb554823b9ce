package main

import (
	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn"
	ndnsync "github.com/named-data/ndnd/std/sync"
)

// aloNode is ndnd's SvsALO, which fetches publications by itself.
type aloNode struct{ alo *ndnsync.SvsALO }

func startAlo(client ndn.Client, name enc.Name, options ndnsync.SvSyncOpts) member {
	alo, err := ndnsync.NewSvsALO(ndnsync.SvsAloOpts{Name: name, Svs: options})
	fatal(err)
	alo.SetOnError(complain)
	fatal(alo.SubscribePublisher(enc.Name{}, func(pub ndnsync.SvsPub) {
		published(pub.Publisher, pub.BootTime, pub.SeqNum, pub.Bytes())
	}))
	announce(client, alo.SyncPrefix(), alo.DataPrefix())
	fatal(alo.Start())
	return aloNode{alo}
}

func (n aloNode) publish(content []byte) error {
	_, _, err := n.alo.Publish(enc.Wire{content})
	return err
}

func (n aloNode) stop() { n.alo.Stop() }
