package mock_test

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/mock"
	"github.com/grapnel-go/grapnel/hooks/redact"
)

func table(t testing.TB, o mock.Options, rows ...mock.Row) *mock.Table {
	t.Helper()
	table, err := mock.NewTable(o, rows...)
	require.NoError(t, err)
	return table
}

func TestTable(t *testing.T) {
	var w world
	table := table(t, mock.Options{},
		mock.Row{Tool: "weather", Arguments: mock.Arguments{"city": "Oslo", "days": 2}, Text: "snow for two days"},
		mock.Row{Tool: "weather", Arguments: mock.Arguments{"city": "Oslo"}, Failure: "the line is busy", Times: 1},
		mock.Row{Tool: "weather", Arguments: mock.Arguments{"city": regexp.MustCompile("^Os")}, Text: "snow"},
		mock.Row{When: func(c hooks.Call) bool { city, _ := c.Text("city"); return city == "Rome" }, Content: agent.ContentOf(agent.Text("sun "), agent.Text("& wind"))},
		mock.Row{Name: "never", Tool: "weather", Arguments: mock.Arguments{"town": "Oslo"}, Text: "x"},
		mock.Row{Tool: "other", Text: "x"},
	)
	list := []hooks.Hook{table.Hook()}
	got := w.play(t, list, weather("Oslo"), weather("Oslo"), weather("Osaka"), weather("Rome"), weather("Bonn"),
		agenttest.Call("weather", `{"days":2.0,"city":"\u004fslo"}`), agenttest.Call("weather", `{"town":"Oslo"}`))
	assert.Equal(t, []string{
		"mocked! 0 mock: the line is busy", "mocked 0 mock: snow", "mocked 0 mock: snow", "mocked 0 mock: sun & wind",
		`not_executed! 0 mock: tool "weather": denied by mock: the table of mocks has no answer of weather to these arguments: {"city":"Bonn"}`,
		"mocked 0 mock: snow for two days",
	}, got[:6])
	assert.Contains(t, got[6], "not_executed! 0 : tool \"weather\"", "the schema's complaint")
	assert.Equal(t, "mocked! 0 mock: the line is busy", w.play(t, list, weather("Oslo"))[0], "Times is for each run")
	assert.Zero(t, w.ran.Load())
	assert.Equal(t, []mock.Use{
		{Row: "row 1: weather", Count: 1},
		{Row: "row 2: weather", Count: 2},
		{Row: "row 3: weather", Count: 2},
		{Row: "row 4: any tool", Count: 1},
		{Row: "never", Count: 0},
		{Row: "row 6: other", Count: 0},
	}, table.Uses())
	assert.Equal(t, []string{"never", "row 6: other"}, table.UnusedRows())
	require.Len(t, table.UnmatchedCalls(), 1)
	assert.JSONEq(t, `{"city":"Bonn"}`, table.UnmatchedCalls()[0].Arguments)
}

func TestWhatIsNotInTheTableMayPass(t *testing.T) {
	var w world
	table := table(t, mock.Options{Unmatched: mock.Pass}, mock.Row{Arguments: mock.Arguments{"city": "Oslo"}, Text: "snow"})
	got := w.play(t, []hooks.Hook{table.Hook()}, weather("Rome"), weather("Oslo"))
	assert.Equal(t, []string{"executed 1 : Rome: report 1", "mocked 0 mock: snow"}, got)
}

func TestWrongTables(t *testing.T) {
	_, err := mock.NewTable(mock.Options{},
		mock.Row{Tool: "a", Text: "x", Failure: "y"},
		mock.Row{Name: "odd", Arguments: mock.Arguments{"f": func() {}, "b": make(chan int)}},
	)
	require.ErrorContains(t, err, "creating a table of mocks: row 1: a: set only one of Text, Content and Failure\nodd: argument \"b\": ")
	assert.ErrorContains(t, err, "odd: argument \"f\": ")
}

// LH-34: what is mocked goes through the hooks after the call, and a guard before it has its say.
func TestOtherHooks(t *testing.T) {
	var w world
	secrets, err := redact.New(redact.Options{Literals: map[string]string{"PIN": "hunter22"}})
	require.NoError(t, err)
	var statuses []agent.ToolStatus
	see := hooks.Observe(hooks.AtPostToolUse, "see", func(_ context.Context, c hooks.ToolResultContext) error {
		statuses = append(statuses, c.Status())
		return nil
	})
	never := hooks.On(hooks.AtPreToolUse, "never", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("no") },
		hooks.ArgumentEquals("city", "Rome"))
	rename := hooks.On(hooks.AtPreToolUse, "rename", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return c.Rewrite(map[string]string{"city": "Oslo"})
	}, hooks.ArgumentEquals("city", "Kristiania"))
	table := table(t, mock.Options{}, mock.Row{Arguments: mock.Arguments{"city": "Oslo"}, Text: "the PIN is hunter22"})
	got := w.play(t, []hooks.Hook{table.Hook(), secrets.Results(), see, never, rename}, weather("Oslo"), weather("Rome"), weather("Kristiania"))
	assert.Equal(t, []string{
		"mocked 0 redact: the PIN is [redacted: PIN]", `not_executed! 0 never: tool "weather": denied by never: no`,
		"mocked 0 redact: the PIN is [redacted: PIN]",
	}, got)
	assert.Equal(t, []agent.ToolStatus{agent.ToolMocked, agent.ToolNotExecuted, agent.ToolMocked}, statuses)
	assert.Empty(t, table.UnmatchedCalls(), "what is denied before is not looked up")
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		table := table(t, mock.Options{}, mock.Row{Tool: "weather", Text: "at last", Latency: 2 * time.Minute})
		began := time.Now()
		got := w.play(t, []hooks.Hook{table.Hook()}, weather("Oslo").Call("weather", `{"city":"Rome"}`))
		assert.Equal(t, []string{"mocked 0 mock: at last", "mocked 0 mock: at last"}, got)
		assert.Equal(t, 4*time.Minute, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		err := w.agent(t, []hooks.Hook{table.Hook()}, weather("Oslo")).Run(ctx, agent.NewState(), agent.UserText("go")).Error()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
		assert.Zero(t, w.ran.Load())
	})
}

