package hooks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
)

// names notes the order in which its hooks are called.
type names struct{ called []string }

func (n *names) before(name string, matching ...hooks.Matcher) hooks.Hook {
	return before(name, func(c hooks.ToolContext) hooks.Result { n.called = append(n.called, name); return c.Allow() }, matching...)
}

func (n *names) after(name string) hooks.Hook {
	return after(name, func(c hooks.ToolResultContext) hooks.Result { n.called = append(n.called, name); return c.Allow() })
}

// IP-01, LH-03, LH-05: without hooks nothing is wrapped and everything runs.
func TestNoHooks(t *testing.T) {
	for name, set := range map[string]hooks.Set{"zero": {}, "empty": hooks.NewSet(), "nothing added": hooks.NewSet().With()} {
		t.Run(name, func(t *testing.T) {
			assert.True(t, set.IsEmpty())
			compiled, err := set.Compile("bash")
			require.NoError(t, err)
			x := agenttest.Tools{}.Executor()
			assert.Same(t, x, compiled.WrapExecutor(x))
		})
	}
	w := workWith(t, nil, wants("bash", ls))
	assert.Equal(t, []string{"bash " + ls}, w.ran)
}

// IP-02, IP-14: one hook is called once for a call, then the tool runs. It is a func.
func TestOneHook(t *testing.T) {
	var n names
	w := workWith(t, []hooks.Hook{n.before("only")}, wants("bash", ls))
	assert.Equal(t, []string{"only"}, n.called)
	assert.Equal(t, []string{"bash " + ls}, w.ran)
}

// IP-03, LH-07: pairs nest; the first is outermost.
func TestPairsNest(t *testing.T) {
	var n names
	workWith(t, []hooks.Hook{
		n.before("before1").WithPriority(10), n.after("after1").WithPriority(10),
		n.before("before2").WithPriority(5), n.after("after2").WithPriority(5),
	}, wants("bash", ls))
	assert.Equal(t, []string{"before1", "before2", "after2", "after1"}, n.called)
}

// IP-04, IP-05, IP-06: priority first, then the order they were given.
func TestPriority(t *testing.T) {
	for _, tc := range []struct{ given, want string }{
		{"a b:10", "b a"},     // IP-04
		{"a b c", "a b c"},    // IP-05
		{"a b:10 c", "b a c"}, // IP-06
		{"a:-1 b:200 c", "b c a"},
		{"a:5 b:5 c:6 d:5 e:6", "c e a b d"},
		{"a:-9223372036854775808 b:9223372036854775807 c", "b c a"},
	} {
		t.Run(tc.given, func(t *testing.T) {
			var n names
			var list []hooks.Hook
			for one := range strings.FieldsSeq(tc.given) {
				name, priority := one, 0
				if _, err := fmt.Sscanf(strings.Replace(one, ":", " ", 1), "%s %d", &name, &priority); err != nil {
					name = one
				}
				list = append(list, n.before(name).WithPriority(priority))
			}
			workWith(t, list, wants("bash", ls))
			assert.Equal(t, tc.want, strings.Join(n.called, " "))
			assert.Equal(t, strings.Fields(tc.want), hooks.NewSet(list...).Order(hooks.PreToolUse), "Order says the same")
		})
	}
}

// Each error is in a separate line, with the name of its hook.
func TestEachMistakeNamesItsHook(t *testing.T) {
	bad := hooks.On(hooks.AtStepStart, "bad", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Pass() },
		hooks.Or(), hooks.Not(hooks.ToolMatching("/(/")), hooks.ToolNamed()).WithTimeout(-1)
	lines := strings.Split(lo.T2(hooks.NewSet(bad).Compile()).B.Error(), "\n")
	require.Len(t, lines, 4)
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, `hook "bad": `), line)
	}
}

