package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

var update = flag.Bool("update", false, "write the golden files again")

func throughJSON(t tester, s agent.State) agent.State {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	var out agent.State
	require.NoError(t, json.Unmarshal(data, &out), "the state does not read its own form: %s", data)
	return out
}

// requireSame fails unless both states are equal in everything that JSON keeps.
func requireSame(t tester, want, got agent.State) {
	t.Helper()
	require.Equal(t, want.Session(), got.Session())
	require.Equal(t, want.Status(), got.Status())
	require.Equal(t, withoutClock(want.Run()), withoutClock(got.Run()))
	require.True(t, want.Run().Started.Equal(got.Run().Started))
	require.Equal(t, want.Stopped(), got.Stopped())
	requireSameSignal(t, want.StopSignal(), got.StopSignal())
	require.Equal(t, want.Usage(), got.Usage())
	require.Equal(t, want.RunUsage(), got.RunUsage())
	require.Equal(t, want.RunFailures(), got.RunFailures())
	require.Equal(t, want.RunStepCount(), got.RunStepCount())
	require.Equal(t, want.MessageCount(), got.MessageCount())
	for i, m := range want.Messages() {
		require.True(t, m.Equal(got.Message(i)), "message %d", i)
	}
	require.Equal(t, pending(want), pending(got))
	require.Equal(t, want.StepCount(), got.StepCount())
	var steps []agent.StepRecord
	for _, r := range got.Steps() {
		steps = append(steps, r)
	}
	for i, r := range want.Steps() {
		requireSameStep(t, r, steps[i])
	}
}

func pending(s agent.State) []int {
	var out []int
	for i := range agent.Checkpoint(s).Pending() {
		out = append(out, i)
	}
	return out
}

func withoutClock(r agent.Run) agent.Run {
	r.Started = time.Time{}
	return r
}

func requireSameSignal(t tester, want, got agent.Signal) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

func requireSameStep(t tester, want, got agent.StepRecord) {
	t.Helper()
	require.Equal(t, want.Index(), got.Index())
	require.Equal(t, want.Kind(), got.Kind())
	require.True(t, want.StartTime().Equal(got.StartTime()))
	require.Equal(t, want.Duration(), got.Duration())
	require.True(t, want.Message().Equal(got.Message()))
	require.Equal(t, want.Usage(), got.Usage())
	a, b := want.Reply(), got.Reply()
	require.Equal(t, []any{a.Model, a.ID, a.FinishReason}, []any{b.Model, b.ID, b.FinishReason})
	require.Equal(t, want.Failure() == nil, got.Failure() == nil)
	if want.Failure() != nil {
		require.Equal(t, want.Failure().Kind, got.Failure().Kind)
		require.Equal(t, want.Failure().Text, got.Failure().Text)
	}
	require.Equal(t, want.ResultCount(), got.ResultCount())
	for i, a := range want.Results() {
		b := got.Result(i)
		require.True(t, a.Content.Equal(b.Content))
		require.True(t, a.Started.Equal(b.Started))
		require.Equal(t, a.Stop == nil, b.Stop == nil)
		requireSameSignal(t, lo.FromPtr(a.Stop), lo.FromPtr(b.Stop))
		for _, r := range []*agent.ToolResult{&a, &b} { // compared above, or not kept
			r.Content, r.Started, r.Stop, r.Err, r.Effects = agent.Content{}, time.Time{}, nil, nil, agent.Effects{}
		}
		require.Equal(t, a, b)
	}
}

var (
	noteKey  = agent.SessionKey[note]("example.note")
	countKey = agent.RunKey[int64]("example.count")
)

type note struct {
	Text string `json:"text"`
	Tags []string
}

