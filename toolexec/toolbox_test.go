package toolexec_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestToolboxReportsEverythingAtOnce(t *testing.T) {
	_, err := toolexec.NewToolbox(
		toolexec.Func("add", "", add),
		nil,
		toolexec.WithPolicy(nil, toolexec.Policy{}),
		toolexec.Func("add", "", add),
		toolexec.Func("füge hinzu", "", add),
		toolexec.Func("", "", add),
		toolexec.Func("timer", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil }),
		toolexec.Func[pair, string]("idle", "", nil),
		toolexec.Raw[string](agent.ToolSpec{Name: "list", Parameters: `{"type":"array"}`}, nil),
		foreign{spec: agent.ToolSpec{Name: "alien", Parameters: `{"type":"objekt"}`}},
	)
	require.Error(t, err)
	for _, want := range []string{
		"building the toolbox: tool 2 of 10 is nil",
		"tool 3 of 10 is nil",
		`tool "add": the name is given twice`,
		`tool "füge hinzu": a name must be 1 to 64 letters, digits, _ and -`,
		`tool "": a name must be 1 to 64 letters, digits, _ and -`,
		`tool "timer": inferring schema of struct { C chan int }`,
		`tool "idle": the func is nil`,
		`tool "list": compiling schema: arguments must be an object`,
		`tool "alien": parameters: compiling schema`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestToolNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"bash": true, "mcp__files__read_file": true, "read-file": true, "A1": true, "_": true, strings.Repeat("x", 64): true,
		"": false, "a b": false, "a.b": false, "ä": false, "a\n": false, strings.Repeat("x", 65): false,
	} {
		_, err := toolexec.NewToolbox(toolexec.Func(name, "", add))
		assert.Equal(t, valid, err == nil, "name %q: %v", name, err)
	}
}

func TestToolboxKeepsItsOrder(t *testing.T) {
	box := toolbox(t, toolexec.Func("b", "second letter", add), toolexec.Func("a", "first letter", add))
	more, err := box.With(toolexec.Func("c", "", add))
	require.NoError(t, err)
	other, err := box.With(toolexec.Func("d", "", add))
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "a"}, names(box), "the receiver stays as it was")
	assert.Equal(t, []string{"b", "a", "c"}, names(more))
	assert.Equal(t, []string{"b", "a", "d"}, names(other), "two children do not share a slot")
	assert.Equal(t, 3, more.Specs().Len())
	first, _ := more.Specs().ByName("a")
	assert.Equal(t, "first letter", first.Description)
	_, err = more.With(toolexec.Func("a", "", add))
	assert.ErrorContains(t, err, `tool "a": the name is given twice`)
}

func TestToolboxGivesBackWhatWasPutIn(t *testing.T) {
	given := toolexec.WithPolicy(toolexec.Func("add", "", add), toolexec.Policy{MaxResultBytes: 1})
	first := toolbox(t, given)
	for _, tool := range first.All() {
		second := executor(t, toolexec.Options{}, tool)
		assert.Equal(t, "1", answer(t, t.Context(), second, call("add", `{"a":5,"b":5}`)).Text(), "the policy came along")
	}
}

func TestEmptyToolboxHasNoTools(t *testing.T) {
	e := toolexec.NewExecutor(toolexec.Toolbox{}, toolexec.Options{})
	r := answer(t, t.Context(), e, call("bash", `{}`))
	assert.Equal(t, agent.ReasonUnknownTool, r.Reason)
	assert.Equal(t, `unknown tool "bash"; the agent has no tools`, r.Text())
}

func TestBrokenToolThatIsAskedAllTheSame(t *testing.T) {
	_, err := toolexec.Func("timer", "", func(context.Context, chan int) (string, error) { return "", nil }).Prepare(`{}`)
	assert.ErrorContains(t, err, "the tool is not usable: inferring schema of chan int")
	_, err = toolexec.Raw[string](agent.ToolSpec{Name: "idle"}, nil).Prepare(`{}`)
	assert.EqualError(t, err, "the tool is not usable: the func is nil")
}

func names(b toolexec.Toolbox) []string {
	var out []string
	for name := range b.All() {
		out = append(out, name)
	}
	return out
}

// foreign is a tool that has nothing from this package.
type foreign struct {
	spec    agent.ToolSpec
	policy  toolexec.Policy
	prepare func(args string) (toolexec.Body, error)
}

func (f foreign) Spec() agent.ToolSpec                           { return f.spec }
func (f foreign) Policy() toolexec.Policy                        { return f.policy }
func (f foreign) Prepare(args string) (toolexec.Body, error)     { return f.prepare(args) }
func body(f func(toolexec.Call) (toolexec.Output, error)) bodied { return f }

type bodied func(toolexec.Call) (toolexec.Output, error)

func (f bodied) Run(_ context.Context, c toolexec.Call) (toolexec.Output, error) { return f(c) }

func TestForeignToolIsCheckedStrictlyBeforeItIsAsked(t *testing.T) {
	var asked []string
	e := executor(t, toolexec.Options{}, foreign{
		spec:   agent.ToolSpec{Name: "alien", Parameters: `{"type":"object"}`},
		policy: toolexec.Policy{MaxResultBytes: 3},
		prepare: func(args string) (toolexec.Body, error) {
			asked = append(asked, args)
			if args != `{}` {
				return nil, errors.New("only nothing will do")
			}
			return body(func(c toolexec.Call) (toolexec.Output, error) { return toolexec.TextOutput(c.Name), nil }), nil
		},
	})
	assert.Equal(t, agent.ReasonMalformed, answer(t, t.Context(), e, call("alien", `{"a":1,"a":2}`)).Reason)
	assert.Empty(t, asked)
	r := answer(t, t.Context(), e, call("alien", `{"a":1}`))
	assert.Equal(t, agent.ReasonInvalid, r.Reason)
	assert.Equal(t, `tool "alien": not executed: only nothing will do`, r.Text())
	assert.Equal(t, "ali", answer(t, t.Context(), e, call("alien", ``)).Text(), "its own policy")
	assert.Equal(t, []string{`{"a":1}`, `{}`}, asked)
}
