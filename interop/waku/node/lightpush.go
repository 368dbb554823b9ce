package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/waku-org/go-waku/waku/v2/node"
	"github.com/waku-org/go-waku/waku/v2/protocol/pb"
	"github.com/waku-org/go-waku/waku/v2/protocol/relay"
)

// Light push v3 (19/WAKU2-LIGHTPUSH); go-waku has no code for it, so that field numbers are here.
const (
	lightPushID = protocol.ID("/vac/waku/lightpush/3.0.0")
	maxRequest  = 1 << 22

	requestIDField, pubsubTopicField, messageField = 1, 20, 21  // of a request
	statusField, descriptionField, relayPeersField = 10, 11, 12 // of an answer

	statusOK, statusBadRequest, statusTooLarge, statusFailed = 200, 400, 413, 500
)

type pushRequest struct {
	id, pubsubTopic string
	message         *pb.WakuMessage
}

func serveLightPush(waku *node.WakuNode) {
	waku.Host().SetStreamHandler(lightPushID, func(s network.Stream) {
		defer s.Close()
		raw, err := readDelimited(s)
		if err != nil {
			_ = s.Reset()
			return
		}
		request, err := parsePush(raw)
		status, description := uint64(statusBadRequest), "malformed"
		if err == nil {
			status, description = publish(waku, request)
		}
		answer := pushAnswer(request.id, status, description)
		_, _ = s.Write(append(protowire.AppendVarint(nil, uint64(len(answer))), answer...))
	})
}

func publish(waku *node.WakuNode, request pushRequest) (uint64, string) {
	if err := request.message.Validate(); err != nil {
		return statusBadRequest, err.Error()
	}
	var options []relay.PublishOption
	if request.pubsubTopic != "" {
		options = append(options, relay.WithPubSubTopic(request.pubsubTopic))
	}
	_, err := waku.Relay().Publish(context.Background(), request.message, options...)
	switch {
	case err == nil:
		return statusOK, "OK"
	case strings.Contains(err.Error(), "size exceeds"):
		return statusTooLarge, err.Error()
	default:
		return statusFailed, err.Error()
	}
}

func parsePush(b []byte) (request pushRequest, err error) {
	request.message = &pb.WakuMessage{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return request, protowire.ParseError(n)
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return request, protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			switch number {
			case requestIDField:
				request.id = string(value)
			case pubsubTopicField:
				request.pubsubTopic = string(value)
			case messageField:
				err = errors.Join(err, proto.Unmarshal(value, request.message))
			}
		}
		b = b[n:]
	}
	return request, err
}

func pushAnswer(id string, status uint64, description string) []byte {
	b := protowire.AppendTag(nil, requestIDField, protowire.BytesType)
	b = protowire.AppendString(b, id)
	b = protowire.AppendTag(b, statusField, protowire.VarintType)
	b = protowire.AppendVarint(b, status)
	b = protowire.AppendTag(b, descriptionField, protowire.BytesType)
	b = protowire.AppendString(b, description)
	if status == statusOK {
		b = protowire.AppendTag(b, relayPeersField, protowire.VarintType)
		b = protowire.AppendVarint(b, 1)
	}
	return b
}

func readDelimited(stream io.Reader) ([]byte, error) {
	reader := bufio.NewReader(stream)
	size, err := binary.ReadUvarint(reader)
	if err != nil {
		return nil, err
	}
	if size > maxRequest {
		return nil, errors.New("too long")
	}
	data := make([]byte, size)
	_, err = io.ReadFull(reader, data)
	return data, err
}