// The first mock answers; a second one is for what the first one passes on.
func TestSeveralMocks(t *testing.T) {
	var w world
	first, second := twoTables(t)
	got := w.play(t, []hooks.Hook{first.Hook(), second.Hook()}, weather("Oslo"), weather("Rome"), weather("Oslo"), weather("Bonn"))
	assert.Equal(t, []string{"mocked 0 first: snow", "mocked 0 first: sun", "mocked 0 second: more snow"}, got[:3])
	assert.Contains(t, got[3], "denied by second")
	assert.Equal(t, []mock.Use{{Row: "row 1: any tool", Count: 1}, {Row: "row 2: any tool", Count: 1}}, first.Uses())
}

// Middleware that takes a step twice asks twice: no mock is silent the second time since it, or another, spoke before.
func TestStepThatIsTakenAgain(t *testing.T) {
	var w world
	first, second := twoTables(t)
	twice := agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		next(ctx, s)
		return next(ctx, s)
	})
	a, err := builder.New().WithDriver(agenttest.Script(weather("Oslo").Call("weather", `{"city":"Rome"}`), agenttest.Say("done"))).
		With(capability.UseTools(w.weather()), capability.UseHooks(first.Hook(), second.Hook()), capability.UseStepProcessor("twice", twice)).Build().Get()
	require.NoError(t, err)
	got := answers(a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
	assert.Equal(t, []string{"mocked 0 second: more snow", "mocked 0 first: sun"}, got)
	assert.Zero(t, w.ran.Load())
}

// A mock that is asked again about a rewritten call takes back what it said before, and answers before the mocks behind it.
func TestRewrittenCallsAreLookedUpAgain(t *testing.T) {
	var w world
	rows := table(t, mock.Options{Unmatched: mock.Pass},
		mock.Row{Arguments: mock.Arguments{"city": "Oslo"}, Text: "snow", Times: 1}, mock.Row{Arguments: mock.Arguments{"city": "Rome"}, Text: "sun"})
	rewrite := hooks.On(hooks.AtPreToolUse, "rewrite", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if c.StepIndex() == 0 {
			return c.Rewrite(map[string]any{"city": "Rome"})
		}
		return c.Pass()
	}).WithPriority(2 * hooks.PriorityAfterwork)
	behind := table(t, mock.Options{Name: "behind"}, mock.Row{Text: "rain"})
	hook := behind.Hook().WithPriority(3 * hooks.PriorityAfterwork)
	got := w.play(t, []hooks.Hook{rows.Hook(), rewrite, hook}, weather("Oslo"), weather("Oslo"), weather("Oslo"))
	assert.Equal(t, []string{"mocked 0 mock: sun", "mocked 0 mock: snow", "mocked 0 behind: rain"}, got)
	assert.Equal(t, []mock.Use{{Row: "row 1: any tool", Count: 1}, {Row: "row 2: any tool", Count: 1}}, rows.Uses())
	assert.Equal(t, []mock.Use{{Row: "row 1: any tool", Count: 1}}, behind.Uses())
	assert.Len(t, rows.UnmatchedCalls(), 1)
}

func twoTables(t *testing.T) (first, second *mock.Table) {
	t.Helper()
	return table(t, mock.Options{Name: "first", Unmatched: mock.Pass},
			mock.Row{Arguments: mock.Arguments{"city": "Oslo"}, Text: "snow", Times: 1},
			mock.Row{Arguments: mock.Arguments{"city": "Rome"}, Text: "sun"}),
		table(t, mock.Options{Name: "second"}, mock.Row{Arguments: mock.Arguments{"city": "Oslo"}, Text: "more snow"})
}

func TestRunsAtOnce(t *testing.T) {
	var w world
	table := table(t, mock.Options{}, mock.Row{Failure: "busy", Times: 1}, mock.Row{Text: "snow"})
	a := w.agent(t, []hooks.Hook{table.Hook()}, weather("Oslo"), weather("Oslo"), weather("Oslo"))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			got := answers(a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet())
			assert.Equal(t, []string{"mocked! 0 mock: busy", "mocked 0 mock: snow", "mocked 0 mock: snow"}, got)
		})
	}
	all.Wait()
	assert.Equal(t, []mock.Use{{Row: "row 1: any tool", Count: 10}, {Row: "row 2: any tool", Count: 20}}, table.Uses())
}
