package kit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// placeholder replaces a removed result if the capability does not set another one.
const placeholder = "[this old result was removed to save room; call the tool again if it is needed]"

// Old pages are no longer shown, but stay in the transcript.
func ExampleContextEditing() {
	page := toolexec.Func("page", "Reads a page.", func(_ context.Context, in struct{ Number int }) (string, error) {
		return fmt.Sprintf("page %d, which is long and full of words", in.Number), nil
	})
	turns := []agenttest.Turn{}
	for n := range 3 {
		turns = append(turns, agenttest.Call("page", fmt.Sprintf(`{"Number":%d}`, n)))
	}
	model := agenttest.Script(append(turns, agenttest.Say("I read them."))...)
	a := builder.New().WithDriver(model).
		With(capability.UseTools(page), kit.ContextEditing{Results: 2, Keep: 1, Placeholder: "[removed]"}).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("read")).MustGet()
	fmt.Println(model.Calls()[3].Transcript())
	fmt.Println(final.Message(2).Text())
	// Output:
	// user: read
	// assistant calls page {"Number":0}
	// tool page (executed): [removed]
	// assistant calls page {"Number":1}
	// tool page (executed): [removed]
	// assistant calls page {"Number":2}
	// tool page (executed): page 2, which is long and full of words
	//
	// page 0, which is long and full of words
}

// reads returns a model that calls a tool n times in a run, a call in each step.
func reads(n int) *agenttest.Driver {
	return agenttest.Script(append(slices.Repeat([]agenttest.Turn{agenttest.Call("read", `{}`)}, n), agenttest.Say("end"))...)
}

// long returns a tool with an answer of that many bytes.
func long(name string, bytes int) toolexec.Tool { return tool(name, strings.Repeat("x", bytes)) }

// removed returns how many results each model call was not shown.
func removed(d *agenttest.Driver) (counts []int) {
	for _, asked := range d.Calls() {
		counts = append(counts, lo.CountBy(asked.Messages, func(m agent.Message) bool { return m.Text() == placeholder }))
	}
	return counts
}

// changes returns how often a model call began with other messages than the call before, so that the provider's cache
// was of no use.
func changes(d *agenttest.Driver) (n int) {
	asked := d.Calls()
	for i := 1; i < len(asked); i++ {
		before := asked[i-1].Messages
		if !slices.EqualFunc(before, asked[i].Messages[:len(before)], agent.Message.Equal) {
			n++
		}
	}
	return n
}

func TestContextIsEditedInSteps(t *testing.T) {
	const each = 400 // bytes: about a hundred tokens
	for name, tc := range map[string]struct {
		editing kit.ContextEditing
		want    []int
	}{
		"not before it is much":     {kit.ContextEditing{}, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"by results":                {kit.ContextEditing{Results: 5, Keep: 2}, []int{0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 8}},
		"by results, none kept":     {kit.ContextEditing{Results: 3, Keep: -1}, []int{0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9}}, // the newest has not been seen
		"by tokens":                 {kit.ContextEditing{Tokens: 600, Keep: 1}, []int{0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 9}},
		"by tokens, for any gain":   {kit.ContextEditing{Tokens: 350, Keep: 2, AtLeast: -1}, []int{0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 8}},
		"by tokens, for a good one": {kit.ContextEditing{Tokens: 350, Keep: 2, AtLeast: 300}, []int{0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 8}},
		"but for a tool":            {kit.ContextEditing{Results: 5, Keep: 2, Exclude: []string{"read"}}, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			d := reads(10)
			s := done(t, built(t, d, capability.UseTools(long("read", each)), tc.editing), agent.NewState(), "go")
			assert.Equal(t, tc.want, removed(d))
			assert.Equal(t, len(lo.Uniq(tc.want))-1, changes(d), "shown the same in between")
			for _, text := range told(s) {
				assert.Len(t, text, each, "the transcript stays")
			}
		})
	}
}

// Results that the model has not seen are shown, however many there are.
func TestUnseenResultsAreShown(t *testing.T) {
	many := agenttest.Call("read", `{}`)
	for range 7 {
		many = many.Call("read", `{}`)
	}
	d := agenttest.Script(many, agenttest.Call("read", `{}`), agenttest.Say("end"))
	done(t, built(t, d, capability.UseTools(long("read", 400)), kit.ContextEditing{Results: 2, Keep: 1}), agent.NewState(), "go")
	assert.Equal(t, []int{0, 0, 8}, removed(d))
}

