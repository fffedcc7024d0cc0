package hooks_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// A call in the property has one argument, n, of so many values.
const judgedValues = 4

// judgedControl is a control as the property draws it: what it says to each value.
type judgedControl struct {
	name     string
	says     [judgedValues]string
	into     [judgedValues]int // what it rewrites to
	matches  [judgedValues]bool
	matched  bool // it has a matcher
	priority int
	policy   string // when it fails
	required bool   // its rank
	shadow   bool
}

func drawJudgedControl(t *rapid.T, name string) judgedControl {
	c := judgedControl{
		name:     name,
		priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
		policy:   rapid.SampledFrom([]string{"default", "closed", "open", "abort", "retry"}).Draw(t, "policy"),
		required: rapid.Bool().Draw(t, "required"),
		shadow:   rapid.IntRange(0, 7).Draw(t, "shadow") == 0,
		matched:  rapid.Bool().Draw(t, "matched"),
	}
	words := []string{"pass", "pass", "allow", "add", "add", "rewrite", "rewrite", "rewrite", "ask", "mock", "deny", "stop", "fail", "panic"}
	for n := range judgedValues {
		c.says[n] = rapid.SampledFrom(words).Draw(t, "says")
		c.into[n] = rapid.IntRange(0, judgedValues-1).Draw(t, "into")
		c.matches[n] = rapid.Bool().Draw(t, "matches")
	}
	return c
}

func judgedArguments(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

func judgedValue(c *agent.ToolCall) (n int) {
	if _, err := fmt.Sscanf(c.Arguments, `{"n":%d}`, &n); err != nil {
		panic(err)
	}
	return n
}

// judgedPlayer makes hooks of drawn controls and remembers what they are asked.
type judgedPlayer struct{ asked, told []string }

func (p *judgedPlayer) hook(d judgedControl) hooks.Hook {
	h := hooks.On(hooks.AtPreToolUse, d.name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
		call := c.Call().ToolCall
		n := judgedValue(&call)
		p.asked = append(p.asked, fmt.Sprint(d.name, "(", n, ")"))
		effect := agent.RunKey[int](d.name).Set(n)
		switch d.says[n] {
		case "allow":
			return c.Allow()
		case "add":
			return c.Allow(effect)
		case "rewrite":
			return c.Rewrite(map[string]any{"n": d.into[n]}, effect)
		case "ask":
			return c.Ask("may it?", effect)
		case "mock":
			return c.Mock("mocked by "+d.name, effect)
		case "deny":
			return c.Deny("no", effect)
		case "stop":
			return c.Stop("no more", effect)
		case "fail":
			return c.Fail(errPaper)
		case "panic":
			panic("boom")
		}
		return c.Pass()
	}).WithPriority(d.priority).From(&hooks.Origin{Required: d.required})
	if d.matched {
		matching := lo.FilterMap(d.matches[:], func(yes bool, n int) (hooks.Matcher, bool) { return hooks.ArgumentEquals("n", n), yes })
		h = h.Matching(hooks.Or(append(matching, hooks.ArgumentEquals("n", -1))...))
	}
	switch d.policy {
	case "closed":
		h = h.WithFailure(hooks.Closed)
	case "open":
		h = h.WithFailure(hooks.Open)
	case "abort":
		h = h.WithFailure(hooks.Abort)
	case "retry":
		h = h.WithFailure(hooks.Retry(1, 0, hooks.Open))
	}
	if d.shadow {
		h = h.InShadow()
	}
	return h
}

// judgedEnd is a call's result.
type judgedEnd struct {
	n         int    // the value that runs, or would
	fate      string // run, ask, answer, stop
	code      agent.ReasonCode
	mock      string
	questions []string
	effects   []string
	broken    bool // the run failed
}

// judgedModel is the rules of a control phase, written again, for layers of controls, the
// outermost first.
type judgedModel struct {
	layers [][]judgedControl
	asked  []string
}

// modelAnswer is the latest answer of a control.
type modelAnswer struct {
	about int // what it has judged
	what  string
	value int // what it was asked about
}

// answer returns a control's answer to a value, or the result of its failure.
func (m *judgedModel) answer(c judgedControl, n int) string {
	if c.matched && !c.matches[n] {
		return "pass"
	}
	ask := func() { m.asked = append(m.asked, fmt.Sprint(c.name, "(", n, ")")) }
	ask()
	says := c.says[n]
	if says == "fail" || says == "panic" {
		if c.policy == "retry" {
			ask()
		}
		says = map[string]string{"default": "failed", "closed": "failed", "open": "pass", "retry": "pass", "abort": "abort"}[c.policy]
	}
	if c.shadow && says != "rewrite" {
		return "pass"
	}
	return says
}

// prepare returns what becomes of a value behind the layers from the given one inwards.
func (m *judgedModel) prepare(layer, n int) judgedEnd {
	if layer == len(m.layers) {
		return judgedEnd{n: n, fate: "run"}
	}
	now := m.prepare(layer+1, n)
	if now.broken {
		return now
	}
	controls := slices.Clone(m.layers[layer])
	slices.SortStableFunc(controls, func(a, b judgedControl) int { return cmp.Compare(b.priority, a.priority) })
	latest := make([]*modelAnswer, len(controls))
	stale := func(i int) bool { return latest[i] == nil || latest[i].about != now.n }
	final := ""
	for range 4 {
		for i, c := range controls {
			if final != "" || !stale(i) {
				continue
			}
			a := modelAnswer{now.n, m.answer(c, now.n), now.n}
			switch a.what {
			case "abort":
				return judgedEnd{broken: true}
			case "rewrite":
				inner := m.prepare(layer+1, c.into[now.n]) // what is further in judges it first
				switch {
				case c.shadow:
					a.what = "pass"
				case inner.broken:
					return judgedEnd{broken: true}
				case c.into[now.n] != now.n:
					if a.about = c.into[now.n]; inner.n == now.n {
						a.about = now.n // it was asked about just that
					}
					now = inner
				}
			case "deny", "failed", "stop":
				final = a.what
			}
			latest[i] = &a
		}
	}
	if final == "" && slices.ContainsFunc(lo.Range(len(controls)), stale) {
		final = "failed"
	}
	return fold(now, controls, latest, final)
}

