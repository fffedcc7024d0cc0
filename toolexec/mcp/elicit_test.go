//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// office has a store in a file and a server. Each use of it is a process of its own: with a store, a keeper, an agent and
// a connection.
type office struct {
	path   string
	server mcp.Server
	tool   string
	args   string
}

func newOffice(t *testing.T, s mcp.Server, tool, args string) *office {
	t.Helper()
	return &office{filepath.Join(t.TempDir(), "runs.db"), s, tool, args}
}

func (o *office) process(t *testing.T, do func(a *agent.Agent, k *durable.Keeper, store durable.Store)) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), o.path, sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	c, err := mcp.Connect(t.Context(), o.server)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	keeper := durable.Keep(store, durable.Options{})
	a, err := builder.New().WithName("clerk").
		WithDriver(agenttest.Script(agenttest.Call(o.tool, o.args), agenttest.Say("done"))).
		With(capability.UseTools(c.Tools()...), capability.UseDurability{Keeper: keeper}, capability.UseApproval(agent.ParkApprover)).
		Build().Get()
	require.NoError(t, err)
	do(a, keeper, store)
}

// start runs the agent until it parks, and returns the run.
func (o *office) start(t *testing.T) (id agent.RunID) {
	t.Helper()
	o.process(t, func(a *agent.Agent, _ *durable.Keeper, _ durable.Store) {
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		if s.Status() != agent.StatusParked {
			require.Equal(t, agent.StatusParked, s.Status(), resultText(s))
		}
		id = s.Run().ID
	})
	return id
}

// answer answers what the run waits for and resumes it, in a process of its own, and returns the state.
func (o *office) answer(t *testing.T, id agent.RunID, given agent.Approval) (final agent.State) {
	t.Helper()
	o.process(t, func(a *agent.Agent, k *durable.Keeper, store durable.Store) {
		require.NoError(t, durabletest.Approve(t.Context(), store, id, o.wait(t, store, id).ID, given))
		var err error
		final, err = k.Resume(t.Context(), a, id, durable.TakeFree).Get()
		require.NoError(t, err)
	})
	return final
}

func (o *office) wait(t *testing.T, store durable.Store, id agent.RunID) durable.Wait {
	t.Helper()
	waits, err := store.Waits(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, waits, 1)
	return waits[0]
}

// look calls do with the run's wait.
func (o *office) look(t *testing.T, id agent.RunID, do func(w durable.Wait, store durable.Store)) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), o.path, sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	do(o.wait(t, store, id), store)
}

func resultText(s agent.State) string {
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			return r.Text()
		}
	}
	return ""
}

