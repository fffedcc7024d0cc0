package hooks_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// pathHook is a hook of a pathScene: what it does with each call of the step, the last one for those behind it.
type pathHook struct {
	drawnHook

	says   []string
	shadow bool
	match  string
}

var (
	pathBefore = append([]string{"pass", "allow", "allow", "allow", "look", "oversleep", "look and oversleep", "cancel", "nil", "error nil", "mock failure"}, beforeDoes...)
	pathAfter  = append([]string{
		"pass", "allow", "allow", "allow", "look", "oversleep", "look and oversleep", "cancel", "nil", "error nil", "filter", "filter panics", "filter nothing",
	}, afterDoes...)
)

func drawPathHook(t *rapid.T, i int, says []string) pathHook {
	h := pathHook{drawnHook: drawHook(t, i, says)}
	h.limited = rapid.IntRange(0, 5).Draw(t, "limited") == 0 // else few are asked in the quick way
	h.says = rapid.SliceOfN(rapid.SampledFrom(says), 1, 3).Draw(t, "says")
	h.shadow = rapid.IntRange(0, 9).Draw(t, "shadow") == 0
	if h.match = rapid.SampledFrom([]string{"", "", "", "", "glob", "argument", "not"}).Draw(t, "match"); h.match != "" {
		h.tool = ""
	}
	return h
}

// pathScene is a step with hooks around its calls.
type pathScene struct {
	scene

	befores, failures, afters []pathHook
	watched                   bool // by hooks that observe
}

func drawPathScene(t *rapid.T) pathScene {
	var s pathScene
	for i := range rapid.IntRange(0, 4).Draw(t, "before") {
		s.befores = append(s.befores, drawPathHook(t, i, pathBefore))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "failures") {
		s.failures = append(s.failures, drawPathHook(t, 10+i, pathAfter))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "after") {
		s.afters = append(s.afters, drawPathHook(t, 20+i, pathAfter))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
		s.calls = append(s.calls, drawCall(t))
		s.ids = append(s.ids, fmt.Sprint("call_", i))
	}
	s.verdict = rapid.SampledFrom([]agent.ApprovalVerdict{agent.Approve, agent.RejectAndContinue, agent.RejectAndEnd}).Draw(t, "verdict")
	s.noApprover = rapid.Bool().Draw(t, "no approver")
	s.watched = rapid.IntRange(0, 3).Draw(t, "watched") == 0
	all := slices.Concat(s.befores, s.failures, s.afters)
	if slices.ContainsFunc(all, func(h pathHook) bool { return slices.Contains(h.says, "cancel") }) {
		for _, list := range [][]pathHook{s.befores, s.failures, s.afters} {
			for i := range list {
				list[i].limited = false // a hook with a time limit is not waited for in a run that was cancelled
			}
		}
	}
	return s
}

// hookPath is one way in which a scene's hooks may be asked.
type hookPath struct {
	full     bool // each hook has a matcher besides, so that none is asked in the quick way
	observed bool
	many     bool // there are more tools than the hooks look at one by one
}

// account is everything visible about a run.
type account struct {
	State  string
	Err    string
	Ran    []string
	Asked  []string // which hooks, about what
	Told   []string // what hooks that observe were told
	Events []string
}

// pathPlayer plays a scene in one way.
type pathPlayer struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	seen   account
}

func (p *pathPlayer) note(list *[]string, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, strings.ReplaceAll(fmt.Sprintf(format, args...), moreTools, ""))
}

// moreTools is how the tools that only one way has are listed for the model.
var moreTools = strings.Join(lo.Times(10, func(i int) string { return fmt.Sprint(", more_", i) }), "")

// anyView is what the contexts of all points have.
type anyView interface {
	Allow(effects ...agent.Effect) hooks.Result
	Fail(err error) hooks.Result
}

// resultView is what the contexts of both points after a call have.
type resultView interface {
	hooks.Context
	anyView
	Call() hooks.Call
	Index() int
	Text() string
	Pass() hooks.Result
	Replace(text string, effects ...agent.Effect) hooks.Result
	Withhold(reason string, effects ...agent.Effect) hooks.Result
	Stop(reason string, effects ...agent.Effect) hooks.Result
	Filter(f func(text string) string, effects ...agent.Effect) hooks.Result
}

