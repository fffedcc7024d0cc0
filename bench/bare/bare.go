// Package bare is the contender with which all others are compared: the loop that a good engineer writes by hand,
// with only encoding/json.
package bare

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/bench"
)

// Contender returns the hand-written loop.
func Contender() bench.Contender { return bench.Contender{Name: "bare", Prepare: prepare} }

// The messages of a chat service, as they are sent over the network.
type (
	message struct {
		Role       string     `json:"role"`
		Content    string     `json:"content,omitempty"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

type (
	model interface {
		Chat(ctx context.Context, transcript []message) (message, error)
	}
	tool func(ctx context.Context, args json.RawMessage) (string, error)
	hook func(ctx context.Context, c *toolCall)
)

// agent holds everything that the loop needs and that is built once.
type agent struct {
	model  model
	tools  map[string]tool
	before []hook
	after  []hook
	watch  Instrument // nil for a loop without instrumentation
}

// Instrument is called when parts of a run begin and end, in a loop that is instrumented by hand. Values that it adds
// to a context are available when the part ends.
type Instrument interface {
	StartRun(ctx context.Context) context.Context
	EndRun(ctx context.Context, messages int)
	StartChat(ctx context.Context) context.Context
	EndChat(ctx context.Context, messages int, finish string)
	StartTool(ctx context.Context, tool string) context.Context
	EndTool(ctx context.Context, call string, took time.Duration, err error)
}

// run appends to the transcript until the model makes no more calls. Several calls of one turn get a goroutine each.
func (a *agent) run(ctx context.Context, transcript []message) ([]message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return transcript, err
		}
		reply, err := a.model.Chat(ctx, transcript)
		if err != nil {
			return transcript, fmt.Errorf("ask model: %w", err)
		}
		transcript = append(transcript, reply)
		if len(reply.ToolCalls) == 0 {
			return transcript, nil
		}
		if len(reply.ToolCalls) == 1 {
			transcript = append(transcript, a.answer(ctx, &reply.ToolCalls[0]))
			continue
		}
		answers := make([]message, len(reply.ToolCalls))
		var calls sync.WaitGroup
		for i := range reply.ToolCalls {
			calls.Go(func() { answers[i] = a.answer(ctx, &reply.ToolCalls[i]) })
		}
		calls.Wait()
		transcript = append(transcript, answers...)
	}
}

func (a *agent) answer(ctx context.Context, c *toolCall) message {
	var started time.Time
	if a.watch != nil {
		ctx = a.watch.StartTool(ctx, c.Function.Name)
		started = time.Now()
	}
	content, err := a.call(ctx, c)
	if a.watch != nil {
		a.watch.EndTool(ctx, c.ID, time.Since(started), err)
	}
	if err != nil {
		content = err.Error() // the model receives the error, and the run continues
	}
	return message{Role: "tool", Content: content, ToolCallID: c.ID}
}

func (a *agent) call(ctx context.Context, c *toolCall) (string, error) {
	run, ok := a.tools[c.Function.Name]
	if !ok {
		return "", fmt.Errorf("run tool %q: %w", c.Function.Name, bench.ErrUnknownTool)
	}
	for _, h := range a.before {
		h(ctx, c)
	}
	content, err := run(ctx, json.RawMessage(c.Function.Arguments))
	for _, h := range a.after {
		h(ctx, c)
	}
	return content, err
}