func TestElicitationDuringACallIsAWait(t *testing.T) {
	t.Parallel()
	o := newOffice(t, everything(t), "mcp__every__trigger-elicitation-request", `{}`)
	id := o.start(t)
	o.look(t, id, func(w durable.Wait, store durable.Store) {
		assert.Equal(t, durable.WaitInput, w.Kind)
		i, err := durable.InterventionOf(w)
		require.NoError(t, err)
		r, ok := i.Questions.Asked()
		require.True(t, ok)
		assert.Equal(t, `mcp server "every"`, r.By)
		assert.Equal(t, "Please provide inputs for the following fields:", r.Message)
		assert.Contains(t, r.Schema, "Your full, legal name")
		for _, invalid := range []string{``, `{}`, `{"name":7}`, `{"name":"Ann","integer":1000}`, `[]`, `{"name":"Ann","admin":true}`} {
			err := durabletest.Approve(t.Context(), store, id, w.ID, agent.Approval{Verdict: agent.Approve, By: "ann", Input: invalid})
			_, refused := errors.AsType[*agent.ArgumentsError](err)
			assert.True(t, refused, "%s: %v", invalid, err)
		}
		require.Error(t, durabletest.Approve(t.Context(), store, id, w.ID, agent.Approval{Verdict: agent.RejectAndContinue, Input: `{"name":"Ann"}`}))
		assert.Nil(t, o.wait(t, store, id).Answer, "what does not fit is not recorded")
	})
	final := o.answer(t, id, agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"name":"Ann Rand","integer":7,"untitledMultipleSelectEnum":["Piano"]}`})
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Contains(t, resultText(final), "Name: Ann Rand")
	assert.Contains(t, resultText(final), "7")
}

func TestElicitationIsDeclinedOrEndsTheRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t, everything(t), "mcp__every__trigger-elicitation-request", `{}`)
	final := o.answer(t, o.start(t), agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Contains(t, resultText(final), "declined")

	o = newOffice(t, everything(t), "mcp__every__trigger-elicitation-request", `{}`)
	final = o.answer(t, o.start(t), agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "no"})
	assert.Equal(t, agent.StatusInterrupted, final.Status())
	assert.Contains(t, resultText(final), "rejected by ann: no")
}

func TestElicitationByAddressIsShownAndNotVisited(t *testing.T) {
	t.Parallel()
	s := everything(t)
	for _, errorPath := range []bool{false, true} {
		o := newOffice(t, s, "mcp__every__trigger-url-elicitation", fmt.Sprintf(`{"url":"https://example.com/connect","message":"Connect","errorPath":%v,"elicitationId":"e1"}`, errorPath))
		id := o.start(t)
		o.look(t, id, func(w durable.Wait, _ durable.Store) {
			i, err := durable.InterventionOf(w)
			require.NoError(t, err)
			r, _ := i.Questions.Asked()
			assert.NotEmpty(t, r.URL)
			assert.Equal(t, errorPath, r.URL != "https://example.com/connect", r.URL)
			assert.Empty(t, r.Schema)
		})
		if !errorPath { // a new process of this server gives its error again
			final := o.answer(t, id, agent.Approval{Verdict: agent.Approve, By: "ann"})
			assert.Equal(t, agent.StatusDone, final.Status())
			assert.Contains(t, resultText(final), "accept")
		}
	}
}

// modern returns a server of protocol 2026-07-28 without sessions. Its tool answers as reply says.
func modern(t *testing.T, reply func(n int32, p *sdk.CallToolParamsRaw) *sdk.CallToolResult) mcp.Server {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "modern", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}})
	var calls atomic.Int32
	server.AddTool(&sdk.Tool{Name: "order", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return reply(calls.Add(1), r.Params), nil
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(h.Close)
	return mcp.Server{Name: "shop", URL: h.URL}
}

const orderState = "opaque-4711-opaque"

// shop asks for a size and a confirmation at once, then for a code.
func shop(_ int32, p *sdk.CallToolParamsRaw) *sdk.CallToolResult {
	form := func(message, schema string) *sdk.ElicitParams {
		return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
	}
	switch p.RequestState {
	case "":
		return &sdk.CallToolResult{RequestState: orderState, InputRequests: sdk.InputRequestMap{
			"size": form("Which size?", `{"type":"object","properties":{"size":{"type":"string","enum":["s","m"]}},"required":["size"]}`),
			"gift": form("A gift?\u202e<b>", `{"type":"object","properties":{"gift":{"type":"boolean"}}}`),
		}}
	case orderState:
		data, _ := json.Marshal(p.InputResponses)
		return &sdk.CallToolResult{RequestState: orderState + string(data), InputRequests: sdk.InputRequestMap{
			"code": form("The code?", `{"type":"object","properties":{"code":{"type":"integer"}},"required":["code"]}`),
		}}
	}
	data, _ := json.Marshal(p.InputResponses)
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.TrimPrefix(p.RequestState, orderState) + string(data)}}}
}

func TestInputRequiredIsAWaitForEachRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(t, modern(t, shop), "mcp__shop__order", `{}`)
	id := o.start(t)
	var asked []string
	look := func() {
		o.look(t, id, func(w durable.Wait, store durable.Store) {
			i, err := durable.InterventionOf(w)
			require.NoError(t, err)
			r, _ := i.Questions.Asked()
			asked = append(asked, fmt.Sprint(r.Number, " ", r.Message))
			assert.NotContains(t, string(w.Data), "opaque-4711", "requestState is shown to no person")
			about, err := store.Run(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, durable.StatusWaiting, about.Status)
		})
	}
	look()
	o.answer(t, id, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
	look()
	o.answer(t, id, agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"size":"m"}`})
	look()
	final := o.answer(t, id, agent.Approval{Verdict: agent.Approve, By: "ann", Input: `{"code":12345}`})
	assert.Equal(t, []string{"1 A gift?<b>", "2 Which size?", "3 The code?"}, asked)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, `{"gift":{"action":"decline"},"size":{"action":"accept","content":{"size":"m"}}}`+
		`{"code":{"action":"accept","content":{"code":12345}}}`, resultText(final))
}

