package toolexec_test

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/toolexec"
)

func prepare(t testing.TB, e agent.Executor, c agent.ToolCall) *agent.Prepared {
	t.Helper()
	p, err := e.Prepare(t.Context(), agent.State{}, &c).Get()
	require.NoError(t, err)
	return p
}

// IP-45, X-13
func TestRefusedCallsDoNotRun(t *testing.T) {
	for _, test := range []struct {
		name   string
		call   agent.ToolCall
		reason agent.ReasonCode
		text   string
	}{
		{
			"missing and wrong", call("add", `{"a":"two"}`), agent.ReasonInvalid,
			`tool "add": not executed: checking arguments: 2 problems: `,
		},
		{
			"not known", call("add", `{"a":1,"b":2,"c":3}`), agent.ReasonInvalid,
			`tool "add": not executed: checking arguments: /c: is not known`,
		},
		{"no arguments", call("add", ``), agent.ReasonInvalid, `2 problems`},
		{
			"not JSON", call("add", `a=1`), agent.ReasonMalformed,
			`tool "add": not executed: reading arguments: not valid JSON at byte 0`,
		},
		{"no object", call("add", `[1,2]`), agent.ReasonMalformed, `expected one JSON object, got array`},
		{"two readings", call("add", `{"a":1,"b":2,"a":3}`), agent.ReasonMalformed, `"a" is given twice`},
		{"two spellings", call("add", `{"a":1,"b":2,"A":3}`), agent.ReasonMalformed, `differ only in case`},
		{
			"unknown tool", call("ADD", `{"a":1,"b":2}`), agent.ReasonUnknownTool,
			`unknown tool "ADD"; did you mean "add"?; the tools are add, subtract`,
		},
		{"unknown tool, nothing like it", call("bash", `{}`), agent.ReasonUnknownTool, `unknown tool "bash"; the tools are add, subtract`},
		{"malformed goes before unknown", call("bash", `{`), agent.ReasonMalformed, `tool "bash": not executed: reading arguments: `},
		{"a name without end", call(strings.Repeat("é", 5000), `{}`), agent.ReasonUnknownTool, `unknown tool "éé`},
	} {
		t.Run(test.name, func(t *testing.T) {
			never := func(context.Context, pair) (string, error) { t.Error("the tool ran"); return "", nil }
			e := executor(t, toolexec.Options{}, toolexec.Func("add", "", never), toolexec.Func("subtract", "", never))
			p := prepare(t, e, test.call)
			assert.Equal(t, agent.DisposeAnswer, p.Disposition)
			assert.Equal(t, &test.call, p.Original)
			assert.Equal(t, &test.call, p.Call)
			require.Error(t, p.Invalid)
			assert.Equal(t, agent.KindInvalid, agent.KindOf(p.Invalid))

			r, err := e.Execute(t.Context(), agent.State{}, p).Get()
			require.NoError(t, err)
			assert.Equal(t, agent.ToolNotExecuted, r.Status)
			assert.Equal(t, test.reason, r.Reason)
			assert.Contains(t, r.Text(), test.text)
			assert.Less(t, len(r.Text()), 1000)
			assert.Equal(t, p.Invalid, r.Err)
			assert.Zero(t, r.Attempts)
			assert.Zero(t, r.Started)
			assert.False(t, r.Executed())
			assert.True(t, r.IsError())
		})
	}
}

func TestInvalidTellsMalformedFromUnfit(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "", add))
	var wrong *agent.ArgumentsError
	require.ErrorAs(t, prepare(t, e, call("add", `{`)).Invalid, &wrong)
	assert.True(t, wrong.Malformed)
	require.ErrorAs(t, prepare(t, e, call("add", `{}`)).Invalid, &wrong)
	assert.False(t, wrong.Malformed)
	assert.Len(t, wrong.Problems, 2)
	require.ErrorAs(t, prepare(t, e, call("nothing", `{`)).Invalid, &wrong, "malformed, for any tool")
	assert.True(t, wrong.Malformed)
	var unknown *toolexec.UnknownToolError
	require.ErrorAs(t, prepare(t, e, call("adds", `{}`)).Invalid, &unknown)
	assert.Equal(t, "adds", unknown.Name)
	assert.Equal(t, "add", unknown.Nearest)
}

