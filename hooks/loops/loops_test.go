package loops_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/loops"
	"github.com/grapnel-go/grapnel/toolexec"
)

// tools returns one that says the same each time, one that counts, and one that fails.
func tools() []toolexec.Tool {
	var counted atomic.Int64
	type in struct {
		X any     `json:"x,omitempty"`
		Y float64 `json:"y,omitempty"`
	}
	return []toolexec.Tool{
		toolexec.Func("look", "Looks.", func(context.Context, in) (string, error) { return "seen", nil }),
		toolexec.Func("read", "Reads.", func(context.Context, in) (string, error) { return "text", nil }),
		toolexec.Func("fail", "Fails.", func(context.Context, in) (string, error) { return "", fmt.Errorf("no luck") }),
		toolexec.Func("count", "Counts.", func(context.Context, in) (string, error) { return fmt.Sprint(counted.Add(1)), nil }),
	}
}

// play runs a script: words are calls of a step, commas end a step, "look:{"x":1}" has arguments.
func play(t testing.TB, script string, list ...hooks.Hook) agent.State {
	t.Helper()
	return agentOf(t, script, list...).Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
}

func agentOf(t testing.TB, script string, list ...hooks.Hook) *agent.Agent {
	t.Helper()
	turns := lo.Map(strings.Split(script, ","), func(step string, _ int) agenttest.Turn {
		turn := agenttest.Say("")
		for word := range strings.FieldsSeq(step) {
			tool, arguments, _ := strings.Cut(word, ":")
			turn = turn.Call(tool, strings.ReplaceAll(lo.CoalesceOrEmpty(arguments, "{}"), ";", ","))
		}
		return turn
	})
	a, err := builder.New().WithDriver(agenttest.Script(append(turns, agenttest.Say("done"))...)).
		With(capability.UseTools(tools()...), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)
	return a
}

// told returns a letter for each call: r it ran, f it failed, d this hook denied it, x something else kept it from running; and
// how the run ended, if not by itself.
func told(s agent.State) string {
	var b strings.Builder
	for _, step := range s.Steps() {
		for _, r := range step.Results() {
			switch {
			case r.Status == agent.ToolFailed:
				b.WriteByte('f')
			case r.Executed():
				b.WriteByte('r')
			case r.Denied() && r.DecidedBy == "loops":
				b.WriteByte('d')
			default:
				b.WriteByte('x')
			}
		}
	}
	if s.Status() != agent.StatusDone {
		b.WriteString(" " + string(s.Status()))
	}
	return b.String()
}

func repeat(what string, n int) string { return strings.Repeat(what+",", n-1) + what }

func TestLoops(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		o      loops.Options
		want   string
	}{
		"enough":                              {repeat("look", 3), loops.Options{}, "rrr"},
		"once too often":                      {repeat("look", 4), loops.Options{}, "rrrd"},
		"and on":                              {repeat("look", 9), loops.Options{}, "rrrddd stopped"},
		"something else in between":           {"look,look,look,read,look,look,look", loops.Options{}, "rrrrrrr"},
		"something else after":                {"look,look,look,look,read,look", loops.Options{}, "rrrdrr"},
		"other arguments":                     {`look:{"x":1},look:{"x":2},look:{"x":3},look:{"x":4},look:{"x":5},look:{"x":6}`, loops.Options{}, "rrrrrr"},
		"other tools":                         {"look,read,fail,look,read,fail,look,read,fail", loops.Options{}, "rrfrrfrrf"},
		"failures are results":                {repeat("fail", 5), loops.Options{}, "fffdd"},
		"progress":                            {repeat("count", 9), loops.Options{}, "rrrrrrrrr"},
		"progress that is ignored":            {repeat("count", 9), loops.Options{IgnoreResults: true}, "rrrddd stopped"},
		"one value in many writings":          {`look:{"x":1;"y":1},look:{"y":1.0;"x":10e-1},look:{"\u0078":1;"y":1},look:{"y":1;"x":1.00}`, loops.Options{}, "rrrd"},
		"two in turn":                         {repeat("look,read", 7), loops.Options{}, "rrrrrrdddddd stopped"},
		"two in turn, after others":           {"fail,count," + repeat("look,read", 4), loops.Options{}, "frrrrrrrdd"},
		"two in turn, one of them progresses": {repeat("look,count", 5), loops.Options{}, "rrrrrrrrrr"},
		"four in turn":                        {repeat(`look,read,fail,look:{"x":1}`, 4), loops.Options{}, "rrfrrrfrrrfrdddd"},
		"five in turn are no loop":            {repeat(`look,read,fail,look:{"x":1},read:{"x":1}`, 4), loops.Options{}, strings.Repeat("rrfrr", 4)},
		"but with a longer round":             {repeat(`look,read,fail,look:{"x":1},read:{"x":1}`, 4), loops.Options{Cycle: 5}, strings.Repeat("rrfrr", 3) + "ddddd"},
		"only the same":                       {repeat("look,read", 7), loops.Options{Cycle: 1}, strings.Repeat("r", 14)},
		"in one step":                         {"look look look look look", loops.Options{}, "rrrdd"},
		"in one step, too often":              {"look look look look look look,look", loops.Options{}, "rrrddd stopped"},
		"two of a step":                       {repeat("look read", 5), loops.Options{}, "rrrrrrdddd"},
		"a step and one more":                 {"look look,look,look", loops.Options{}, "rrrd"},
		"progress in one step":                {"count,count,count count,count", loops.Options{}, "rrrrr"},
		"sooner":                              {repeat("look", 5), loops.Options{Deny: 1, Stop: 3}, "rdd stopped"},
		"stop follows deny":                   {repeat("look", 5), loops.Options{Deny: 2}, "rrdd stopped"},
		"only denied":                         {repeat("look", 20), loops.Options{Stop: -1}, "rrr" + strings.Repeat("d", 17)},
		"only stopped":                        {repeat("look", 20), loops.Options{Deny: -1}, "rrrrrr stopped"},
		"nothing":                             {repeat("look", 9), loops.Options{Deny: -1, Stop: -1}, "rrrrrrrrr"},
		"an exception":                        {repeat("look", 9), loops.Options{Except: []string{"look"}}, "rrrrrrrrr"},
		"exceptions are passed over":          {repeat("look,read", 4), loops.Options{Except: []string{"read"}}, "rrrrrrdr"},
		"arguments that cannot be read":       {repeat(`look:{`, 9), loops.Options{}, "xxxxxx stopped"},
		"a tool that is not there":            {repeat("where", 9), loops.Options{}, "xxxddd stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, told(play(t, tc.script, loops.Hooks(tc.o)...)))
		})
	}
}