// Controls come first, then observers, then detached hooks, whatever their
// priority.
func TestOrderOfPhases(t *testing.T) {
	watch := func(name string) hooks.Hook {
		return hooks.Observe(hooks.AtPreToolUse, name, func(context.Context, hooks.ToolContext) error { return nil })
	}
	var n names
	set := hooks.NewSet(watch("detached").Detach().WithPriority(3), watch("observer").WithPriority(2), n.before("control"))
	assert.Equal(t, []string{"control", "observer", "detached"}, set.Order(hooks.PreToolUse))
	assert.Empty(t, set.Order(hooks.PostToolUse))
	assert.Empty(t, set.Order("NoSuchPoint"))
}

// IP-07, IP-08, LH-01, LH-02, LH-04: a set is a value: adding hooks returns a new set and does
// not change the first. The methods of a hook do the same.
func TestSetsAndHooksAreValues(t *testing.T) {
	var n names
	one := hooks.NewSet(n.before("a"))
	two, other := one.With(n.before("b")), one.With(n.before("c"), n.before("d"))
	assert.False(t, one.IsEmpty())
	assert.Equal(t, []string{"a"}, one.Order(hooks.PreToolUse))
	assert.Equal(t, []string{"a", "b"}, two.Order(hooks.PreToolUse))
	assert.Equal(t, []string{"a", "c", "d"}, other.Order(hooks.PreToolUse))
	var listed []string
	for _, h := range other.All() {
		listed = append(listed, h.Name())
	}
	assert.Equal(t, []string{"a", "c", "d"}, listed)

	hook := n.before("h")
	changed := hook.WithPriority(7).WithTimeout(time.Second).WithFailure(hooks.Abort).Matching(hooks.ToolNamed("bash"))
	assert.Zero(t, hook.Priority())
	assert.Equal(t, 7, changed.Priority())
	assert.Equal(t, "h", changed.Name())
	assert.True(t, changed.Control())
	points := changed.Points()
	points[0] = "changed"
	assert.Equal(t, []hooks.PointName{hooks.PreToolUse}, changed.Points())
}

// LH-10: changing the slice of hooks afterwards has no effect.
func TestSetsAreSnapshots(t *testing.T) {
	var n names
	list := []hooks.Hook{n.before("a")}
	matching := []hooks.Matcher{hooks.ToolNamed("bash")}
	named := []string{"bash"}
	points := []hooks.PointName{hooks.StepStart}
	set := hooks.NewSet(list...).With(
		n.before("b", matching...), n.before("c", hooks.ToolNamed(named...)),
		n.before("d").Matching(matching...),
		hooks.ObserveAll("e", func(context.Context, hooks.Context) error { return nil }, points...),
	)
	list[0], matching[0], named[0], points[0] = n.before("x"), hooks.ToolNamed("write_file"), "write_file", hooks.StepEnd
	workWith(t, collectedHooks(set), wants("bash", ls))
	assert.Equal(t, []string{"a", "b", "c", "d"}, n.called)
	assert.Equal(t, []string{"e"}, set.Order(hooks.StepStart))
	assert.Empty(t, set.Order(hooks.StepEnd))
}

func collectedHooks(set hooks.Set) []hooks.Hook {
	var out []hooks.Hook
	for _, h := range set.All() {
		out = append(out, h)
	}
	return out
}

