package drivers_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/drivers"
)

// tinyDriver asks models of the Tiny service, which takes JSON and answers with JSON Lines. docs/writing-a-driver.md explains
// it. It is immutable and safe for concurrent use.
type tinyDriver struct {
	URL, Key, Model string
	Client          *http.Client
	Prices          drivers.Prices
}

var (
	_ agent.Streamer  = (*tinyDriver)(nil)
	_ agent.Describer = (*tinyDriver)(nil)
)

// Features returns what the service supports.
func (d *tinyDriver) Features() agent.Features {
	return agent.Features{Provider: "tiny", Model: d.Model, Endpoint: d.URL, Streaming: true, Tools: true, ParallelCalls: true}
}

// Next asks for a whole reply.
func (d *tinyDriver) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.Stream(ctx, s, func(agent.Delta) {})
}

// Stream asks for a reply and emits its pieces.
func (d *tinyDriver) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	model := cmp.Or(s.Request().Model, d.Model)
	step, err := d.ask(ctx, s, model, emit)
	if err == nil {
		return mo.Ok(step)
	}
	if ctx.Err() != nil { // the run was cancelled: the service is not to blame
		return mo.Err[agent.Step](fmt.Errorf("asking tiny: %w", context.Cause(ctx)))
	}
	failure, ok := errors.AsType[*drivers.Error](err)
	if !ok {
		failure = &drivers.Error{Kind: agent.KindModel, Err: err}
		if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
			failure.Kind = agent.KindTimeout
		}
	}
	failure.Provider, failure.Model = "tiny", model
	failure.Message = drivers.Redact(failure.Message, d.Key)
	return mo.Err[agent.Step](failure)
}

type tinyMessage struct {
	Role  string           `json:"role"`
	Text  string           `json:"text"`
	Calls []agent.ToolCall `json:"calls,omitempty"`
	Of    string           `json:"call_id,omitempty"` // the call that a tool message answers
}

type tinyRequest struct {
	Model     string           `json:"model"`
	System    string           `json:"system,omitempty"`
	Messages  []tinyMessage    `json:"messages"`
	Tools     []agent.ToolSpec `json:"tools,omitempty"`
	Choice    agent.ToolChoice `json:"tool_choice,omitempty"`
	MaxTokens int              `json:"max_tokens,omitempty"`
}

func tinyRequestOf(s agent.State, model string) (tinyRequest, error) {
	r := s.Request()
	out := tinyRequest{Model: model, System: r.Instructions, Choice: r.ToolChoice, MaxTokens: r.MaxOutputTokens}
	if r.Temperature.IsPresent() {
		return out, errors.New("the service has no temperature: leave it out")
	}
	for _, tool := range r.Tools.All() {
		out.Tools = append(out.Tools, tool)
	}
	for _, m := range s.Messages() {
		for _, part := range m.Content().Parts() {
			if part.Kind == agent.PartImage || part.Kind == agent.PartFile {
				return out, fmt.Errorf("the service takes no %s", part.Kind)
			}
		}
		sent := tinyMessage{Role: string(m.Role()), Text: m.Text(), Of: m.CallID()}
		for _, call := range m.Calls() {
			sent.Calls = append(sent.Calls, call)
		}
		out.Messages = append(out.Messages, sent)
	}
	return out, nil
}

// tinyPiece is a line of a reply. The last one has a Finish.
type tinyPiece struct {
	Text          string             `json:"text"`
	Call          *agent.ToolCall    `json:"call"`
	Finish        agent.FinishReason `json:"finish"`
	Input, Output int64
}

func (d *tinyDriver) ask(ctx context.Context, s agent.State, model string, emit func(agent.Delta)) (agent.Step, error) {
	asked, err := tinyRequestOf(s, model)
	if err != nil { // nothing is sent
		return agent.Step{}, &drivers.Error{Kind: agent.KindBadRequest, Err: err}
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return agent.Step{}, &drivers.Error{Kind: agent.KindBadRequest, Err: err}
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/turn", bytes.NewReader(body))
	if err != nil {
		return agent.Step{}, &drivers.Error{Kind: agent.KindBadRequest, Err: err}
	}
	post.Header.Set("Authorization", "Bearer "+d.Key)
	answer, err := cmp.Or(d.Client, http.DefaultClient).Do(post)
	if err != nil {
		return agent.Step{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return agent.Step{}, &drivers.Error{
			Kind: drivers.KindOfStatus(answer.StatusCode), Status: answer.StatusCode,
			Message: strings.TrimSpace(string(text)), After: drivers.RetryAfter(answer.Header, time.Now()),
		}
	}
	step := agent.Step{Model: model}
	var text strings.Builder
	var calls []agent.ToolCall
	for lines := json.NewDecoder(answer.Body); step.FinishReason == ""; {
		var p tinyPiece
		if err := lines.Decode(&p); err != nil {
			return agent.Step{}, &drivers.Error{Kind: agent.KindBrokenStream, Err: err}
		}
		switch {
		case p.Call != nil:
			emit(agent.Delta{Call: *p.Call, CallIndex: len(calls)})
			calls = append(calls, *p.Call)
		case p.Text != "":
			emit(agent.Delta{Text: p.Text})
			text.WriteString(p.Text)
		}
		step.FinishReason = p.Finish
		step.Usage.InputTokens, step.Usage.OutputTokens = p.Input, p.Output
	}
	step.Message = agent.Assistant(text.String(), calls...)
	step.Usage.Cost = d.Prices.Cost(model, step.Usage)
	return mo.Ok(step).Get()
}

func tinyServer(t *testing.T, status int, lines string) *tinyDriver {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, lines)
	}))
	t.Cleanup(server.Close)
	return &tinyDriver{URL: server.URL, Key: "key-4711", Model: "tiny-1"}
}

func TestTinyContract(t *testing.T) {
	agenttest.TestDriver(t, func(t *testing.T) agent.Driver {
		t.Helper()
		return tinyServer(t, http.StatusOK, `{"text":"Good "}{"text":"day!"}{"finish":"stop","input":4,"output":2}`)
	})
}

// Each failure has its kind, and no error contains the key.
func TestTinyErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		lines  string
		kind   agent.ErrorKind
	}{
		"busy":            {http.StatusTooManyRequests, "too many, key-4711", agent.KindRateLimit},
		"a wrong key":     {http.StatusUnauthorized, "no such key: key-4711", agent.KindAuth},
		"half an answer":  {http.StatusOK, `{"text":"Good "}`, agent.KindBrokenStream},
		"not JSON at all": {http.StatusOK, "<html>", agent.KindBrokenStream},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tinyServer(t, c.status, c.lines).Next(t.Context(), agent.NewState(agent.UserText("hello"))).Get()
			require.Error(t, err)
			assert.Equal(t, c.kind, agent.KindOf(err))
			assert.NotContains(t, err.Error(), "key-4711")
		})
	}
}
