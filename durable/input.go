package durable

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// limitsMark begins a stored input that has limits: the mark, the length of the limits as a varint, the limits as JSON,
// the input. No JSON text begins with a zero byte.
const limitsMark = "\x00gl1"

// storedLimits is the JSON form of agent.Limits in a stored input.
type storedLimits struct {
	Steps  int           `json:"steps,omitempty"`
	Tokens int64         `json:"tokens,omitempty"`
	Cost   float64       `json:"cost,omitempty"`
	Time   time.Duration `json:"time,omitempty"` // in nanoseconds
}

// withLimits returns an input with limits. Limits that are all zero change nothing.
func withLimits(input []byte, limits agent.Limits) ([]byte, error) {
	if limits == (agent.Limits{}) {
		return input, nil
	}
	if math.IsNaN(limits.Cost) || math.IsInf(limits.Cost, 0) {
		return nil, fmt.Errorf("the cost limit is %v: it must be a number of US dollars", limits.Cost)
	}
	text, err := json.Marshal(storedLimits(limits))
	if err != nil {
		return nil, err
	}
	out := binary.AppendUvarint([]byte(limitsMark), uint64(len(text)))
	return append(append(out, text...), input...), nil
}

// splitInput returns the input and the limits of a stored input.
func splitInput(data []byte) (input []byte, limits agent.Limits, err error) {
	rest, marked := bytes.CutPrefix(data, []byte(limitsMark))
	if !marked {
		return data, limits, nil
	}
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > uint64(len(rest[n:])) {
		return nil, limits, errors.New("its limits are truncated")
	}
	text, input := rest[n:n+int(size)], rest[n+int(size):] //nolint:gosec // at most the length of rest
	var stored storedLimits
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, limits, fmt.Errorf("its limits: %w", err)
	}
	return input, agent.Limits(stored), nil
}

// InputOf returns the input of a job and its limits: see Job.Limits.
func InputOf(ctx context.Context, j Reader, id agent.RunID) (input []byte, limits agent.Limits, err error) {
	data, err := j.Input(ctx, id)
	if err == nil {
		input, limits, err = splitInput(data)
	}
	if err != nil {
		return nil, agent.Limits{}, fmt.Errorf("reading the input of run %s: %w", id, err)
	}
	return input, limits, nil
}