func TestLongToolListsAreCut(t *testing.T) {
	tools := make([]toolexec.Tool, 100)
	for i := range tools {
		tools[i] = toolexec.Func("tool_"+strings.Repeat("x", i), "", add)
		if i >= 50 {
			tools[i] = toolexec.Func("y"+strings.Repeat("x", i-50), "", add)
		}
	}
	text := answer(t, t.Context(), executor(t, toolexec.Options{}, tools...), call("bash", `{}`)).Text()
	assert.True(t, strings.HasSuffix(text, " and 80 more"), text)
}

type explosive struct{}

func (*explosive) UnmarshalJSON(text []byte) error {
	if string(text) == "1" {
		panic("boom")
	}
	return nil
}

// early does not even let itself be looked at.
type early struct{}

func (early) JSONSchema() string { panic("no schema today") }

func TestPanicWhileArgumentsAreReadIsAnAnswer(t *testing.T) {
	e := executor(t, toolexec.Options{},
		toolexec.Func("bomb", "", func(context.Context, struct{ Fuse explosive }) (string, error) { return "", nil }),
		foreign{spec: agent.ToolSpec{Name: "empty"}, prepare: func(string) (toolexec.Body, error) { return nil, nil }})
	r := answer(t, t.Context(), e, call("bomb", `{"Fuse":1}`))
	assert.Equal(t, agent.ToolNotExecuted, r.Status)
	assert.Equal(t, agent.ReasonPanic, r.Reason)
	assert.Equal(t, `tool "bomb": not executed: it panicked while it read its arguments`, r.Text())
	var panicked *toolexec.PanicError
	require.ErrorAs(t, r.Err, &panicked)
	assert.Contains(t, panicked.Stack, "UnmarshalJSON")

	_, err := toolexec.NewToolbox(toolexec.Func("early", "", func(context.Context, struct{ E early }) (string, error) { return "", nil }))
	assert.ErrorContains(t, err, `tool "early": panicked: no schema today`)

	r = answer(t, t.Context(), e, call("empty", `{}`))
	assert.Equal(t, `tool "empty": not executed: the tool prepared nothing`, r.Text())
}

func TestPrepareRunsNothingAndForgetsNothing(t *testing.T) {
	runs := 0
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "", func(ctx context.Context, in pair) (string, error) {
		runs++
		return add(ctx, in)
	}))
	first, second := prepare(t, e, call("add", `{"a":1,"b":1}`)), prepare(t, e, call("add", `{"a":2,"b":2}`))
	assert.Zero(t, runs)
	assert.Equal(t, agent.DisposeRun, first.Disposition)
	assert.NoError(t, first.Invalid)
	assert.Equal(t, "4", e.Execute(t.Context(), agent.State{}, second).MustGet().Text())
	assert.Equal(t, "2", e.Execute(t.Context(), agent.State{}, first).MustGet().Text())
	assert.Equal(t, 2, runs)
}

// The tool receives exactly the arguments that a rule saw, even if the call was
// changed.
func TestChangedCallIsCheckedAnew(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "", add), toolexec.Func("subtract", "", func(_ context.Context, in pair) (int, error) {
		return in.A - in.B, nil
	}))
	other := executor(t, toolexec.Options{}, toolexec.Func("add", "", func(context.Context, pair) (string, error) { return "other", nil }))
	original := call("add", `{"a":2,"b":3}`)
	execute := func(change func(*agent.Prepared)) *agent.ToolResult {
		p := *prepare(t, e, original)
		own := *p.Call
		p.Call = &own
		change(&p)
		return e.Execute(t.Context(), agent.State{}, &p).MustGet()
	}
	assert.Equal(t, "5", execute(func(*agent.Prepared) {}).Text())
	assert.Equal(t, "9", execute(func(p *agent.Prepared) { p.Call.Arguments = `{"a":4,"b":5}` }).Text())
	assert.Equal(t, "-1", execute(func(p *agent.Prepared) { p.Call.Name = "subtract" }).Text())
	assert.Equal(t, "5", execute(func(p *agent.Prepared) { p.Carry = nil }).Text(), "restored from a store")
	assert.Equal(t, "5", execute(func(p *agent.Prepared) { p.Carry = prepare(t, other, original).Carry }).Text(), "another toolbox's tool of that name")

	rewritten := execute(func(p *agent.Prepared) { p.Call.Arguments = `{"a":4}` })
	assert.Equal(t, agent.ToolNotExecuted, rewritten.Status)
	assert.Equal(t, agent.ReasonInvalid, rewritten.Reason)

	kept := execute(func(p *agent.Prepared) { p.Call.Arguments = `{"a":4,"b":5}` })
	assert.Equal(t, original, kept.Original())
	assert.Equal(t, `{"a":4,"b":5}`, kept.Call().Arguments)
	assert.True(t, kept.Rewritten())
}

