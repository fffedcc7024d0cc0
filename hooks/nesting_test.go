package hooks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// brackets is what was entered and left, in order.
type brackets struct{ seen []string }

func (b *brackets) open(name string)   { b.seen = append(b.seen, "+"+name) }
func (b *brackets) closed(name string) { b.seen = append(b.seen, "-"+name) }

// unbalanced returns the first that was left out of turn; empty when all nest.
func (b *brackets) unbalanced() string {
	var open []string
	for _, s := range b.seen {
		name := s[1:]
		switch {
		case s[0] == '+':
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			return name
		default:
			open = open[:len(open)-1]
		}
	}
	return strings.Join(open, ",")
}

func (b *brackets) processor(name string) agent.Processor {
	return agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		b.open(name)
		defer b.closed(name)
		return next(ctx, s)
	})
}

// pair returns two hooks that belong together, at the two ends of something.
func (b *brackets) pair(kind, name string, priority int) []hooks.Hook {
	var two []hooks.Hook
	switch kind {
	case "run":
		two = []hooks.Hook{
			onStart(name, func(c hooks.ExecutionContext) hooks.Result { b.open(name); return c.Allow() }),
			atEnd(name+" end", func(hooks.EndContext) error { b.closed(name); return nil }),
		}
	case "step":
		two = []hooks.Hook{
			beforeStep(name, func(c hooks.StepContext) hooks.Result { b.open(name); return c.Pass() }),
			afterStep(name+" end", func(c hooks.StepEndContext) hooks.Result { b.closed(name); return c.Allow() }),
		}
	case "model":
		two = []hooks.Hook{
			beforeModel(name, func(c hooks.InferenceContext) hooks.Result { b.open(name); return c.Pass() }),
			afterModel(name+" end", func(c hooks.ReplyContext) hooks.Result { b.closed(name); return c.Allow() }),
		}
	case "tool":
		two = []hooks.Hook{
			hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result { b.open(name); return c.Allow() }),
			hooks.On(hooks.AtPostToolUse, name+" end", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { b.closed(name); return c.Pass() }),
		}
	}
	return []hooks.Hook{two[0].WithPriority(priority), two[1].WithPriority(priority)}
}

// IP-03, IP-04, IP-05: whatever processors and pairs of hooks there are, in whatever
// order and with whatever priorities, what was entered last is left first.
func TestProcessorsAndHooksNest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &brackets{}
		var capabilities []capability.Capability
		for i := range rapid.IntRange(0, 10).Draw(t, "count") {
			kind := rapid.SampledFrom([]string{"run", "step", "model", "tool", "around run", "around step"}).Draw(t, "kind")
			name := fmt.Sprintf("%s %d", kind, i)
			if !strings.HasPrefix(kind, "around") {
				capabilities = append(capabilities, capability.UseHooks(b.pair(kind, name, rapid.IntRange(-1, 1).Draw(t, "priority"))...))
				continue
			}
			place := rapid.SampledFrom([]capability.Place{capability.Inside, capability.Outside}).Draw(t, "place")
			capabilities = append(capabilities, capability.Func(func(p capability.Plan) (capability.Plan, error) {
				if kind == "around run" {
					return p.AroundRun(place, name, b.processor(name)), nil
				}
				return p.AroundStep(place, name, b.processor(name)), nil
			}))
		}
		var turns []agenttest.Turn
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			turns = append(turns, agenttest.Call("echo", `{}`))
		}
		turns = append(turns, agenttest.Say("done"))
		a := hookedAgent(t, agenttest.Script(turns...), nil, nil, capabilities...)
		final, err := a.Run(context.Background(), agent.NewState(agent.UserText("hello"))).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, final.Status())
		assert.Empty(t, b.unbalanced(), "%v", b.seen)
	})
}

// Controls of a point go by priority, and equals in the order they were given,
// however many there are; at the end in reverse.
//
// IP-05, IP-06
func TestOrderIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		priorities := rapid.SliceOfN(rapid.IntRange(-2, 2), 0, 12).Draw(t, "priorities")
		var set hooks.Set
		want := make([]int, len(priorities))
		for i, p := range priorities {
			want[i] = i
			set = set.With(beforeStep(fmt.Sprint(i), func(c hooks.StepContext) hooks.Result { return c.Pass() }).WithPriority(p))
		}
		slices.SortStableFunc(want, func(a, b int) int { return priorities[b] - priorities[a] })
		names := []string{}
		for _, i := range want {
			names = append(names, fmt.Sprint(i))
		}
		assert.Equal(t, names, set.Order(hooks.StepStart))
		assert.Empty(t, set.Order(hooks.StepEnd))
	})
}