func TestAnAnswerGoesToNoOtherServer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, modern(t, shop), "mcp__shop__order", `{}`)
	id := o.start(t)
	o.server = modern(t, shop)
	final := o.answer(t, id, agent.Approval{Verdict: agent.RejectAndContinue, By: "ann"})
	assert.Contains(t, resultText(final), "another server had asked for input")
}

func TestInputRequiredOfAHostileServer(t *testing.T) {
	t.Parallel()
	ask := func(p *sdk.ElicitParams) *sdk.CallToolResult {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"a": p}, RequestState: "s"}
	}
	many := sdk.InputRequestMap{}
	for i := range 9 {
		many[fmt.Sprint(i)] = &sdk.ElicitParams{Message: "?"}
	}
	for want, reply := range map[string]*sdk.CallToolResult{
		"requestState of 1048576 bytes": {InputRequests: sdk.InputRequestMap{"a": &sdk.ElicitParams{Message: "?"}}, RequestState: strings.Repeat("x", 1<<20)},
		"sampling or roots":             {InputRequests: sdk.InputRequestMap{"a": &sdk.CreateMessageParams{MaxTokens: 1, Messages: []*sdk.SamplingMessage{}}}}, //nolint:staticcheck // deprecated servers may send it
		"9 requests at once":            {InputRequests: many},
		"busy":                          {InputRequests: sdk.InputRequestMap{}},
		"the schema has":                ask(&sdk.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object", "description": strings.Repeat("x", 40<<10)}}),
		"type \"object\" is not":        ask(&sdk.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"object"}}}`)}),
		"message of 9000 bytes":         ask(&sdk.ElicitParams{Message: strings.Repeat("x", 9000)}),
		"an invalid address":            ask(&sdk.ElicitParams{Mode: "url", Message: "?", URL: "javascript:alert(1)"}),
		"unknown mode":                  ask(&sdk.ElicitParams{Mode: "telepathy", Message: "?"}),
		"asked for input 16 times":      ask(&sdk.ElicitParams{Message: "again?"}),
	} {
		final := inMemory(t, modern(t, func(int32, *sdk.CallToolParamsRaw) *sdk.CallToolResult { return reply }), "mcp__shop__order")
		assert.Equal(t, agent.StatusDone, final.Status(), want)
		assert.Contains(t, resultText(final), want)
	}
}

// inMemory runs an agent whose approver accepts everything.
func inMemory(t *testing.T, s mcp.Server, tools ...string) agent.State {
	t.Helper()
	c := connect(t, s)
	var turns []agenttest.Turn
	for _, tool := range tools {
		turns = append(turns, agenttest.Call(tool, `{}`))
	}
	a, err := builder.New().WithDriver(agenttest.Script(append(turns, agenttest.Say("done"))...)).
		With(capability.UseTools(c.Tools()...), capability.UseApproval(agent.ApproverFunc(
			func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
				return agent.Approval{Verdict: agent.Approve, By: "ann"}, nil
			}))).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	return final
}

func TestElicitationOfAHostileServer(t *testing.T) {
	t.Parallel()
	final := inMemory(t, hostile(t, ""), "mcp__bad__interrogate")
	assert.Contains(t, resultText(final), "asked for input 16 times")
	final = inMemory(t, hostile(t, ""), "mcp__bad__bigform")
	assert.Contains(t, resultText(final), "the schema has")
}

func TestElicitationOutsideOfACallIsRefused(t *testing.T) {
	t.Parallel()
	c := connect(t, hostile(t, "curious"))
	assert.Contains(t, c.Tools()[0].Spec().Description, "outside of a call")

	c = connect(t, hostile(t, ""))
	mark := filepath.Join(t.TempDir(), "mark")
	require.Equal(t, "done", answer(t, t.Context(), c, "mcp__bad__late", `{"mark":"`+mark+`"}`).Text())
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	var said []byte
	require.Eventually(t, func() bool {
		var err error
		said, err = os.ReadFile(mark + ".said")
		return err == nil
	}, time.Minute, time.Millisecond)
	assert.Contains(t, string(said), "outside of a call")
}