func FuzzPrepare(f *testing.F) {
	for _, args := range []string{``, `{}`, `{"a":1,"b":2}`, `{"a":1,"a":2}`, `{"a":1e400,"b":"\ud800"}`, `[`, "\xff", `{"list":[{"x":null}],"a":1.0,"b":2}`} {
		for _, name := range []string{"typed", "nested", "raw", "none", ""} {
			f.Add(name, args)
		}
	}
	type nested struct {
		List []struct{ X *float64 } `json:"list"`
		Any  any                    `json:"any,omitempty"`
	}
	box, err := toolexec.NewToolbox(
		toolexec.Func("typed", "", add),
		toolexec.Func("nested", "", func(_ context.Context, in nested) (nested, error) { return in, nil }),
		toolexec.Raw(agent.ToolSpec{Name: "raw", Parameters: `{"type":"object"}`}, func(_ context.Context, c toolexec.Call) (string, error) {
			return c.Arguments, nil
		}))
	if err != nil {
		f.Fatal(err)
	}
	e := toolexec.NewExecutor(box, toolexec.Options{})
	f.Fuzz(func(t *testing.T, name, args string) {
		c := call(name, args)
		p := prepare(t, e, c)
		assert.Equal(t, &c, p.Original)
		assert.Equal(t, &c, p.Call)
		switch p.Disposition { // exactly one of: run, answer
		case agent.DisposeRun:
			assert.Nil(t, p.Answer)
			assert.NoError(t, p.Invalid)
		case agent.DisposeAnswer:
			require.NotNil(t, p.Answer)
			require.Error(t, p.Invalid)
			assert.Equal(t, agent.ToolNotExecuted, p.Answer.Status)
			assert.NotEmpty(t, p.Answer.Reason)
			assert.NotEmpty(t, p.Answer.Text())
		default:
			t.Errorf("disposition %d", p.Disposition)
		}
		r, err := e.Execute(t.Context(), agent.State{}, p).Get()
		require.NoError(t, err)
		assert.Equal(t, p.Disposition == agent.DisposeRun, r.Executed())

		// What another executor has prepared is prepared again, and comes to the same.
		again, err := e.Execute(t.Context(), agent.State{}, &agent.Prepared{Original: &c, Call: &c}).Get()
		require.NoError(t, err)
		assert.Equal(t, r.Text(), again.Text())
		assert.Equal(t, r.Status, again.Status)
		assert.Equal(t, r.Reason, again.Reason)
		if p.Strict { // its arguments are not read strictly a second time
			require.NoError(t, strictjson.CheckObject(cmp.Or(args, "{}")))
		}
	})
}

// Prepare says whether the call's tool may run again when the call is in doubt.
func TestWhichCallsMayBeRepeated(t *testing.T) {
	tool := func(name string) toolexec.Tool {
		return toolexec.Func(name, "", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	box, err := toolexec.NewToolbox(tool("pay"), toolexec.WithPolicy(tool("look"), toolexec.Policy{Doubt: toolexec.DoubtRepeat}))
	require.NoError(t, err)
	x := toolexec.NewExecutor(box, toolexec.Options{})
	for name, want := range map[string]bool{"pay": false, "look": true, "nothing": false} {
		p, err := x.Prepare(t.Context(), agent.State{}, &agent.ToolCall{ID: "1", Name: name}).Get()
		require.NoError(t, err)
		assert.Equal(t, want, p.Repeats, name)
	}
}
