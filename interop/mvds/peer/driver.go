package main

import (
	encoding "encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/golang/protobuf/proto"
	"github.com/vacp2p/mvds/node"
	pb "github.com/vacp2p/mvds/protobuf"
	"github.com/vacp2p/mvds/state"
	"github.com/vacp2p/mvds/transport"
)

type packet = transport.Packet

// link is the node's transport: payloads go out as "send" events and come in as "receive" commands.
type link struct {
	lines   *lines
	arrived chan packet
}

func (l *link) Watch() packet { return <-l.arrived }

func (l *link) Send(_ state.PeerID, to state.PeerID, payload pb.Payload) error {
	data, err := proto.Marshal(&payload)
	if err == nil {
		l.lines.write(line{"event": "send", "to": hex(to[:]), "payload": hex(data)})
	}
	return err
}

// driver runs commands on a node.
type driver struct {
	node    *node.Node
	link    *link
	records state.SyncState
	epoch   time.Duration
	started bool
}

func (d *driver) run(c command) (line, error) {
	switch c.Op {
	case "add_peer":
		return nil, d.addPeer(c)
	case "start":
		d.started = true
		d.node.Start(d.epoch)
		return nil, nil
	case "append":
		return d.append(c)
	case "receive":
		return nil, d.receive(c)
	case "state":
		return d.state()
	}
	return nil, fmt.Errorf("unknown op %q", c.Op)
}

// addPeer comes before "start": nothing guards the reference's map of peers.
func (d *driver) addPeer(c command) error {
	var group state.GroupID
	var peer state.PeerID
	if d.started {
		return errors.New("started already")
	}
	if err := errors.Join(fill(group[:], c.Group), fill(peer[:], c.Peer)); err != nil {
		return err
	}
	return d.node.AddPeer(group, peer)
}

func (d *driver) append(c command) (line, error) {
	var group state.GroupID
	body, err := encoding.DecodeString(c.Body)
	if err = errors.Join(err, fill(group[:], c.Group)); err != nil {
		return nil, err
	}
	id, err := d.node.AppendMessage(group, body)
	return line{"id": hex(id[:])}, err
}

func (d *driver) receive(c command) error {
	var sender state.PeerID
	var payload pb.Payload
	data, err := encoding.DecodeString(c.Payload)
	if err = errors.Join(err, fill(sender[:], c.Peer)); err != nil {
		return err
	}
	if err = proto.Unmarshal(data, &payload); err == nil {
		d.link.arrived <- packet{Sender: sender, Payload: payload}
	}
	return err
}

// state counts the records that are left, by type.
func (d *driver) state() (line, error) {
	names := map[state.RecordType]string{state.OFFER: "offers", state.REQUEST: "requests", state.MESSAGE: "messages"}
	answer := line{"offers": 0, "requests": 0, "messages": 0}
	all, err := d.records.All(0)
	for _, record := range all {
		answer[names[record.Type]] = answer[names[record.Type]].(int) + 1
	}
	return answer, err
}
