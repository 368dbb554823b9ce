// A node of the 2/MVDS reference, driven by JSON lines: commands on stdin, what happens on stdout.
package main

import (
	"flag"
	"log"
	"os"
	"time"

	"github.com/vacp2p/mvds/node"
	"github.com/vacp2p/mvds/state"
)

var modes = map[string]node.Mode{"batch": batch, "interactive": interactive}

func main() {
	log.SetFlags(0)
	id := flag.String("id", "", "this peer's id, in hex; at most 65 bytes, filled up with zeros")
	mode := flag.String("mode", "batch", "batch or interactive")
	epoch := flag.Duration("epoch", 50*time.Millisecond, "how long an epoch is")
	resend := flag.Int64("resend", 4, "epochs after which a record is sent again")
	flag.Parse()

	var self state.PeerID
	if err := fill(self[:], *id); err != nil {
		log.Fatalf("-id: %v", err)
	}
	chosen, known := modes[*mode]
	if !known {
		log.Fatalf("-mode %q: it is batch or interactive", *mode)
	}

	lines := newLines(os.Stdin, os.Stdout)
	link := &link{lines: lines, arrived: make(chan packet)}
	// The reference adds what this function returns to the send epoch, rather than taking it for one.
	nextEpoch := func(uint64, int64) int64 { return *resend }
	n, records := newNode(self, chosen, link, nextEpoch)

	received := n.Subscribe()
	go func() {
		for message := range received {
			id := message.ID()
			lines.write(line{"event": "message", "id": hex(id[:]), "group": hex(message.GroupId), "timestamp": message.Timestamp, "body": hex(message.Body)})
		}
	}()
	driver := &driver{node: n, link: link, records: records, epoch: *epoch}
	lines.write(line{"event": "ready"})
	lines.serve(driver.run)
}
