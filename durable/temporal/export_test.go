package temporal

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/grapnel-go/grapnel/durable"
)

// What the server of tests needs.
type (
	Message    = message
	BytesCodec = bytesCodec
)

const (
	Service = service
	Spare   = spare
)

func Find(data []byte, path ...protowire.Number) []byte {
	found, err := find(data, path...)
	if err != nil {
		panic(err)
	}
	return found
}

func FindNumber(data []byte, field protowire.Number) uint64 {
	n, err := findNumber(data, field)
	if err != nil {
		panic(err)
	}
	return n
}

func TaskQueue(prefix string, key durable.Key) string { return taskQueue(prefix, key) }

func ExecutionID(prefix, run string) string { return executionID(prefix, run) }

func RequestSeq(id string) int64 { return requestSeq(id) }

func RequestID(seq int64) string { return requestID(seq) }

func UsesActivities(s *Scheduler) bool {
	_, ok := s.executions.(*activities)
	return ok
}
