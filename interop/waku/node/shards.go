package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/waku-org/go-waku/waku/v2/protocol"
)

// shards are those of a cluster that the node serves.
type shards struct {
	cluster uint16
	indices []uint16
}

// go-waku's autosharding knows no other cluster.
var ofAutosharding = shards{cluster: 1, indices: []uint16{0, 1, 2, 3, 4, 5, 6, 7}}

// parse reads "16:32,256".
func (s *shards) parse(text string) error {
	cluster, indices, found := strings.Cut(text, ":")
	if !found {
		return fmt.Errorf("%q has no colon after the cluster", text)
	}
	var numbers []uint16
	for _, part := range append([]string{cluster}, strings.Split(indices, ",")...) {
		number, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return err
		}
		numbers = append(numbers, uint16(number))
	}
	s.cluster, s.indices = numbers[0], numbers[1:]
	return nil
}

func (s shards) topics() (topics []string) {
	for _, shard := range s.indices {
		topics = append(topics, protocol.NewStaticShardingPubsubTopic(s.cluster, shard).String())
	}
	return topics
}
