package temporal

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is an encoded protobuf message. Its methods add a field and return the longer message; like the encoders
// that protoc generates, they omit zero values.
type message []byte

func (m message) text(field protowire.Number, s string) message { return m.bytes(field, []byte(s)) }

func (m message) bytes(field protowire.Number, b []byte) message {
	if len(b) == 0 {
		return m
	}
	return m.message(field, b)
}

// message adds a message, also an empty one.
func (m message) message(field protowire.Number, inner message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), inner)
}

func (m message) number(field protowire.Number, n uint64) message {
	if n == 0 {
		return m
	}
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), n)
}

// float adds a double, given as its bits.
func (m message) float(field protowire.Number, bits uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), bits)
}

// duration adds a google.protobuf.Duration: seconds in field 1, nanoseconds in field 2.
func (m message) duration(field protowire.Number, d time.Duration) message {
	return m.message(field, message{}.number(1, uint64(d/time.Second)).number(2, uint64(d%time.Second))) //nolint:gosec // positive
}

var errMessage = errors.New("the server sent a message that is not valid")

// find returns the content of the first field at a path of messages, or nil if there is none.
func find(data []byte, path ...protowire.Number) ([]byte, error) {
	for _, field := range path {
		inner, _, err := lookUp(data, field)
		if err != nil || inner == nil {
			return nil, err
		}
		data = inner
	}
	return data, nil
}

// findNumber returns the number in a field of a message, or zero if there is none.
func findNumber(data []byte, field protowire.Number) (uint64, error) {
	_, n, err := lookUp(data, field)
	return n, err
}

// lookUp returns the first occurrence of a field.
func lookUp(data []byte, field protowire.Number) (content []byte, n uint64, err error) {
	for len(data) > 0 {
		found, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return nil, 0, errMessage
		}
		data = data[size:]
		if size = protowire.ConsumeFieldValue(found, kind, data); size < 0 {
			return nil, 0, errMessage
		}
		switch {
		case found != field:
		case kind == protowire.BytesType:
			content, _ = protowire.ConsumeBytes(data)
			return slices.Clip(content), 0, nil
		case kind == protowire.VarintType:
			n, _ = protowire.ConsumeVarint(data)
			return nil, n, nil
		}
		data = data[size:]
	}
	return nil, 0, nil
}