func TestWhatIsTold(t *testing.T) {
	final := play(t, repeat("look,read", 7), loops.Hooks(loops.Options{})...)
	assert.Contains(t, agenttest.Transcript(final), "denied by loops: the same calls of look, read were, in turn, made 3 times in a row and returned nothing new; the same call will not help")
	assert.Equal(t, agent.Signal{
		Reason: agent.StopByHook, Source: "loops.stop",
		Message: "the run is in a loop: the same calls of look, read were, in turn, made 6 times in a row and returned nothing new",
	}, final.StopSignal())
	final = play(t, repeat("count", 4), loops.Hooks(loops.Options{IgnoreResults: true})...)
	assert.Contains(t, agenttest.Transcript(final), "the same call of count was made 3 times in a row; the same call")
}

// A loop includes calls that another hook denies again and again. A rewrite does not hide one.
func TestOtherHooks(t *testing.T) {
	never := hooks.On(hooks.AtPreToolUse, "never", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("no") }, hooks.ToolNamed("look"))
	assert.Equal(t, "xxxxxx stopped", told(play(t, repeat("look", 9), append(loops.Hooks(loops.Options{}), never)...)))
	n := 0
	stamp := hooks.On(hooks.AtPreToolUse, "stamp", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		n++
		return c.Rewrite(map[string]int{"x": n})
	})
	assert.Equal(t, "rrrd", told(play(t, repeat("look", 4), append(loops.Hooks(loops.Options{}), stamp)...)))
}

// Each run starts again; one that goes on from a stored state does not.
func TestRuns(t *testing.T) {
	a := agentOf(t, repeat("look", 4), loops.Hooks(loops.Options{})...)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			assert.Equal(t, "rrrd", told(a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()))
		})
	}
	all.Wait()

	b, err := builder.New().WithDriver(agenttest.Script(lo.Times(4, func(int) agenttest.Turn { return agenttest.Call("look", `{}`) })...).Then(agenttest.Say("done"))).
		With(capability.UseTools(tools()...), capability.UseHooks(loops.Hooks(loops.Options{})...)).Build().Get()
	require.NoError(t, err)
	session := b.Session(agent.NewState())
	assert.Equal(t, "rrrd", told(session.Run(t.Context(), agent.UserText("go")).MustGet()))
	assert.Equal(t, "rrrd", told(session.Run(t.Context(), agent.UserText("again")).MustGet()), "nothing was called")
}

// A step costs the same however long the run is.
func BenchmarkCall(b *testing.B) {
	for _, steps := range []int{10, 1000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
				n := s.StepCount()
				if n == steps {
					return agent.Step{Message: agent.Assistant("done")}, nil
				}
				return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: "look", Arguments: fmt.Sprintf(`{"x":%d}`, n)})}, nil
			})
			a, err := builder.New().WithDriver(driver).
				With(capability.UseTools(tools()...), capability.UseHooks(loops.Hooks(loops.Options{})...)).Build().Get()
			require.NoError(b, err)
			for b.Loop() {
				a.Run(b.Context(), agent.NewState(), agent.UserText("go")).MustGet()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/call")
		})
	}
}

// A hook that changes what the model is told, and so is the one who decided, does not make a denial progress.
func TestDenialsThatOthersChange(t *testing.T) {
	changes := hooks.On(hooks.AtPostToolUse, "stamp", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		r := c.Result()
		return c.ReplaceContent(agent.TextContent("[" + r.Text() + "]"))
	})
	withholds := hooks.On(hooks.AtPostToolUse, "withhold", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		return lo.Ternary(c.Status() == agent.ToolNotExecuted, c.Withhold("no"), c.Pass())
	})
	for _, hook := range []hooks.Hook{changes, withholds} {
		final := play(t, repeat("look", 9), append(loops.Hooks(loops.Options{}), hook)...)
		assert.Equal(t, "rrrxxx stopped", told(final))
		final = play(t, "look,look look,look look look look", append(loops.Hooks(loops.Options{Stop: -1}), hook)...)
		assert.Equal(t, "rrrxxxx", told(final))
	}
}

// The hook may be asked about calls again, since another hook rewrote them. They still count for one step.
func TestRewrittenCallsCountOnce(t *testing.T) {
	rewrite := hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Rewrite(map[string]any{"x": "rewritten"})
	}).WithPriority(2 * hooks.PriorityAfterwork)
	plain := told(play(t, "look look look look look,read,look look", loops.Hooks(loops.Options{})...))
	assert.Equal(t, plain, told(play(t, "look look look look look,read,look look", append(loops.Hooks(loops.Options{}), rewrite)...)))
	assert.Contains(t, plain, "rrrdd")
}
