package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// workshop is tools that remember what ran.
type workshop struct {
	mu  sync.Mutex
	ran []string // tool and arguments
	ids []string // of the calls
}

var errPaper = errors.New("out of paper")

// capability is bash, read_file and write_file, which do as they are told, broken,
// which fails, and explodes, which panics.
func (w *workshop) capability() capability.Capability {
	note := func(c toolexec.Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran, w.ids = append(w.ran, c.Name+" "+c.Arguments), append(w.ids, c.ID)
	}
	type bash struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	}
	type file struct {
		Path string `json:"path"`
	}
	type nothing struct{}
	return capability.UseTools(
		toolexec.CallFunc(agent.ToolSpec{Name: "bash"}, func(_ context.Context, c toolexec.Call, in bash) (string, error) {
			note(c)
			return "ran " + in.Command, nil
		}),
		toolexec.CallFunc(agent.ToolSpec{Name: "read_file"}, func(_ context.Context, c toolexec.Call, in file) (string, error) {
			note(c)
			return "content of " + in.Path, nil
		}),
		toolexec.CallFunc(agent.ToolSpec{Name: "write_file"}, func(_ context.Context, c toolexec.Call, in file) (string, error) {
			note(c)
			return "wrote " + in.Path, nil
		}),
		toolexec.CallFunc(agent.ToolSpec{Name: "broken"}, func(_ context.Context, c toolexec.Call, _ nothing) (string, error) {
			note(c)
			return "", errPaper
		}),
		toolexec.CallFunc(agent.ToolSpec{Name: "explodes"}, func(_ context.Context, c toolexec.Call, _ nothing) (string, error) {
			note(c)
			panic("kaboom")
		}),
	)
}

// work is a run in which the model first makes some calls and then says "done".
type work struct {
	ending

	ran []string // what ran: tool and effective arguments, in the order they began
}

// wants returns a turn of the model with these calls, each as tool and arguments.
func wants(calls ...string) agenttest.Turn {
	turn := agenttest.Say("")
	for pair := range slices.Chunk(calls, 2) {
		turn = turn.Call(pair[0], pair[1])
	}
	return turn
}

func workWith(t testing.TB, list []hooks.Hook, turn agenttest.Turn, more ...capability.Capability) work {
	t.Helper()
	return workIn(t, t.Context(), list, turn, more...)
}

func workIn(t testing.TB, ctx context.Context, list []hooks.Hook, turn agenttest.Turn, more ...capability.Capability) work { //nolint:revive // t is first
	t.Helper()
	var shop workshop
	script := agenttest.Script(turn).Then(agenttest.Say("done"))
	done := playIn(t, ctx, script, list, append([]capability.Capability{shop.capability()}, more...)...)
	return work{done, shop.ran}
}

// parallel runs n calls at the same time.
func parallel(n int) capability.Capability {
	return capability.Func(func(p capability.Plan) (capability.Plan, error) { return p.WithParallel(n), nil })
}

// results returns the answers of the first step.
func (w work) results() []*agent.ToolResult {
	for _, step := range w.RunSteps() {
		var out []*agent.ToolResult
		for _, r := range step.Results() {
			out = append(out, &r)
		}
		return out
	}
	return nil
}

// result returns the answer to call i of the first step.
func (w work) result(i int) *agent.ToolResult { return w.results()[i] }

// answers returns the tool messages that the model received, one line for each.
func (w work) answers() []string {
	var out []string
	for _, m := range w.Messages() {
		if m.Role() == agent.RoleTool {
			out = append(out, fmt.Sprintf("%s %s %s: %s", m.CallID(), m.Tool(), m.Status(), m.Text()))
		}
	}
	return out
}

// events returns the hook events of the kinds.
func (w work) events(kinds ...hooks.EventKind) []hooks.Event {
	return lo.Filter(agenttest.Of[hooks.Event](w.recorder), func(e hooks.Event, _ int) bool { return slices.Contains(kinds, e.Kind) })
}

// before returns a control at PreToolUse.
func before(name string, f func(c hooks.ToolContext) hooks.Result, matching ...hooks.Matcher) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result { return f(c) }, matching...)
}

// after returns a control at PostToolUse.
func after(name string, f func(c hooks.ToolResultContext) hooks.Result, matching ...hooks.Matcher) hooks.Hook {
	return hooks.On(hooks.AtPostToolUse, name, func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return f(c) }, matching...)
}

func deny(reason string) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result { return c.Deny(reason) }
}

func stop(reason string) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result { return c.Stop(reason) }
}

func ask(reason string) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result { return c.Ask(reason) }
}

func mock(text string) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result { return c.Mock(text) }
}

func allow(c hooks.ToolContext) hooks.Result { return c.Allow() }

func rewriteTo(arguments any) func(hooks.ToolContext) hooks.Result {
	return func(c hooks.ToolContext) hooks.Result { return c.Rewrite(arguments) }
}

// approving answers every question in the same way.
func approving(verdict agent.ApprovalVerdict) capability.Capability {
	return capability.UseApproval(agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		return agent.Approval{Verdict: verdict, By: "ann", Reason: "because"}, nil
	}))
}

// note is a value that hooks and tools leave in the session.
var note = agent.SessionKey[string]("note")

// okOutcome returns an outcome as a hook's answer.
func okOutcome(o *hooks.Outcome) hooks.Result { return mo.Ok(o) }
