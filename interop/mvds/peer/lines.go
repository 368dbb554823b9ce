package main

import (
	"bufio"
	encoding "encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"sync"
)

const longestLine = 64 << 20

// line is what goes out: an event, or the answer to a command.
type line map[string]any

// command is what comes in; which fields it has depends on `op`. All bytes are hex.
type command struct {
	Op      string `json:"op"`
	Group   string `json:"group"`
	Peer    string `json:"peer"`
	Body    string `json:"body"`
	Payload string `json:"payload"`
}

// lines are JSON objects, one a line, both ways; several goroutines write.
type lines struct {
	in  *bufio.Scanner
	mu  sync.Mutex
	out *json.Encoder
}

func newLines(in io.Reader, out io.Writer) *lines {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 1<<16), longestLine)
	return &lines{in: scanner, out: json.NewEncoder(out)}
}

func (l *lines) write(what line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.out.Encode(what); err != nil {
		log.Fatalf("stdout: %v", err)
	}
}

// serve runs each command and writes its answer, until there are no more.
func (l *lines) serve(run func(command) (line, error)) {
	for l.in.Scan() {
		var c command
		var answer line
		err := json.Unmarshal(l.in.Bytes(), &c)
		if err == nil {
			answer, err = run(c)
		}
		if answer == nil {
			answer = line{}
		}
		answer["event"], answer["op"] = "answer", c.Op
		if err != nil {
			answer["error"] = err.Error()
		}
		l.write(answer)
	}
}

func hex(b []byte) string { return encoding.EncodeToString(b) }

// fill reads hex into an array; what is shorter is filled up with zeros, as the reference does.
func fill(array []byte, text string) error {
	b, err := encoding.DecodeString(text)
	if err == nil && len(b) > len(array) {
		err = fmt.Errorf("%d bytes, at most %d", len(b), len(array))
	}
	copy(array, b)
	return err
}