func TestShortResultsStay(t *testing.T) {
	d := reads(10)
	done(t, built(t, d, capability.UseTools(tool("read", "short")), kit.ContextEditing{Results: 2, Keep: 1}), agent.NewState(), "go")
	assert.Equal(t, 0, lo.Sum(removed(d)))
}

// Where it has come to is the session's: another run, another process, a model call
// that fails in between, none of them changes what the model is shown.
func TestEditsAreTheSessions(t *testing.T) {
	editing := kit.ContextEditing{Results: 4, Keep: 1}
	whole := agenttest.Script(append(slices.Repeat([]agenttest.Turn{agenttest.Call("read", `{}`), agenttest.Say("so far")}, 12), agenttest.Say("end"))...)
	parts := agenttest.Script(append(slices.Repeat([]agenttest.Turn{agenttest.Call("read", `{}`), agenttest.Say("so far")}, 12), agenttest.Say("end"))...)
	one := built(t, whole, capability.UseTools(long("read", 400)), editing)
	var s, r agent.State
	for range 12 {
		s = done(t, one, s, "go on")
		r = through(t, done(t, built(t, parts, capability.UseTools(long("read", 400)), editing), r, "go on"))
	}
	assert.Equal(t, removed(whole), removed(parts))
	assert.Equal(t, 8, slices.Max(removed(whole)))
	for i, asked := range whole.Calls() {
		assert.Equal(t, texts(asked.Messages), texts(parts.Calls()[i].Messages))
	}
}

func TestEditOfACallThatFailsIsMadeAgain(t *testing.T) {
	turns := slices.Repeat([]agenttest.Turn{agenttest.Tries(busy, agenttest.Call("read", `{}`))}, 9)
	d := agenttest.Script(append(turns, agenttest.Say("end"))...)
	rec := agenttest.Record()
	a := builder.New().WithDriver(d).WithObserver(rec).With(
		capability.UseTools(long("read", 400)), kit.ContextEditing{Results: 4, Keep: 1}, kit.ModelRetry{Delay: -1},
	).Build().MustGet()
	done(t, a, agent.NewState(), "go")
	assert.Equal(t, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4, 8}, removed(d))
	edits := agenttest.Of[kit.ContextEdited](rec)
	require.Len(t, edits, 3, "the first was made twice")
	assert.Equal(t, 4, edits[0].Results)
	assert.Greater(t, edits[0].Before, edits[0].After)
}

// Whatever hooks show the model in the place of the transcript is what is edited: what
// they took out does not come back.
func TestEditingShowsWhatHooksShow(t *testing.T) {
	secret := hooks.On(hooks.AtPreInference, "secret", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		var list []agent.Message
		for m := range valuesOf(c.Messages()) {
			if m.Role() == agent.RoleTool {
				m = m.WithContent(agent.TextContent(strings.ReplaceAll(m.Text(), "x", "-")))
			}
			list = append(list, m)
		}
		return c.RewriteMessages(list)
	})
	d := reads(10)
	done(t, built(t, d, capability.UseTools(long("read", 400)), kit.ContextEditing{Results: 4, Keep: 2}, capability.UseHooks(secret)), agent.NewState(), "go")
	assert.Equal(t, 6, slices.Max(removed(d)))
	for _, asked := range d.Calls() {
		for _, m := range asked.Messages {
			assert.NotContains(t, strings.ReplaceAll(m.Text(), placeholder, ""), "x")
		}
	}
}

// Text that a hook removes only later does not come back either.
func TestEditingShowsWhatHooksShowLater(t *testing.T) {
	const secret = "the secret word"
	later := hooks.On(hooks.AtPreInference, "later", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		list := slices.Collect(valuesOf(c.Messages()))
		if len(list) < 14 {
			return c.Allow()
		}
		list[0] = agent.UserText("something")
		return c.RewriteMessages(list)
	})
	d := reads(10)
	a := built(t, d, capability.UseTools(long("read", 400)), kit.ContextEditing{Results: 4, Keep: 2}, capability.UseHooks(later))
	done(t, a, agent.NewState(), secret)
	for i, asked := range d.Calls() {
		assert.Equal(t, len(asked.Messages) < 14, asked.Messages[0].Text() == secret, "call %d", i)
	}
	assert.Equal(t, 6, slices.Max(removed(d)))
}