// common does what hooks can do at all points.
func (p *pathPlayer) common(ctx context.Context, c anyView, says string) hooks.Result {
	switch says {
	case "allow":
		return c.Allow()
	case "add":
		return c.Allow(agent.AddMessage(agent.UserText("note")), note.Set(says))
	case "look":
		ctx.Deadline()
		return c.Allow()
	case "oversleep", "look and oversleep":
		if says != "oversleep" {
			ctx.Deadline()
		}
		time.Sleep(2 * hooks.DefaultTimeout)
		return c.Allow()
	case "cancel":
		p.cancel()
		return c.Allow()
	case "nil":
		return okOutcome(nil)
	case "error nil":
		return mo.Err[*hooks.Outcome](nil)
	case "fail":
		return c.Fail(errPaper)
	case "panic":
		panic("boom")
	case "hang":
		<-ctx.Done()
	case "foreign":
		return foreign
	}
	return hooks.Result{}
}

func (p *pathPlayer) before(d pathHook) hooks.Hook {
	return p.finish(d, hooks.On(hooks.AtPreToolUse, d.name, func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		says := d.says[min(c.Index(), len(d.says)-1)]
		p.note(&p.seen.Asked, "%s %s %s %d", d.name, c.Call().ID, c.Call().Arguments, c.State().MessageCount())
		switch says {
		case "deny":
			return c.Deny("denied by "+d.name, note.Set(d.name))
		case "stop":
			return c.Stop("stopped by " + d.name)
		case "ask":
			return c.Ask("asked by " + d.name)
		case "mock":
			return c.Mock("mocked by " + d.name)
		case "mock failure":
			return c.MockFailure("mocked by " + d.name)
		case "rewrite well":
			return c.Rewrite(json.RawMessage(strings.Replace(fitting(c.Tool()), "a.txt", d.name, 1)))
		case "rewrite badly":
			return c.Rewrite(map[string]any{"no such": "member"})
		}
		return p.common(ctx, c, says)
	}))
}

func (p *pathPlayer) after(ctx context.Context, c resultView, d pathHook) hooks.Result {
	says := d.says[min(c.Index(), len(d.says)-1)]
	p.note(&p.seen.Asked, "%s %s %q %d", d.name, c.Call().ID, c.Text(), c.State().MessageCount())
	switch says {
	case "replace":
		return c.Replace("replaced by "+d.name, note.Set(d.name))
	case "withhold":
		return c.Withhold("withheld by " + d.name)
	case "stop":
		return c.Stop("stopped by " + d.name)
	case "filter":
		return c.Filter(func(text string) string { return strings.ReplaceAll(text, "ran", d.name) })
	case "filter nothing":
		return c.Filter(func(text string) string { return text })
	case "filter panics":
		return c.Filter(func(string) string { panic("boom") })
	}
	return p.common(ctx, c, says)
}

func (p *pathPlayer) finish(d pathHook, h hooks.Hook) hooks.Hook {
	h = d.finishDrawn(h)
	switch d.match {
	case "glob":
		h = h.Matching(hooks.ToolMatching("*_file"))
	case "argument":
		h = h.Matching(hooks.ArgumentMatching("path", "*"))
	case "not":
		h = h.Matching(hooks.Not(hooks.ToolNamed("bash")))
	}
	if d.shadow {
		h = h.InShadow()
	}
	return h
}

// hooks returns the scene's hooks.
func (p *pathPlayer) hooks(s pathScene, way hookPath) (list []hooks.Hook) {
	for _, d := range s.befores {
		list = append(list, p.before(d))
	}
	for _, d := range s.failures {
		list = append(list, p.finish(d, hooks.On(hooks.AtToolFailed, d.name, func(ctx context.Context, c hooks.ToolFailureContext) hooks.Result {
			return p.after(ctx, c, d)
		})))
	}
	for _, d := range s.afters {
		list = append(list, p.finish(d, hooks.On(hooks.AtPostToolUse, d.name, func(ctx context.Context, c hooks.ToolResultContext) hooks.Result {
			return p.after(ctx, c, d)
		})))
	}
	if s.watched {
		list = append(list, hooks.ObserveAll("watch", func(_ context.Context, c hooks.Context) error {
			raw, err := json.Marshal(c.Frozen())
			p.note(&p.seen.Told, "%s %s %d", c.Point(), raw, c.State().MessageCount())
			return err
		}, hooks.PreToolUse, hooks.ToolFailed, hooks.PostToolUse))
	}
	if way.full {
		always := hooks.When(func(hooks.Context) bool { return true })
		list = lo.Map(list, func(h hooks.Hook, _ int) hooks.Hook { return h.Matching(always) })
	}
	return list
}