// IP-09, IP-10, LH-06: a hook is called at its points and at no other; once, with
// what belongs to the point. One for all points is called at all of them.
func TestHooksAreCalledWhereTheyBelong(t *testing.T) {
	for _, at := range hooks.PointNames() {
		t.Run(string(at), func(t *testing.T) {
			var called []hooks.PointName
			see := func(_ context.Context, c hooks.Context) error { called = append(called, c.Point()); return nil }
			script := agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("hi"))
			switch at {
			case hooks.ToolFailed:
				workWith(t, []hooks.Hook{hooks.ObserveAll("only", see, at)}, wants("broken", `{}`))
			case hooks.InterventionRequested, hooks.InterventionResolved, hooks.InterventionStopped:
				play(t, script, append(refuseCall(), hooks.ObserveAll("only", see, at)), personSays(agent.RejectAndEnd))
			case hooks.PreCompact, hooks.PostCompact, hooks.CompactFailed, hooks.PreSubagent, hooks.PostSubagent, hooks.SubagentFailed:
				play(t, script, []hooks.Hook{hooks.ObserveAll("only", see, at)}, firing())
			case hooks.SessionStart, hooks.SessionComplete, hooks.IterationStart, hooks.IterationComplete, hooks.IterationFailed,
				hooks.StageComplete, hooks.RunStart, hooks.RunResult, hooks.RunFailed, hooks.RunTimeout, hooks.RunFinish:
				fireAround(t, hooks.ObserveAll("only", see, at))
			case hooks.ConversationStart, hooks.ConversationEnd:
				converse(t, hooks.ObserveAll("only", see, at))
			case hooks.AgentFailed:
				play(t, agenttest.Script(agenttest.Fail(errPaper)), []hooks.Hook{hooks.ObserveAll("only", see, at)})
			default:
				play(t, script, []hooks.Hook{hooks.ObserveAll("only", see, at)})
			}
			require.NotEmpty(t, called)
			for _, point := range called {
				assert.Equal(t, at, point)
			}
		})
	}
	var all []hooks.PointName
	workWith(t, []hooks.Hook{hooks.ObserveAll("all", func(_ context.Context, c hooks.Context) error {
		all = append(all, c.Point())
		return nil
	})}, wants("broken", `{}`))
	assert.Equal(t, []hooks.PointName{
		hooks.InputSubmitted, hooks.ExecutionStart,
		hooks.StepStart, hooks.PreInference, hooks.PostInference, hooks.PreToolUse, hooks.ToolFailed, hooks.PostToolUse, hooks.StepEnd,
		hooks.StepStart, hooks.PreInference, hooks.PostInference, hooks.StepEnd,
		hooks.Stop, hooks.ExecutionEnd,
	}, all)
}

// LH-08: at every point, the failure of an observer is reported only to the run's observer, and
// later observers are still called.
func TestFailingObserversHoldUpNobody(t *testing.T) {
	for _, at := range hooks.PointNames() {
		for name, fail := range map[string]func() error{"error": func() error { return errPaper }, "panic": func() error { panic(errPaper) }} {
			t.Run(string(at)+" "+name, func(t *testing.T) {
				later := 0
				list := []hooks.Hook{
					hooks.ObserveAll("failing", func(context.Context, hooks.Context) error { return fail() }, at),
					hooks.ObserveAll("last", func(context.Context, hooks.Context) error { later++; return nil }, at).WithPriority(-1),
					hooks.ObserveAll("first", func(context.Context, hooks.Context) error { later++; return nil }, at).WithPriority(1),
				}
				if at.IsAroundRuns() || at == hooks.ConversationStart || at == hooks.ConversationEnd {
					fire := lo.Ternary(at.IsAroundRuns(), fireAround, converse)
					recorder := fire(t, list...)
					assert.Equal(t, 1, lo.Count(recorder.Names(), string(hooks.HookFailed)))
					assert.Equal(t, 2, later)
					return
				}
				script := agenttest.Script(agenttest.Call("broken", `{}`), agenttest.Say("hi"))
				if at == hooks.AgentFailed {
					script = agenttest.Script(agenttest.Fail(errPaper))
				}
				var shop workshop
				with := []capability.Capability{shop.capability()}
				if strings.HasPrefix(string(at), "Intervention") {
					list, with = append(list, refuseCall()...), append(with, personSays(agent.RejectAndEnd))
				} else {
					with = append(with, firing())
				}
				end := play(t, script, list, with...)
				assert.Equal(t, at == hooks.AgentFailed, end.err != nil)
				failed := end.count(string(hooks.HookFailed))
				assert.Positive(t, failed)
				assert.Equal(t, 2*failed, later)
			})
		}
	}
}