// full returns a state that uses every feature of a state. Its times come from a synctest bubble.
func full(t *testing.T) agent.State {
	t.Helper()
	blank := json.RawMessage(`{"version":3,"session":"ses_golden"}`)
	var s agent.State
	require.NoError(t, json.Unmarshal(blank, &s))

	both := executor{
		prepare: func(_ context.Context, _ agent.State, c *agent.ToolCall) (*agent.Prepared, error) {
			switch c.Name {
			case "deny":
				return denied(c), nil
			case "mock":
				return mocked(c), nil
			case "rewrite":
				return &agent.Prepared{Original: c, Call: &agent.ToolCall{Name: c.Name, Arguments: `{"safe":true}`}}, nil
			}
			return &agent.Prepared{Original: c, Call: c}, nil
		},
		execute: func(_ context.Context, _ agent.State, p *agent.Prepared) (*agent.ToolResult, error) {
			r := &agent.ToolResult{Attempts: 1, Started: time.Now(), Content: agent.TextContent("ran"), Status: agent.ToolExecuted}
			time.Sleep(time.Millisecond) // in the bubble
			r.Duration = time.Since(r.Started)
			switch p.Call.Name {
			case "fail":
				r.Status, r.Reason, r.Attempts, r.Err = agent.ToolFailed, agent.ReasonTimeout, 3, errOutOfPaper
			case "show":
				r.Content = agent.ContentOf(agent.Text("a picture: "), agent.Image("image/png", []byte{0, 1, 254, 255}))
				r.Stop = &stopSignal
				r.Effects = agent.EffectsOf(
					noteKey.Set(note{"remember <the> milk", []string{"a", "b"}}), countKey.Set(math.MaxInt64),
					agent.AddContext("it is late"), agent.AddMessage(agent.System("be brief")),
				).From("clock")
			}
			return r, nil
		},
	}
	thinking := agent.AssistantContent(agent.ContentOf(
		agent.Reasoning("let me see", "sig=="), agent.Text("Two tools & more"), agent.File("a.txt", "text/plain", []byte("hi")),
		agent.FileURL("b.txt", "https://example.com/b.txt"), agent.ImageURL("https://example.com/c.png"),
	), agent.ToolCall{ID: "c1", Name: "rewrite", Arguments: `{"path":"/etc"}`}, agent.ToolCall{ID: "c2", Name: "deny"},
		agent.ToolCall{ID: "c3", Name: "mock", Arguments: `{"broken":`}, agent.ToolCall{ID: "c4", Name: "fail", Arguments: `{}`})
	a := build(t, agent.Config{
		Name: "golden", Executor: both,
		Driver: agenttest.Script(
			agenttest.Fail(kinded{errors.New("overloaded"), agent.KindRateLimit}),
			agenttest.Reply(agent.Step{
				Message: thinking, FinishReason: agent.FinishToolCalls, Model: "m-1", ID: "reply_1",
				Usage: agent.Usage{
					InputTokens: 100, OutputTokens: 50, CacheReadTokens: 60, CacheWriteTokens: 10, ReasoningTokens: 20, Cost: mo.Some(0.125),
				},
			}),
			agenttest.Call("show", `{}`).WithTokens(10, 1),
		),
	})
	failed := runError(t, a.RunWith(t.Context(), agent.RunSettings{ID: "run_1"}, s,
		agent.User(agent.Text("look at this: "), agent.ImageURL("https://example.com/d.png"))))
	stopped, err := a.RunWith(t.Context(), agent.RunSettings{
		ID: "run_2", Parent: agent.Run{ID: "run_0", Root: "run_r", Depth: 1}, Stage: "plan", Iteration: 2,
	}, failed.State, agent.UserText("again")).Get()
	require.NoError(t, err)
	return stopped.With(agent.UserText("and then?")) // not let in
}

func TestStateComesBackFromJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := full(t)
		back := throughJSON(t, s)
		requireSame(t, s, back)

		want, ok := noteKey.From(s)
		require.True(t, ok)
		got, ok := noteKey.From(back)
		require.True(t, ok)
		assert.Equal(t, want, got)
		n, ok := countKey.From(back)
		assert.True(t, ok)
		assert.Equal(t, int64(math.MaxInt64), n, "integers keep their digits")
		_, ok = agent.RunKey[note]("example.note").From(back)
		assert.False(t, ok, "the scopes stay apart")

		again := throughJSON(t, back)
		requireSame(t, s, again)
		first, err := json.Marshal(back)
		require.NoError(t, err)
		second, err := json.Marshal(again)
		require.NoError(t, err)
		assert.Equal(t, string(first), string(second))
	})
}

func TestStateGolden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := full(t)
		data, err := s.MarshalJSON()
		require.NoError(t, err)
		var indented bytes.Buffer
		require.NoError(t, json.Indent(&indented, data, "", "\t"))
		indented.WriteByte('\n')
		path := filepath.Join("testdata", "state.json")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, indented.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err, "run the test with -update")
		assert.Equal(t, string(want), indented.String(), "the JSON form has changed: a new version of it, or a mistake?")

		var back agent.State
		require.NoError(t, json.Unmarshal(want, &back))
		requireSame(t, s, back)
	})
}

