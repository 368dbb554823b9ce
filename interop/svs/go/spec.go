package main

import (
	"sync"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/ndn/spec_2022"
	ndnsync "github.com/named-data/ndnd/std/sync"
	"github.com/named-data/ndnd/std/types/optional"
)

// specNode is ndnd's SvSync with publications named as the specification has it, which ndnd
// leaves to the application.
type specNode struct {
	client ndn.Client
	store  ndn.Store
	key    ndn.Signer
	name   enc.Name
	group  enc.Name
	sync   *ndnsync.SvSync
	mutex  sync.Mutex // one publication at a time: Data first, then the number
}

func startSpec(
	client ndn.Client, store ndn.Store, key ndn.Signer, name enc.Name, options ndnsync.SvSyncOpts,
) member {
	node := &specNode{client: client, store: store, key: key, name: name, group: options.GroupPrefix}
	options.OnUpdate = func(update ndnsync.SvSyncUpdate) {
		for seq := update.Low; seq <= update.High; seq++ {
			node.fetch(update.Name, update.Boot, seq)
		}
	}
	node.sync = ndnsync.NewSvSync(options)
	announce(client, node.group, name.Append(node.group...))
	fatal(node.sync.Start())
	return node
}

func (n *specNode) dataName(node enc.Name, boot, seq uint64) enc.Name {
	return node.Append(n.group...).
		Append(enc.NewTimestampComponent(boot)).
		Append(enc.NewSequenceNumComponent(seq))
}

func (n *specNode) publish(content []byte) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	name := n.dataName(n.name, n.sync.GetBootTime(), n.sync.GetSeqNo(n.name)+1)
	config := &ndn.DataConfig{ContentType: optional.Some(ndn.ContentTypeBlob)}
	data, err := spec_2022.Spec{}.MakeData(name, config, enc.Wire{content}, n.key)
	if err != nil {
		return err
	}
	if err := n.store.Put(name, data.Wire.Join()); err != nil { // the client answers from its store
		return err
	}
	n.sync.IncrSeqNo(n.name)
	return nil
}

func (n *specNode) fetch(publisher enc.Name, boot, seq uint64) {
	n.client.ExpressR(ndn.ExpressRArgs{
		Name:    n.dataName(publisher, boot, seq),
		Config:  &ndn.InterestConfig{Lifetime: optional.Some(time.Second)},
		Retries: 30,
		Callback: func(result ndn.ExpressCallbackArgs) {
			if result.Result != ndn.InterestResultData {
				time.AfterFunc(500*time.Millisecond, func() { n.fetch(publisher, boot, seq) })
				return
			}
			n.client.Validate(result.Data, result.SigCovered, func(valid bool, err error) {
				if valid {
					published(publisher, boot, seq, result.Data.Content().Join())
				} else if err != nil {
					complain(err)
				}
			})
		},
	})
}

func (n *specNode) stop() { n.sync.Stop() }