// fold puts the latest answers together: Stop > Deny > Ask > Mock > Allow.
func fold(end judgedEnd, controls []judgedControl, latest []*modelAnswer, final string) judgedEnd {
	mock, asks := "", []string(nil)
	for i, a := range latest {
		if a == nil || slices.Contains([]string{"pass", "allow", "failed"}, a.what) {
			continue
		}
		name := controls[i].name
		end.effects = append(slices.Clip(end.effects), fmt.Sprint(name, "=", a.value))
		switch a.what {
		case "ask":
			asks = append(asks, name)
		case "mock":
			mock = cmp.Or(mock, name)
		}
	}
	switch {
	case final == "stop":
		end.fate = "stop"
	case end.fate == "stop":
	case final != "":
		end.fate, end.mock = "answer", ""
		end.code = lo.Ternary(final == "deny", agent.ReasonDenied, agent.ReasonHookFailed)
	case end.fate == "answer" && end.mock == "": // denied further in
	default:
		if mock != "" {
			end.mock, end.fate = mock, lo.Ternary(end.fate == "ask", "ask", "answer")
		}
		if len(asks) > 0 {
			end.fate, end.questions = "ask", append(slices.Clip(end.questions), asks...)
		}
	}
	return end
}

// echoing is an executor that takes every call as it is.
type echoing struct{}

func (echoing) Prepare(_ context.Context, _ agent.State, call *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: call, Call: call, Strict: true})
}

func (echoing) Execute(context.Context, agent.State, *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Err[*agent.ToolResult](errors.New("nothing is executed here"))
}

// endOf reads a prepared call's result.
func endOf(p *agent.Prepared) judgedEnd {
	end := judgedEnd{n: judgedValue(p.Call)}
	end.fate = map[agent.Disposition]string{
		agent.DisposeRun: "run", agent.DisposeAnswer: "answer", agent.DisposeAsk: "ask", agent.DisposeStop: "stop",
	}[p.Disposition]
	if p.Disposition == agent.DisposeAsk {
		for _, q := range p.Questions() {
			end.questions = append(end.questions, q.By)
		}
	}
	switch {
	case p.Answer == nil:
	case p.Answer.Mocked():
		end.mock = p.Answer.DecidedBy
	default:
		end.code = p.Answer.Reason
	}
	for _, e := range p.Effects.All() {
		name, _, value, _ := e.Metadata()
		end.effects = append(end.effects, fmt.Sprint(name, "=", value))
	}
	return end
}

// watchedState returns a state with an observer.
func watchedState(t testing.TB) (watched agent.State) {
	t.Helper()
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		watched = s
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := agent.New(agent.Config{Driver: driver, Observer: agenttest.Record()}).Get()
	require.NoError(t, err)
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
	return watched
}

// With any controls of any rank, priority, failure policy and layer, the rules determine a call's result: which call
// runs, who was asked about which arguments, and the controls' other answers. Every control has judged the call that
// runs.
//
//
func TestControlsKeepTheRules(t *testing.T) {
	plain, watched := runningState(t), watchedState(t)
	rapid.Check(t, func(t *rapid.T) {
		var model judgedModel
		var player judgedPlayer
		var x agent.Executor = echoing{}
		count := 0
		for range rapid.IntRange(1, 2).Draw(t, "layers") {
			var layer []judgedControl
			for range rapid.IntRange(0, 4).Draw(t, "controls") {
				layer = append(layer, drawJudgedControl(t, fmt.Sprint("h", count)))
				count++
			}
			model.layers = append(model.layers, layer)
		}
		for i, layer := range slices.Backward(model.layers) {
			list := lo.Map(layer, func(d judgedControl, _ int) hooks.Hook { return player.hook(d) })
			if i == 0 {
				list = append(list, hooks.Observe(hooks.AtPreToolUse, "watch", func(_ context.Context, c hooks.ToolContext) error {
					player.told = append(player.told, c.Call().Arguments)
					return nil
				}))
			}
			compiled, err := hooks.NewSet(list...).Compile("tool")
			require.NoError(t, err)
			x = compiled.WrapExecutor(x)
		}
		n := rapid.IntRange(0, judgedValues-1).Draw(t, "n")
		want := model.prepare(0, n)

		s := lo.Ternary(rapid.Bool().Draw(t, "observed"), watched, plain)
		p, err := x.Prepare(context.Background(), s, &agent.ToolCall{ID: "call_1", Name: "tool", Arguments: judgedArguments(n)}).Get()
		require.Equal(t, strings.Join(model.asked, " "), strings.Join(player.asked, " "), "who was asked about what")
		require.Equal(t, want.broken, err != nil, "whether the run fails: %v", err)
		if err != nil {
			return
		}
		got := endOf(p)
		if want.fate == "stop" { // nothing else is known about a stopped call
			want.code, want.mock, got.code, got.mock = "", "", "", ""
		}
		if want.fate != "ask" {
			want.questions = nil
		}
		require.Equal(t, want, got)
		require.Equal(t, []string{p.Call.Arguments}, player.told, "observers are told once, of what was decided upon")
	})
}
