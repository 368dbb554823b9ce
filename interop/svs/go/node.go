package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/engine"
	"github.com/named-data/ndnd/std/engine/face"
	"github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/object"
	"github.com/named-data/ndnd/std/object/storage"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/signer"
	ndnsync "github.com/named-data/ndnd/std/sync"
)

// member is one node of a group, whichever way its publications are named.
type member interface {
	publish(content []byte) error
	stop()
}

type command struct {
	Op      string `json:"op"`
	Content string `json:"content"`
}

func runNode(arguments []string) {
	flags := flag.NewFlagSet("node", flag.ExitOnError)
	forwarder := flags.String("forwarder", "", "unix:///path or tcp://127.0.0.1:port")
	group := flags.String("group", "/ndn/svs", "group prefix")
	name := flags.String("name", "/go", "node name")
	naming := flags.String("naming", "spec", "spec: /<node>/<group>/t=/seq=; alo: as SvsALO has it")
	boot := flags.Uint64("boot", 0, "bootstrap time; 0: now")
	periodic := flags.Duration("periodic", 30*time.Second, "PeriodicTimeout")
	seed := flags.String("ed25519", "", "hex seed of the group's key: sign with it, take nothing else")
	keyName := flags.String("keyname", "/group/KEY/%01", "name of that key")
	flags.Parse(arguments)

	app := engine.NewBasicEngine(connect(*forwarder))
	fatal(app.Start())
	var trust *security.TrustConfig // nil: DigestSha256 out, and ndnd checks nothing of what comes
	key := signer.NewSha256Signer()
	if *seed != "" {
		trust, key = groupTrust(*seed, *keyName)
	}
	store := storage.NewMemoryStore()
	client := object.NewClient(app, store, trust)
	fatal(client.Start())
	options := ndnsync.SvSyncOpts{
		Client: client, GroupPrefix: mustName(*group), BootTime: *boot, PeriodicTimeout: *periodic,
	}
	var node member
	if *naming == "alo" {
		node = startAlo(client, mustName(*name), options)
	} else {
		node = startSpec(client, store, key, mustName(*name), options)
	}
	emit(map[string]any{"event": "ready", "name": *name})
	obey(node)
}

func connect(forwarder string) ndn.Face {
	address, err := url.Parse(forwarder)
	fatal(err)
	if address.Scheme == "unix" {
		return engine.NewUnixFace(address.Path)
	}
	// local: management below /localhost, which the forwarder grants a loopback face
	return face.NewStreamFace(address.Scheme, address.Host, true)
}

// announce registers prefixes and gives the forwarder time to have done so.
func announce(client ndn.Client, prefixes ...enc.Name) {
	for _, prefix := range prefixes {
		client.AnnouncePrefix(ndn.Announcement{Name: prefix, OnError: complain})
	}
	time.Sleep(200 * time.Millisecond)
}

func complain(err error) { emit(map[string]any{"event": "error", "error": err.Error()}) }

func published(name enc.Name, boot, seq uint64, content []byte) {
	emit(map[string]any{
		"event": "publication", "name": name.String(), "boot": boot, "seq": seq,
		"content": hex.EncodeToString(content),
	})
}

func obey(node member) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<24)
	for lines.Scan() {
		var order command
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			complain(err)
			continue
		}
		switch order.Op {
		case "publish":
			content, err := hex.DecodeString(order.Content)
			if err == nil {
				err = node.publish(content)
			}
			if err != nil {
				complain(err)
			}
		case "stop":
			node.stop()
			return
		default:
			complain(fmt.Errorf("unknown op %q", order.Op))
		}
	}
}