// IP-108: a run's counters continue after JSON, also in another process.
func TestARunGoesOnAfterJSON(t *testing.T) {
	s := play(t, calls("fail", "add").WithTokens(10, 1).WithCost(1), agenttest.Say("one").WithTokens(20, 2).WithCost(2))
	back := throughJSON(t, s)
	assert.Equal(t, 1, back.RunFailures())
	assert.Equal(t, 2, back.RunStepCount())
	assert.Equal(t, agent.StatusDone, back.Status())

	a := build(t, agent.Config{Driver: agenttest.Script(agenttest.Say("two").WithTokens(30, 3).WithCost(3)).EachRun()})
	next, err := a.Run(t.Context(), back, agent.UserText("and?")).Get()
	require.NoError(t, err)
	assert.Equal(t, s.Session(), next.Session())
	assert.Equal(t, 2, next.Run().Number)
	assert.Equal(t, 3, next.StepCount())
	assert.Equal(t, 1, next.RunStepCount())
	assert.Equal(t, agent.Usage{InputTokens: 60, OutputTokens: 6, Cost: mo.Some(6.0)}, next.Usage())
	assert.Zero(t, next.RunFailures())
	assert.Equal(t, []string{"hello", "", "out of paper", "0", "one", "and?", "two"}, texts(next))
	assert.Equal(t, []string{"hello", "", "out of paper", "0", "one"}, texts(back), "the state that was read stays as it was")
}

// IP-77: signals are read back with their details, and numbers keep their digits.
func TestSignalsComeBackFromJSON(t *testing.T) {
	signal := agent.Signal{
		Reason: agent.StopStepsLimit, Message: "20 steps are enough", Source: "guard",
		Details: map[string]any{"currentSteps": 20, "maxSteps": int64(math.MaxInt64), "share": 0.5, "tools": []string{"bash"}},
	}
	back := signalOf(t, throughJSON(t, agent.NewState().WithStop(signal)))
	assert.Equal(t, agent.Signal{
		Reason: agent.StopStepsLimit, Message: "20 steps are enough", Source: "guard",
		Details: map[string]any{
			"currentSteps": json.Number("20"), "maxSteps": json.Number("9223372036854775807"), "share": json.Number("0.5"),
			"tools": []any{"bash"},
		},
	}, back)
	requireSameSignal(t, signal, back)
}

func TestUnknownCostStaysUnknown(t *testing.T) {
	known := play(t, agenttest.Say("hi").WithTokens(1, 1).WithCost(0))
	unknown := play(t, agenttest.Say("hi").WithTokens(1, 1))
	assert.Equal(t, mo.Some(0.0), throughJSON(t, known).Usage().Cost)
	assert.Equal(t, mo.None[float64](), throughJSON(t, unknown).Usage().Cost)
	assert.Equal(t, mo.Some(0.0), throughJSON(t, agent.State{}).Usage().Cost, "nothing used is known to cost nothing")
}