// IP-11, IP-12, IP-13: the next hook sees a hook's additions. Different keys survive. A value and a stop do not exclude
// each other.
func TestEffectsAddUp(t *testing.T) {
	level, other := agent.SessionKey[string]("level"), agent.SessionKey[int]("other")
	w := workWith(t, []hooks.Hook{
		before("low", func(c hooks.ToolContext) hooks.Result { return c.Allow(level.Set(level.Or(c.State(), "") + "+low")) }),
		before("high", func(c hooks.ToolContext) hooks.Result { return c.Allow(level.Set("high")) }).WithPriority(10),
		before("another", func(c hooks.ToolContext) hooks.Result { return c.Stop("enough", other.Set(7)) }).WithPriority(-10),
	}, wants("bash", ls))
	assert.Equal(t, "high+low", level.Or(w.State, ""))
	assert.Equal(t, 7, other.Or(w.State, 0))
	assert.Equal(t, agent.StatusStopped, w.Status())
}

// IP-15, LH-52: hooks that pass change nothing at all: what was prepared and answered is
// what the executor made, in the same place.
func TestPassingToolHooksChangeNothing(t *testing.T) {
	for name, hook := range map[string][]hooks.Hook{
		"pass":      {before("b", func(hooks.ToolContext) hooks.Result { return hooks.Result{} }), after("a", func(hooks.ToolResultContext) hooks.Result { return hooks.Result{} })},
		"allow":     {before("b", allow), after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Allow() })},
		"observed":  {hooks.ObserveAll("o", func(context.Context, hooks.Context) error { return nil })},
		"unmatched": {before("b", deny("no"), hooks.ToolNamed("other")), after("a", func(c hooks.ToolResultContext) hooks.Result { return c.Withhold("no") }, hooks.ArgumentEquals("n", 7))},
	} {
		t.Run(name, func(t *testing.T) {
			call := &agent.ToolCall{ID: "call_1", Name: "bash", Arguments: ls}
			inner := instantly(call)
			compiled, err := hooks.NewSet(hook...).Compile("bash")
			require.NoError(t, err)
			x := compiled.WrapExecutor(inner)
			s := runningState(t)
			p, err := x.Prepare(t.Context(), s, call).Get()
			require.NoError(t, err)
			assert.Same(t, inner.p.Call, p.Call)
			assert.Equal(t, agent.DisposeRun, p.Disposition)
			r, err := x.Execute(t.Context(), s, p).Get()
			require.NoError(t, err)
			assert.Same(t, inner.r, r)
		})
	}
}

// IP-16: compiling twice gives two values that share no mutable data.
func TestCompilingTwice(t *testing.T) {
	var n names
	set := hooks.NewSet(n.before("a"))
	one, two := lo.Must(set.Compile("bash")), lo.Must(set.Compile("bash"))
	assert.NotSame(t, one, two)
	assert.NotSame(t, one.Background(), two.Background())
	assert.Equal(t, one.Hooks(), two.Hooks())
}

