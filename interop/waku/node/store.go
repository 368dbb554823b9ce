package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/waku-org/go-waku/waku/v2/node"
	waku "github.com/waku-org/go-waku/waku/v2/protocol"
	"github.com/waku-org/go-waku/waku/v2/protocol/pb"
	"github.com/waku-org/go-waku/waku/v2/protocol/relay"
	storepb "github.com/waku-org/go-waku/waku/v2/protocol/store/pb"
)

const (
	storeID      = protocol.ID("/vac/waku/store-query/3.0.0")
	defaultPage  = 20
	largestPage  = 100
	maxQuery     = 1 << 20
	maxStored    = 1 << 22
	hashBytes    = 32
	statusStored = uint32(200)
	statusBad    = uint32(400)
)

type row struct {
	timestamp int64
	hash      []byte
	topic     string
	message   *pb.WakuMessage
}

func (r row) before(other row) bool {
	if r.timestamp != other.timestamp {
		return r.timestamp < other.timestamp
	}
	return bytes.Compare(r.hash, other.hash) < 0
}

// archive keeps messages by (timestamp, hash), and on disk as they came, if there is a file.
type archive struct {
	mu    sync.RWMutex
	rows  []row
	known map[string]bool
	file  *os.File
}

// openArchive reads what an earlier life wrote; a record that was written half is the end of it.
func openArchive(path string) (*archive, error) {
	a := &archive{known: map[string]bool{}}
	if path == "memory" {
		return a, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	var whole int64
	reader := pbio.NewDelimitedReader(file, maxStored)
	for {
		record := &storepb.WakuMessageKeyValue{}
		if reader.ReadMsg(record) != nil {
			break
		}
		whole += int64(binary.PutUvarint(make([]byte, binary.MaxVarintLen64), uint64(proto.Size(record))) + proto.Size(record))
		a.insert(row{record.Message.GetTimestamp(), record.MessageHash, record.GetPubsubTopic(), record.Message})
	}
	if err := file.Truncate(whole); err != nil {
		return nil, err
	}
	if _, err := file.Seek(whole, io.SeekStart); err != nil {
		return nil, err
	}
	a.file = file
	return a, nil
}

func (a *archive) put(envelope *waku.Envelope) {
	message := envelope.Message()
	if message.GetEphemeral() {
		return
	}
	hash := envelope.Hash()
	r := row{message.GetTimestamp(), hash[:], envelope.PubsubTopic(), message}
	if r.timestamp == 0 {
		r.timestamp = envelope.Index().ReceiverTime
	}
	if a.insert(r) && a.file != nil {
		_ = pbio.NewDelimitedWriter(a.file).WriteMsg(
			&storepb.WakuMessageKeyValue{MessageHash: r.hash, Message: message, PubsubTopic: &r.topic})
	}
}

func (a *archive) insert(r row) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[string(r.hash)] {
		return false
	}
	a.known[string(r.hash)] = true
	at := sort.Search(len(a.rows), func(i int) bool { return r.before(a.rows[i]) })
	a.rows = append(a.rows, row{})
	copy(a.rows[at+1:], a.rows[at:])
	a.rows[at] = r
	return true
}

// query answers as 13/WAKU2-STORE has it. Hashes may come with a pubsub topic, as js-waku sends them.
func (a *archive) query(q *storepb.StoreQueryRequest) *storepb.StoreQueryResponse {
	if len(q.MessageHashes) == 0 && (q.GetPubsubTopic() == "") != (len(q.ContentTopics) == 0) {
		return refusal(q, "BAD_REQUEST: pubsubTopic and contentTopics go together")
	}
	for _, hash := range q.MessageHashes {
		if len(hash) != hashBytes {
			return refusal(q, "BAD_REQUEST: invalid message hash length")
		}
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	from, to := 0, len(a.rows)
	if len(q.PaginationCursor) > 0 {
		at := a.index(q.PaginationCursor)
		if at < 0 {
			return refusal(q, "BAD_REQUEST: cursor not found")
		}
		if q.PaginationForward {
			from = at + 1
		} else {
			to = at
		}
	}
	var found []row
	wanted := matcher(q)
	for _, r := range a.rows[from:to] {
		if wanted(r) {
			found = append(found, r)
		}
	}
	return page(q, found)
}

func (a *archive) index(hash []byte) int {
	for i, r := range a.rows {
		if bytes.Equal(r.hash, hash) {
			return i
		}
	}
	return -1
}

func matcher(q *storepb.StoreQueryRequest) func(row) bool {
	hashes, topics := map[string]bool{}, map[string]bool{}
	for _, hash := range q.MessageHashes {
		hashes[string(hash)] = true
	}
	for _, topic := range q.ContentTopics {
		topics[topic] = true
	}
	return func(r row) bool {
		if len(hashes) > 0 {
			return hashes[string(r.hash)]
		}
		return (q.GetPubsubTopic() == "" || q.GetPubsubTopic() == r.topic) &&
			(len(topics) == 0 || topics[r.message.ContentTopic]) &&
			(q.GetTimeStart() <= 0 || r.timestamp >= q.GetTimeStart()) &&
			(q.GetTimeEnd() <= 0 || r.timestamp <= q.GetTimeEnd())
	}
}

func page(q *storepb.StoreQueryRequest, found []row) *storepb.StoreQueryResponse {
	limit := int(q.GetPaginationLimit())
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, largestPage)
	answer := answerTo(q, statusStored, "OK")
	if len(found) > limit {
		if q.PaginationForward {
			found = found[:limit]
			answer.PaginationCursor = found[limit-1].hash
		} else {
			found = found[len(found)-limit:]
			answer.PaginationCursor = found[0].hash
		}
	}
	for _, r := range found {
		item := &storepb.WakuMessageKeyValue{MessageHash: r.hash}
		if q.IncludeData {
			item.Message, item.PubsubTopic = r.message, proto.String(r.topic)
		}
		answer.Messages = append(answer.Messages, item)
	}
	return answer
}

func refusal(q *storepb.StoreQueryRequest, why string) *storepb.StoreQueryResponse {
	return answerTo(q, statusBad, why)
}

func answerTo(q *storepb.StoreQueryRequest, status uint32, why string) *storepb.StoreQueryResponse {
	return &storepb.StoreQueryResponse{RequestId: q.RequestId, StatusCode: &status, StatusDesc: &why}
}

func serveStore(w *node.WakuNode, a *archive) {
	arriving := w.Broadcaster().RegisterForAll(relay.WithBufferSize(1024))
	go func() {
		for envelope := range arriving.Ch {
			a.put(envelope)
		}
	}()
	w.Host().SetStreamHandler(storeID, func(s network.Stream) {
		defer s.Close()
		q := &storepb.StoreQueryRequest{}
		if pbio.NewDelimitedReader(s, maxQuery).ReadMsg(q) != nil {
			_ = s.Reset()
			return
		}
		answer := a.query(q)
		_ = pbio.NewDelimitedWriter(s).WriteMsg(answer)
		tell(q, answer, s.Conn().ConnState().StreamMultiplexer == muxerOfJS)
	})
}

// tell says what was asked and found, so that a test can see which way a message was recovered.
func tell(q *storepb.StoreQueryRequest, answer *storepb.StoreQueryResponse, js bool) {
	by := "time"
	if len(q.MessageHashes) > 0 {
		by = "hash"
	}
	fmt.Printf(`{"event":"store_query","by":%q,"asked":%d,"found":%d,"js":%t}`+"\n",
		by, len(q.MessageHashes), len(answer.Messages), js)
}