// An edge of the transcript is none of a list that begins elsewhere.
func TestEditingOfAListThatBeginsElsewhere(t *testing.T) {
	tail := hooks.On(hooks.AtPreInference, "tail", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		list := slices.Collect(valuesOf(c.Messages()))
		if len(list) < 14 {
			return c.Allow()
		}
		return c.RewriteMessages(append([]agent.Message{agent.UserText("what was before")}, list[len(list)-8:]...))
	})
	d := reads(10)
	a := built(t, d, capability.UseTools(long("read", 400)), kit.ContextEditing{Results: 4, Keep: 2}, capability.UseHooks(tail))
	done(t, a, agent.NewState(), "go")
	assert.Equal(t, []int{0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0}, removed(d), "four results are not too many")
}

// Another list of messages, such as a summary, is one of its own: nothing is taken for
// removed that is not.
func TestEditingOfAnotherListOfMessages(t *testing.T) {
	short := hooks.On(hooks.AtPreInference, "short", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		if c.State().MessageCount() < 14 {
			return c.Allow()
		}
		list := slices.Collect(valuesOf(c.Messages()))
		return c.RewriteMessages(append([]agent.Message{agent.UserText("what was before")}, list[len(list)-4:]...))
	})
	d := reads(10)
	done(t, built(t, d, capability.UseTools(long("read", 400)), kit.ContextEditing{Results: 4, Keep: 2}, capability.UseHooks(short)), agent.NewState(), "go")
	assert.Equal(t, []int{0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0}, removed(d))
}

func valuesOf[K, V any](pairs func(func(K, V) bool)) func(func(V) bool) {
	return func(yield func(V) bool) { pairs(func(_ K, v V) bool { return yield(v) }) }
}

// Whatever the run and the limits: each call is shown with its one answer, what is
// removed stays removed, and nothing but answers changes.
func TestEditingSplitsNothing(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var turns []agenttest.Turn
		for range 3 + r.IntN(15) {
			turn := agenttest.Call([]string{"read", "short", "other"}[r.IntN(3)], `{}`)
			for range r.IntN(4) {
				turn = turn.Call([]string{"read", "short", "other"}[r.IntN(3)], `{}`)
			}
			turns = append(turns, turn)
		}
		d := agenttest.Script(append(turns, agenttest.Say("end"))...)
		editing := kit.ContextEditing{Keep: r.IntN(4) - 1, Tokens: int64(r.IntN(1500))}
		if r.IntN(2) == 0 {
			editing.Results = 4 + r.IntN(6)
		}
		if r.IntN(2) == 0 {
			editing.Exclude = []string{"other"}
		}
		s := done(t, built(t, d, capability.UseTools(long("read", 400), tool("short", "s"), long("other", 900)), editing), agent.NewState(), "go")
		gone := 0
		for i, asked := range d.Calls() {
			now := 0
			for j, m := range asked.Messages {
				original := s.Message(j)
				if m.Text() != placeholder {
					require.True(t, m.Equal(original), "seed %d, call %d, message %d", seed, i, j)
					continue
				}
				now++
				require.Equal(t, original.CallID(), m.CallID())
				require.Equal(t, original.Status(), m.Status())
				require.NotContains(t, editing.Exclude, m.Tool())
			}
			require.GreaterOrEqual(t, now, gone, "seed %d: what is removed stays removed", seed)
			gone = now
		}
	}
}

func TestContextEditingKeepsTheContractOfADriver(t *testing.T) {
	drivesAsDriver(t, kit.ContextEditing{})
}

func TestContextEditingThatMakesNoSense(t *testing.T) {
	assert.Contains(t, wrong(t, kit.ContextEditing{Tokens: -1}), `capability "context-editing": the limit of tokens is -1`)
	assert.Contains(t, wrong(t, kit.ContextEditing{Results: -1}), "the limit of results is -1")
	assert.Contains(t, wrong(t, kit.ContextEditing{Results: 3}), "the limit of results is 3 and the newest 3 are kept")
}

// Before anything is removed, a step costs the same however long the transcript is;
// from then on it copies a list of words.
func BenchmarkContextEditing(b *testing.B) {
	for _, n := range []int{10, 1000, 4000} {
		model := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
			if s.StepCount() == n {
				return agent.Step{Message: agent.Assistant("end")}, nil
			}
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "read", Arguments: "{}"})}, nil
		})
		for name, list := range map[string][]capability.Capability{
			"without": nil, "unedited": {kit.ContextEditing{Tokens: 1 << 40}}, "edited": {kit.ContextEditing{Results: 4}},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				a := built(b, model, append(list, capability.UseTools(long("read", 100)))...)
				for b.Loop() {
					done(b, a, agent.NewState(), "go")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/step")
			})
		}
	}
}