// LH-09, X-07: building an agent reports all errors of its hooks together, and does not build an
// agent without the wrong ones.
func TestWrongHooks(t *testing.T) {
	f := func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Allow() }
	watch := func(context.Context, hooks.ToolContext) error { return nil }
	see := func(context.Context, hooks.Context) error { return nil }
	on := func(matching ...hooks.Matcher) hooks.Hook { return hooks.On(hooks.AtPreToolUse, "h", f, matching...) }
	start := func(matching ...hooks.Matcher) hooks.Hook {
		return hooks.On(hooks.AtStepStart, "h", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Allow() }, matching...)
	}
	for name, tc := range map[string]struct {
		hook hooks.Hook
		want string
	}{
		"no name":                     {hooks.On(hooks.AtPreToolUse, "", f), "hook 1 has no name: events and denials need one"},
		"no func":                     {hooks.On(hooks.AtPreToolUse, "h", nil), "it has no func"},
		"no observing func":           {hooks.Observe(hooks.AtPreToolUse, "h", nil), "it has no func"},
		"no func for all":             {hooks.ObserveAll("h", nil), "it has no func"},
		"zero value":                  {hooks.Hook{}, "it has no point"},
		"no point":                    {hooks.On(hooks.Point[hooks.ToolContext]{}, "h", f), `unknown point ""`},
		"unknown point":               {hooks.ObserveAll("h", see, "PreToolUsed"), `unknown point "PreToolUsed"`},
		"control where none can be":   {hooks.On(hooks.AtExecutionEnd, "h", func(context.Context, hooks.EndContext) hooks.Result { return hooks.Result{} }), "ExecutionEnd is for observers only: use Observe"},
		"detached control":            {on().Detach(), "a control cannot be detached: nothing would wait for its answer"},
		"tool matcher without a tool": {start(hooks.ToolNamed("bash")), "StepStart is not a point of a tool call, so the matcher and(tool bash) can never match"},
		"the same, hidden":            {start(hooks.Or(hooks.AtDepth(0, 1), hooks.Not(hooks.Argument("x", func(string) bool { return true })))), "can never match"},
		"the same, for all points":    {hooks.ObserveAll("h", see).Matching(hooks.ToolNamed("bash")), "InputSubmitted is not a point of a tool call"},
		"bad regular expression":      {on(hooks.ToolMatching("/(/")), `tool pattern "/(/": error parsing regexp`},
		"bad glob":                    {on(hooks.ToolMatching("[a")), `tool pattern "[a": syntax error in pattern`},
		"empty pattern":               {on(hooks.ToolMatching("")), "the pattern is empty: use * for every name"},
		"empty regular expression":    {on(hooks.ToolMatching("//")), "the regular expression is empty"},
		"empty Or":                    {on(hooks.Or()), "Or without matchers matches nothing"}, // IP-33
		"deep inside":                 {on(hooks.And(hooks.Not(hooks.Or()))), "Or without matchers matches nothing"},
		"no tool named":               {on(hooks.ToolNamed()), "ToolNamed without a name matches nothing"},
		"an empty tool named":         {on(hooks.ToolNamed("bash", "")), "ToolNamed without a name matches nothing"},
		"no points named":             {on(hooks.AtPoints()), "AtPoints without a name matches nothing"},
		"unknown points named":        {on(hooks.AtPoints("PreTool")), `unknown point "PreTool"`},
		"nil condition":               {on(hooks.When(nil)), "When: the test is nil"},
		"nil argument test":           {on(hooks.Argument("x", nil)), `argument "x": the test is nil`},
		"argument pattern":            {on(hooks.ArgumentMatching("x", "")), `argument "x": pattern ""`},
		"argument value":              {on(hooks.ArgumentEquals("x", func() {})), `argument "x": the value to compare with`},
		"argument that cannot be":     {on(hooks.ArgumentEquals("x", map[string]any{"a": 1, "A": 2})), `argument "x": the value to compare with`},
		"agent pattern":               {on(hooks.AgentNamed("[")), `agent pattern "["`},
		"stage pattern":               {on(hooks.StageNamed("")), `stage pattern ""`},
		"not everything":              {on(hooks.Not(hooks.Matcher{})), "can never match"},
		"not an empty And":            {on(hooks.And(hooks.ToolNamed("bash"), hooks.Not(hooks.And()))), "can never match"},
		"not every tool":              {on(hooks.Not(hooks.ToolMatching("**"))), "can never match"},
		"a dead end of an Or":         {on(hooks.Or(hooks.ToolNamed("bash"), hooks.Not(hooks.Matcher{}))), "or: not(everything) can never match: remove it"},
		"a step before there is one":  {start(hooks.StepKindIs(agent.StepToolExecution)), "the matcher and(step kind tool_execution) can never match at StepStart"},
		"the same, turned round":      {start(hooks.Not(hooks.StepKindIs(agent.StepToolExecution))), "can never match at StepStart"},
		"the same, among others":      {start(hooks.Or(hooks.AtDepth(0, 1), hooks.StepKindIs(agent.StepFinalResponse))), "can never match at StepStart"},
		"a step of another kind":      {on(hooks.StepKindIs(agent.StepFinalResponse)), "can never match at PreToolUse"},
		"an unknown kind of step":     {on(hooks.StepKindIs("tool")), `StepKindIs: unknown step kind "tool": use tool_execution or final_response`},
		"at other points only":        {on(hooks.AtPoints(hooks.StepEnd)), "can never match at PreToolUse"},
		"empty name in a path":        {on(hooks.Argument("to..email", func(string) bool { return true })), "empty name"},
		"brackets in a path":          {on(hooks.ArgumentEquals("to[0].email", "x")), "is not a name: write to.*.email for every element of a list"},
		"JSONPath":                    {on(hooks.ArgumentEquals("$.to", "x")), "is not a name"},
		"star within a name":          {on(hooks.ArgumentEquals("to*.email", "x")), "is not a name"},
		"backslash at the end":        {on(hooks.ArgumentEquals(`to\`, "x")), "a backslash must be followed by"},
		"depth below zero":            {on(hooks.AtDepth(-5, -3)), "depths are counted from 0"},
		"no depth":                    {on(hooks.Not(hooks.AtDepth(0, -1))), "can never match"},
		"empty depth":                 {on(hooks.AtDepth(2, 1)), "depth from 2 to 1 matches nothing"},
		"negative timeout":            {on().WithTimeout(-time.Second), "its time limit is negative: -1s"},
		"negative tries":              {on().WithFailure(hooks.Retry(-1, 0, hooks.Closed)), "tries and delay must not be negative"},
		"negative delay":              {on().WithFailure(hooks.Retry(1, -1, hooks.Closed)), "tries and delay must not be negative"},
		"retry of a retry":            {on().WithFailure(hooks.Retry(1, 0, hooks.Retry(1, 0, hooks.Open))), "what follows a Retry must not be a Retry"},
		"closed observer":             {hooks.Observe(hooks.AtPreToolUse, "h", watch).WithFailure(hooks.Closed), "an observer cannot fail closed"}, // IP-24
		"closed observer, in the end": {hooks.Observe(hooks.AtPreToolUse, "h", watch).WithFailure(hooks.Retry(1, 0, hooks.Closed)), "cannot fail closed"},
		"abort after the end": {
			hooks.ObserveAll("h", func(context.Context, hooks.Context) error { return nil }, hooks.ExecutionEnd, hooks.InterventionStopped).WithFailure(hooks.Abort),
			"it cannot abort the run, which has ended at ExecutionEnd: use Open, and report the failure in the hook",
		},
		"abort after retries": {
			hooks.ObserveAll("h", func(context.Context, hooks.Context) error { return nil }, hooks.ExecutionEnd).WithFailure(hooks.Retry(1, 0, hooks.Abort)),
			"it cannot abort the run, which has ended at ExecutionEnd",
		},
		"detached hook that can abort": {hooks.Observe(hooks.AtPreToolUse, "h", watch).Detach().WithFailure(hooks.Abort), "a detached hook cannot abort a run that does not wait for it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hooks.NewSet(tc.hook).Compile("bash")
			require.ErrorContains(t, err, tc.want)
		})
	}
	t.Run("twice", func(t *testing.T) {
		_, err := hooks.NewSet(on(), on()).Compile()
		require.EqualError(t, err, `hook "h" is declared twice: names must be unique`)
	})
	t.Run("all at once", func(t *testing.T) {
		_, err := hooks.NewSet(on(hooks.Or(), hooks.ToolMatching("[")).WithTimeout(-1), hooks.On(hooks.AtPreToolUse, "", f), on()).Compile()
		require.Error(t, err)
		assert.Len(t, strings.Split(err.Error(), "\n"), 5, err)
	})
}

// Hooks that no known tool can reach are listed by UnusedHooks; this is not an error, because a
// set can serve several agents.
func TestUnusedHooks(t *testing.T) {
	var n names
	start := hooks.On(hooks.AtStepStart, "start", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Pass() })
	set := hooks.NewSet(start, n.before("all"), n.before("bash", hooks.ToolNamed("bash")), n.before("mistyped", hooks.ToolNamed("bsah")),
		n.before("deep", hooks.ToolMatching("shell_*"), hooks.ArgumentEquals("n", 1)), n.before("argument", hooks.ArgumentEquals("n", 1)))
	assert.Equal(t, []string{"mistyped", "deep"}, lo.Must(set.Compile("bash", "read")).UnusedHooks())
	assert.Equal(t, []string{"bash", "mistyped"}, lo.Must(set.Compile("shell_ls")).UnusedHooks())
	assert.Empty(t, lo.Must(set.Compile()).UnusedHooks())
}

// IP-17: an agent with other hooks calls those, and the old ones no more. It takes
// a new agent: agents do not change.
func TestAnotherAgentHasOtherHooks(t *testing.T) {
	var old, fresh names
	workWith(t, []hooks.Hook{old.before("a")}, wants("bash", ls))
	old.called = nil
	workWith(t, []hooks.Hook{fresh.before("a")}, wants("bash", ls))
	assert.Empty(t, old.called)
	assert.Equal(t, []string{"a"}, fresh.called)
}

// All capabilities' hooks come together in one set.
func TestSeveralUseHooks(t *testing.T) {
	var n names
	workWith(t, []hooks.Hook{n.before("a"), n.after("d")}, wants("bash", ls), capability.UseHooks(n.before("b"), n.after("c")))
	assert.Equal(t, []string{"a", "b", "c", "d"}, n.called)
}

// firing fires the points of middleware that tests of this package do without.
func firing() capability.Capability {
	return capability.UseStepProcessor("firing", agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		c := hooks.Of(s)
		_, _ = c.PreCompact(ctx, s, hooks.Compaction{})
		c.PostCompact(ctx, s, hooks.Compaction{})
		c.CompactFailed(ctx, s, hooks.Compaction{Err: errPaper})
		_, _, _ = c.PreSubagent(ctx, s, hooks.Subagent{})
		_, _, _ = c.PostSubagent(ctx, s, hooks.Subagent{})
		c.SubagentFailed(ctx, s, hooks.Subagent{Err: errPaper})
		return next(ctx, s)
	}))
}

// converse has a conversation of one run, and returns what its observer saw.
func converse(t testing.TB, list ...hooks.Hook) *agenttest.Recorder {
	t.Helper()
	recorder := agenttest.Record()
	session := hookedAgent(t, chatter(), recorder, list).Session(agent.NewState())
	require.NoError(t, session.Run(t.Context(), agent.UserText("hello")).Error())
	require.NoError(t, session.Close(t.Context()))
	return recorder
}

// fireAround fires all points around runs, as an engine does, and returns what its observer saw.
func fireAround(t testing.TB, list ...hooks.Hook) *agenttest.Recorder {
	t.Helper()
	recorder := agenttest.Record()
	scope := lo.Must(hooks.NewSet(list...).Compile()).OpenScope(t.Context(), hooks.ScopeOptions{Observer: recorder})
	for _, at := range hooks.PointNames() {
		_, _, err := scope.Pipeline(t.Context(), agent.NewState(), hooks.Firing{Point: at}, hooks.Pipeline{})
		_, _, _, other := scope.Blueprint(t.Context(), agent.NewState(), hooks.Firing{Point: at}, hooks.BlueprintRun{})
		if at.IsAroundRuns() {
			assert.True(t, err == nil || other == nil, "%s: %v, %v", at, err, other)
			continue
		}
		require.ErrorContains(t, err, "it is not a point of a pipeline")
		require.ErrorContains(t, other, "it is not a point of a coordinator's run")
	}
	require.NoError(t, scope.Drain(t.Context()))
	return recorder
}