// account plays the scene in one way.
func (s pathScene) account(t *testing.T, rt tester, way hookPath) account {
	t.Helper()
	var shop workshop
	p := &pathPlayer{}
	more := []capability.Capability{shop.capability(), capability.UseLater(capability.Later{Tools: []string{"unknown"}})}
	if !s.noApprover {
		more = append(more, approving(s.verdict))
	}
	if way.many {
		for i := range 10 {
			more = append(more, capability.UseTools(toolexec.Func(fmt.Sprint("more_", i), "", func(context.Context, struct{}) (string, error) { return "", nil })))
		}
	}
	var recorder *agenttest.Recorder
	if way.observed {
		recorder = agenttest.Record()
	}
	calls := lo.Map(s.calls, func(c drawnCall, i int) agent.ToolCall {
		return agent.ToolCall{ID: s.ids[i], Name: c.tool, Arguments: c.arguments}
	})
	driver := agenttest.Script(agenttest.Reply(agent.Step{Message: agent.Assistant("", calls...)})).Then(agenttest.Say("done"))
	a := hookedAgent(rt, driver, recorder, p.hooks(s, way), more...)
	inBubble(t, func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		p.cancel = cancel
		final, err := a.RunWith(ctx, agent.RunSettings{ID: "run_1", Session: "session_1"}, agent.NewState(), agent.UserText("go")).Get()
		if failed, ok := errors.AsType[*agent.RunError](err); ok {
			final = failed.State
		}
		p.seen.State = strings.ReplaceAll(string(lo.Must(final.MarshalJSON())), moreTools, "")
		p.seen.Err = strings.ReplaceAll(fmt.Sprint(err), moreTools, "")
		time.Sleep(time.Hour) // hooks that were left behind return
	})
	p.seen.Ran = shop.ran
	if recorder != nil {
		for _, e := range agenttest.Of[hooks.Event](recorder) {
			p.note(&p.seen.Events, "%s %s %s %d %v control=%t shadow=%t attempt=%d %s %s %q %v %s %s→%s", e.Kind, e.Hook, e.Point, e.Order, e.Call, e.Control,
				e.Shadow, e.Attempt, e.Duration, e.Decision, e.Reason, e.Err, e.Policy, e.Before, e.After)
		}
	}
	return p.seen
}

// requireOnePath plays a scene in every way.
func (s pathScene) requireOnePath(t *testing.T, rt tester) {
	t.Helper()
	want := s.account(t, rt, hookPath{full: true, observed: true})
	observed := s.account(t, rt, hookPath{observed: true})
	require.Equal(rt, want, observed, "the run has an observer")
	want.Events = nil
	for name, way := range map[string]hookPath{"all matched": {full: true}, "quick": {}, "quick, many tools": {many: true}} {
		require.Equal(rt, want, s.account(t, rt, way), name)
	}
}

// Hooks that are asked in the quick way have the same part in a run as those that are asked one by one, each with matchers
// and with its events: what becomes of each call, who is asked about what, and what the observers are told.
func TestHooksHaveOnePath(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { drawPathScene(rt).requireOnePath(t, rt) })
}

// FuzzHookPaths checks the same for scenes that the fuzzing engine chooses.
func FuzzHookPaths(f *testing.F) {
	for seed := range uint64(48) {
		source := rand.New(rand.NewPCG(seed, 1))
		var choices []byte
		for range 1000 {
			choices = binary.LittleEndian.AppendUint64(choices, source.Uint64())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { drawPathScene(rt).requireOnePath(t, rt) })(t, choices)
	})
}
