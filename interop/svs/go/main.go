// svspeer: ndnd's State Vector Sync as a peer for the tests of reliable-channel-svs.
//
//	svspeer forwarder [flags]   ndnd's forwarder, on loopback and a unix socket only
//	svspeer node [flags]        one member of a group; JSON lines on stdin and stdout
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	enc "github.com/named-data/ndnd/std/encoding"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "forwarder":
			runForwarder(os.Args[2:])
			return
		case "node":
			runNode(os.Args[2:])
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: svspeer forwarder|node [flags]")
	os.Exit(2)
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func mustName(text string) enc.Name {
	name, err := enc.NameFromStr(text)
	fatal(err)
	return name
}

var stdout sync.Mutex

// emit writes one line; nodes call it from several goroutines.
func emit(line map[string]any) {
	stdout.Lock()
	defer stdout.Unlock()
	text, err := json.Marshal(line)
	fatal(err)
	os.Stdout.Write(append(text, '\n'))
}