func TestTheZeroStateComesBackFromJSON(t *testing.T) {
	requireSame(t, agent.State{}, throughJSON(t, agent.State{}))
	data, err := json.Marshal(agent.State{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"version":3,"usage_before":{"input_tokens":0,"output_tokens":0,"cost":0},"run_usage":{"input_tokens":0,"output_tokens":0,"cost":0}}`, string(data))
}

func TestTimesAreWrittenInUTC(t *testing.T) {
	const local, utc = "2026-01-02T03:04:05.000000006+02:00", "2026-01-02T01:04:05.000000006Z"
	text := func(at string) string {
		return fmt.Sprintf(`{"version":3,"run":{"id":"r","session":"s","root":"r","number":1,"started":%q},"messages":[`+
			`{"role":"assistant","calls":[{"id":"1","name":"a","arguments":""}]},`+
			`{"role":"tool","call_id":"1","tool":"a","status":"executed"}],"accepted":2,`+
			`"steps":[{"index":0,"message":0,"results":[{"attempts":1,"started":%q}],"started":%q}],`+
			`"usage_before":{"input_tokens":0,"output_tokens":0,"cost":0},"run_usage":{"input_tokens":0,"output_tokens":0,"cost":0}}`, at, at, at)
	}
	var s agent.State
	require.NoError(t, json.Unmarshal([]byte(text(local)), &s))
	data, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Equal(t, text(utc), string(data))
}

func TestAViewIsNotWritten(t *testing.T) {
	s := agent.NewState(agent.UserText("hello"))
	back := throughJSON(t, s.WithView(agent.UserText("shown")).WithRequest(agent.Request{Model: "m"}))
	assert.Equal(t, []string{"hello"}, texts(back))
	assert.Zero(t, back.Request())
}

func TestTextThatIsNoTextIsWrittenAsServicesSeeIt(t *testing.T) {
	back := throughJSON(t, agent.NewState(agent.UserText("a\xffb")))
	assert.Equal(t, "a\uFFFDb", back.Message(0).Text())
}

func TestWhatNoStateCanHoldIsNotWritten(t *testing.T) {
	wrongCall := agent.Assistant("", agent.ToolCall{ID: "1", Name: "a"})
	for name, tc := range map[string]struct {
		s    agent.State
		says string
	}{
		"a value that JSON cannot hold": {
			agent.RunKey[chan int]("a/b").In(agent.State{}, nil), "at /metadata/run/a~1b: json: unsupported type: chan int",
		},
		"a key that is no text":       {agent.SessionKey[int]("\xff").In(agent.State{}, 1), "is not valid UTF-8"},
		"a message without a role":    {agent.NewState(agent.UserText("x"), agent.Message{}), "at /messages/1/role: the message has no role"},
		"calls of a user":             {agent.NewState(agent.UserText("x").WithCalls(wrongCall.Call(0))), `at /messages/0/calls: a message of role "user" cannot have calls`},
		"a kind of part of one's own": {agent.NewState(agent.User(agent.Part{Kind: "smell"})), `at /messages/0/parts/0/kind: unknown kind "smell"`},
		"a status of one's own":       {agent.Checkpoint(agent.State{}).WithStatus("asleep"), `at /status: unknown status "asleep"`},
		"details that JSON cannot hold": {
			agent.State{}.WithStop(agent.Signal{Details: map[string]any{"f": math.Inf(1)}}), "at /signal/details: json: unsupported value",
		},
		"a cost that is not an amount": {
			play(t, agenttest.Say("x").WithCost(math.NaN())), "at /steps/0/usage/cost: NaN is not an amount",
		},
		"negative tokens": {play(t, agenttest.Say("x").WithTokens(-1, 0)), "at /steps/0/usage/input_tokens: -1 is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.s.MarshalJSON()
			require.ErrorContains(t, err, "writing the state: ")
			assert.ErrorContains(t, err, tc.says)
		})
	}
}

// Invalid states that the decoder must refuse, with the location of the error.
func TestWhatNoStateCanHoldIsNotRead(t *testing.T) {
	const hello = `{"role":"user","text":"hello"}`
	const asks = `{"role":"assistant","calls":[{"id":"1","name":"a","arguments":"{}"},{"id":"2","name":"b","arguments":"{}"}]}`
	const tool1 = `{"role":"tool","call_id":"1","tool":"a","status":"executed"}`
	const tool2 = `{"role":"tool","call_id":"2","tool":"b","status":"executed"}`
	step := func(messages, steps string, more ...string) string {
		return fmt.Sprintf(`{"version":3,"messages":[%s],"steps":[%s]%s}`, messages, steps, strings.Join(more, ""))
	}
	whole := []string{hello, asks, tool1, tool2}
	batch := func(i int, instead, steps string, more ...string) string {
		messages := append([]string{}, whole...)
		if i >= 0 {
			messages[i] = instead
		}
		return step(strings.Join(messages, ","), steps, more...)
	}
	const ok = `{"index":0,"message":1,"results":[{},{}]}`
	require.NoError(t, json.Unmarshal([]byte(batch(-1, "", ok, `,"accepted":4`)), new(agent.State)), "what the rest is made of")

	for name, tc := range map[string]struct{ text, says string }{
		"nothing":                  {``, "the text is empty"},
		"null":                     {`null`, "/version: no version"},
		"a list":                   {`[]`, "expected object, got array"},
		"no version":               {`{"messages":[]}`, "/version: no version: this is not the JSON form of a state"},
		"a newer version":          {`{"version":4,"novelty":true}`, "/version: version 4 is newer than this program reads (3): use a newer version of the module"},
		"an older version":         {`{"version":0}`, "/version: version 0 is older than this program reads (3): use the version of the module that wrote it"},
		"a version in words":       {`{"version":"one"}`, "/version: expected integer"},
		"a version given twice":    {`{"version":3,"version":3}`, "given twice"},
		"an unknown member":        {`{"version":3,"massages":[]}`, `/massages: member "massages" is not known`},
		"a member in other case":   {`{"version":3,"Messages":[]}`, `/Messages: member "Messages" is not known`},
		"an unknown member deep":   {`{"version":3,"messages":[{"role":"user","parts":[{"kind":"text","txt":"x"}]}]}`, `/messages/0/parts/0/txt: member "txt" is not known`},
		"more than one value":      {`{"version":3} {}`, "not valid JSON"},
		"a status":                 {`{"version":3,"status":"asleep"}`, `/status: unknown status "asleep"`},
		"a role":                   {`{"version":3,"messages":[{"role":"developer"}]}`, `/messages/0/role: unknown role "developer"`},
		"no role":                  {`{"version":3,"messages":[{"text":"x"}]}`, `/messages/0/role: the message has no role`},
		"a tool status":            {`{"version":3,"messages":[{"role":"tool","status":"done"}]}`, `/messages/0/status: unknown status "done"`},
		"a user's tool status":     {`{"version":3,"messages":[{"role":"user","status":"executed"}]}`, `/messages/0: a message of role "user" cannot have call_id, tool, status or reason`},
		"a user's calls":           {`{"version":3,"messages":[{"role":"user","calls":[{"id":"1"}]}]}`, `/messages/0/calls: a message of role "user" cannot have calls`},
		"text and parts":           {`{"version":3,"messages":[{"role":"user","text":"a","parts":[{"kind":"text"}]}]}`, `/messages/0/parts: a message cannot have both text and parts`},
		"data":                     {`{"version":3,"messages":[{"role":"user","parts":[{"kind":"image","data":"!"}]}]}`, "/messages/0/parts/0/data: reading base64"},
		"accepted":                 {`{"version":3,"messages":[` + hello + `],"accepted":2}`, `/accepted: 2 is out of range: it must be from 0 to 1`},
		"negative accepted":        {`{"version":3,"accepted":-1}`, `/accepted: -1 is out of range`},
		"first":                    {`{"version":3,"first":1}`, `/first: 1 is out of range: it must be from 0 to 0`},
		"failures":                 {`{"version":3,"failures":1}`, `/failures: 1 is out of range: it must be from 0 to 0`},
		"a negative run":           {`{"version":3,"run":{"id":"r","session":"s","root":"r","number":-1,"started":"2026-01-01T00:00:00Z"}}`, `/run/number: -1 is negative`},
		"a time":                   {`{"version":3,"run":{"started":"yesterday"}}`, `/run/started: `},
		"usage":                    {`{"version":3,"usage_before":{"output_tokens":-5}}`, `/usage_before/output_tokens: -5 is negative`},
		"run usage":                {`{"version":3,"run_usage":{"reasoning_tokens":-5}}`, `/run_usage/reasoning_tokens: -5 is negative`},
		"half a token":             {`{"version":3,"usage_before":{"output_tokens":0.5}}`, `/usage_before/output_tokens: expected integer`},
		"a step of nothing":        {step("", `{"index":0}`), `/steps/0: a step must have a message or a failure`},
		"a step's index":           {step("", `{"index":1,"failure":{"kind":"model","text":"x"}}`), `/steps/0/index: the index is 1: it must be 0 here`},
		"a step's index, later":    {step("", `{"index":0,"failure":{"kind":"model","text":"x"}},{"index":0,"failure":{"kind":"model","text":"x"}}`), `/steps/1/index: the index is 0: it must be 1 here`},
		"no message there":         {batch(-1, "", `{"index":0,"message":4}`), `/steps/0/message: 4 is out of range: it must be from 0 to 3`},
		"a message before zero":    {batch(-1, "", `{"index":0,"message":-1}`), `/steps/0/message: -1 is out of range`},
		"another's message":        {batch(-1, "", ok+`,{"index":1,"message":1}`), `/steps/1/message: 1 is out of range: it must be from 4 to 3`},
		"a user's message":         {batch(-1, "", `{"index":0,"message":0}`), `/steps/0/message: message 0 has role "user": it must be "assistant"`},
		"a result too few":         {batch(-1, "", `{"index":0,"message":1,"results":[{}]}`), `/steps/0/results: 1 results for 2 calls: every call must have one`},
		"results without call":     {batch(-1, "", `{"index":0,"failure":{"kind":"model","text":"x"},"results":[{}]}`), `/steps/0/results: results without a message`},
		"an answer too few":        {step(strings.Join(whole[:3], ","), ok), `/steps/0/results: 2 calls and 1 messages after them: every call must have an answer`},
		"an answer of a user":      {batch(3, hello, ok), `/steps/0/results/1: call "2" of tool "b" is followed by a message of role "user"`},
		"another call's answer":    {batch(3, tool1, ok), `/steps/0/results/1: call "2" of tool "b" is followed by a message of role "tool" for call "1" of tool "a"`},
		"another tool's answer":    {batch(2, `{"role":"tool","call_id":"1","tool":"c","status":"executed"}`, ok), `/steps/0/results/0: call "1" of tool "a" is followed by`},
		"an answer without status": {batch(2, `{"role":"tool","call_id":"1","tool":"a"}`, ok), `/steps/0/results/0: the answer to call "1" has no status`},
		"two calls of one id":      {batch(1, strings.Replace(asks, `"2"`, `"1"`, 1), ok), `/steps/0/message: call 1 of message 1 has the id "1": every call must have a unique id`},
		"a call without an id":     {batch(1, strings.Replace(asks, `"1"`, `""`, 1), ok), `/steps/0/message: call 0 of message 1 has the id ""`},
		"another effective call":   {batch(-1, "", `{"index":0,"message":1,"results":[{"call":{"id":"9","name":"a","arguments":""}},{}]}`), `/steps/0/results/0/call/id: the id is "9": it must be "1"`},
		"negative attempts":        {batch(-1, "", `{"index":0,"message":1,"results":[{},{"attempts":-1}]}`), `/steps/0/results/1/attempts: -1 is negative`},
		"a step's usage":           {batch(-1, "", `{"index":0,"message":1,"usage":{"input_tokens":-1},"results":[{},{}]}`), `/steps/0/usage/input_tokens: -1 is negative`},
		"answers not let in":       {batch(-1, "", ok, `,"accepted":3`), `/accepted: 3 is out of range: it must be from 4 to 4`},
		"doubled metadata":         {`{"version":3,"metadata":{"run":{"a":{"b":1,"b":2}}}}`, "given twice"},
		"metadata of no scope":     {`{"version":3,"metadata":{"process":{}}}`, `/metadata/process: member "process" is not known`},
		"no text":                  {"{\"version\":3,\"session\":\"\xff\"}", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			s := agent.NewState(agent.UserText("as it was"))
			err := s.UnmarshalJSON([]byte(tc.text))
			require.ErrorContains(t, err, "reading a state: ")
			assert.ErrorContains(t, err, tc.says)
			assert.Equal(t, []string{"as it was"}, texts(s), "a state that cannot be read changes nothing")
		})
	}
}

func FuzzStateJSON(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "state.json"))
	require.NoError(f, err)
	var compact bytes.Buffer
	require.NoError(f, json.Compact(&compact, golden))
	f.Add(compact.Bytes())
	f.Add([]byte(`{"version":3}`))
	f.Add([]byte(`{"version":3,"messages":[{"role":"assistant","calls":[{"id":"1","name":"a","arguments":""}]},` +
		`{"role":"tool","call_id":"1","tool":"a","status":"mocked"}],"accepted":2,"steps":[{"index":0,"message":0,"results":[{}]}]}`))
	f.Add([]byte(`{"version":3,"first":1,"steps":[{"index":0,"failure":{"kind":"","text":""}},{"index":0,"failure":{"kind":"","text":""}}]}`))
	f.Add([]byte(`{"version":3,"status":"parked","open_step":{"reply":{"role":"assistant","calls":[{"id":"1","name":"a","arguments":""}]},"calls":[` +
		`{"begun":{"id":"1","name":"a","arguments":""},"child":{"version":3,"status":"parked","open_step":{"reply":{"role":"assistant",` +
		`"calls":[{"id":"2","name":"b","arguments":""}]},"calls":[{"asked":{"id":"q","questions":[{}],"call":{"id":"2","name":"b","arguments":""},"prepared":"x","asked":"2026-01-02T03:04:05Z"}}]}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s agent.State
		if s.UnmarshalJSON(data) != nil {
			return
		}
		first, err := s.MarshalJSON()
		require.NoError(t, err, "a state that was read cannot be written")
		var back agent.State
		require.NoError(t, back.UnmarshalJSON(first), "a state does not read what it wrote: %s", first)
		requireSame(t, s, back)
		second, err := back.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
		for _, m := range s.Messages() { // messages stand on their own
			text, err := m.MarshalJSON()
			require.NoError(t, err)
			var alone agent.Message
			require.NoError(t, alone.UnmarshalJSON(text))
			require.True(t, m.Equal(alone))
		}
	})
}

// Messages of all kinds are unchanged after JSON.
func TestMessagesComeBackFromJSON(t *testing.T) {
	text := rapid.StringOf(rapid.Rune())
	part := rapid.Custom(func(t *rapid.T) agent.Part {
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		return rapid.SampledFrom([]agent.Part{
			agent.Text(text.Draw(t, "text")), agent.Reasoning(text.Draw(t, "thought"), text.Draw(t, "opaque")),
			agent.Image("image/png", raw), agent.ImageURL(text.Draw(t, "url")),
			agent.File(text.Draw(t, "name"), "text/plain", raw), agent.FileURL("f", text.Draw(t, "url")),
		}).Draw(t, "part")
	})
	rapid.Check(t, func(t *rapid.T) {
		content := agent.ContentOf(rapid.SliceOfN(part, 0, 4).Draw(t, "parts")...)
		call := agent.ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")}
		m := rapid.SampledFrom([]agent.Message{
			agent.System(text.Draw(t, "system")), agent.User().WithContent(content),
			agent.AssistantContent(content, call, call), agent.ToolAnswer((&agent.ToolResult{
				Content: content, DecidedBy: text.Draw(t, "by"),
				Status: rapid.SampledFrom([]agent.ToolStatus{
					agent.ToolExecuted, agent.ToolFailed, agent.ToolMocked, agent.ToolNotExecuted, "",
				}).Draw(t, "status"),
				Reason: agent.ReasonCode(text.Draw(t, "reason")),
			}).To(&agent.Prepared{Original: &call, Call: &call})),
		}).Draw(t, "message").WithSource(text.Draw(t, "source"))
		data, err := json.Marshal(m)
		require.NoError(t, err)
		var back agent.Message
		require.NoError(t, json.Unmarshal(data, &back))
		require.True(t, m.Equal(back), "%s", data)
	})
}

func ExampleMessage_MarshalJSON() {
	data, _ := json.Marshal([]agent.Message{
		agent.User(agent.Text("What is this?"), agent.Image("image/png", []byte{137, 80, 78, 71})),
		agent.Assistant("", agent.ToolCall{ID: "call_1", Name: "look", Arguments: `{"closely":true}`}),
	})
	var messages []agent.Message
	fmt.Println(string(data))
	fmt.Println(json.Unmarshal(data, &messages), messages[1].Call(0).Name)
	fmt.Println(json.Unmarshal([]byte(`[{"role":"user","txt":"hello"}]`), &messages))
	// Output:
	// [{"role":"user","parts":[{"kind":"text","text":"What is this?"},{"kind":"image","media_type":"image/png","data":"iVBORw=="}]},{"role":"assistant","calls":[{"id":"call_1","name":"look","arguments":"{\"closely\":true}"}]}]
	// <nil> look
	// reading a message: at /txt: member "txt" is not known
}

// A run is parked in one process and continues in another.
func ExampleState_MarshalJSON() {
	ctx := context.Background()
	a := agent.New(agent.Config{Driver: agenttest.Script(agenttest.Say("hello"), agenttest.Say("still here"))}).MustGet()
	s := a.Run(ctx, agent.NewState(), agent.UserText("hi")).MustGet()

	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	var back agent.State
	if err := json.Unmarshal(data, &back); err != nil {
		panic(err)
	}
	s = a.Run(ctx, back, agent.UserText("are you there?")).MustGet()
	fmt.Print(agenttest.Transcript(s))
	// Output:
	// user: hi
	// assistant: hello
	// user: are you there?
	// assistant: still here
}
