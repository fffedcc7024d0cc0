package backtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/policy/backtest"
)

// onTool returns a control before the calls of one tool.
func onTool(name, tool string, answer func(hooks.ToolContext) hooks.Result) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result { return answer(c) }, hooks.ToolNamed(tool))
}

func deny(c hooks.ToolContext) hooks.Result { return c.Deny("no") }

// recording returns a file of runs that call one tool per turn.
func recording(t *testing.T, runs ...string) []backtest.Recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(runs, "\n")), 0o600))
	found, err := backtest.Find(path)
	require.NoError(t, err)
	return found
}

// runOf returns a run that calls these tools, one per turn. Each call succeeds unless the name ends in "!".
func runOf(id, more string, tools ...string) string {
	messages := []string{`{"role":"user","content":"go"}`}
	for i, tool := range tools {
		name, failed := strings.CutSuffix(tool, "!")
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":%q,"arguments":"{\"n\": %d}"}}]}`, i, name, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"did %s","x_error":%t}`, i, name, failed))
	}
	messages = append(messages, `{"role":"assistant","content":"done"}`)
	return fmt.Sprintf(`{"id":%q,%s"messages":[%s]}`, id, more, strings.Join(messages, ","))
}

func run(t *testing.T, found []backtest.Recording, list ...hooks.Hook) *backtest.Report {
	t.Helper()
	report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("p", list...)}})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	return report
}

// said returns the decisions of all runs, one per line.
func said(r *backtest.Report) (out []string) {
	for _, c := range r.Cases {
		for _, d := range c.Verdicts[0].Decisions {
			text := fmt.Sprintf("%s %d/%d %s %s by %s: %s", c.ID, d.Message, d.Call, d.Tool, d.Effect, d.Rule, d.Reason)
			text += lo.Ternary(d.Worked, " worked", "") + lo.Ternary(d.Failed, " failed", "") + lo.Ternary(d.Shadow, " shadow", "") + lo.Ternary(d.After, " after", "")
			out = append(out, text)
		}
	}
	return out
}

func TestEffects(t *testing.T) {
	t.Parallel()
	after := func(answer func(hooks.ToolResultContext) hooks.Result) hooks.Hook {
		return hooks.On(hooks.AtPostToolUse, "h", func(_ context.Context, c hooks.ToolResultContext) hooks.Result { return answer(c) }, hooks.ToolNamed("b"))
	}
	for name, tc := range map[string]struct {
		hook hooks.Hook
		want []string
		left replay.DepartureKind
	}{
		"allowed":   {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Allow() }), nil, ""},
		"denied":    {onTool("h", "b", deny), []string{"r 3/0 b denied by h: no worked"}, replay.CallDenied},
		"asked":     {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Ask("may I?") }), []string{"r 3/0 b asked by h: may I? worked"}, replay.CallDenied},
		"undecided": {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("odd")) }), []string{"r 3/0 b denied by h: odd worked failed"}, replay.CallDenied},
		"open":      {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Fail(errors.New("odd")) }).WithFailure(hooks.Open), []string{"r 3/0 b failed by h: odd worked failed"}, ""},
		"rewritten": {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Rewrite(json.RawMessage(`{"n":7}`)) }), []string{"r 3/0 b rewritten by h:  worked"}, replay.CallRewritten},
		"mocked":    {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Mock("made up") }), []string{"r 3/0 b mocked by h:  worked"}, replay.CallMocked},
		"stopped": {onTool("h", "b", func(c hooks.ToolContext) hooks.Result { return c.Stop("enough") }), []string{
			"r 3/0 b stopped by h: enough worked", "r 5/0 c not_reached by : the run had already stopped after",
		}, replay.CallNotRun},
		"redacted": {after(func(c hooks.ToolResultContext) hooks.Result { return c.Replace("xxx") }), []string{"r 3/0 b redacted by h:  worked"}, replay.AnswerChanged},
		"withheld": {after(func(c hooks.ToolResultContext) hooks.Result { return c.Withhold("secret") }), []string{"r 3/0 b redacted by h: secret worked"}, replay.AnswerChanged},
		"shadow":   {onTool("h", "b", deny).InShadow(), []string{"r 3/0 b denied by h: no worked shadow"}, ""},
		"input": {hooks.On(hooks.AtInputSubmitted, "h", func(_ context.Context, c hooks.InputContext) hooks.Result { return c.Deny("not you") }),
			[]string{"r 1/-1  denied by h: not you"}, replay.ContextChanged},
		"a reply": {hooks.On(hooks.AtPreInference, "h", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
			return lo.Ternary(c.StepIndex() == 1, c.Stop("late"), c.Pass())
		}), []string{
			"r 3/-1  stopped by h: late", "r 3/0 b not_reached by : the run had already stopped worked after", "r 5/0 c not_reached by : the run had already stopped after",
		}, replay.TurnsLeft},
		"an observer": {hooks.Observe(hooks.AtPreToolUse, "h", func(context.Context, hooks.ToolContext) error { return errors.New("odd") }), nil, ""},
	} {
		report := run(t, recording(t, runOf("r", "", "a", "b", "c!")), tc.hook)
		assert.Equal(t, tc.want, said(report), name)
		total := report.Policies[0].Total
		assert.Equal(t, 3, lo.SumBy(report.Policies[0].Tools, func(r backtest.ToolRow) int { return r.Calls }), name)
		if tc.left != "" {
			assert.Equal(t, map[replay.DepartureKind]int{tc.left: 1}, total.Left, name)
		} else {
			assert.Empty(t, total.Left, name)
		}
	}
}

func TestAfterTheFirstDeniedCall(t *testing.T) {
	t.Parallel()
	report := run(t, recording(t, runOf("r", "", "a", "b", "a")), onTool("first", "a", deny), onTool("second", "b", deny), onTool("never", "z", deny))
	assert.Equal(t, []string{
		"r 1/0 a denied by first: no worked", "r 3/0 b denied by second: no worked after", "r 5/0 a denied by first: no worked after",
	}, said(report))
	type numbers struct {
		name                        string
		judged, denied, runs, first int
	}
	assert.Equal(t, []numbers{{"first", 2, 2, 1, 1}, {"second", 1, 1, 1, 0}, {"never", 0, 0, 0, 0}},
		lo.Map(report.Policies[0].Rules, func(r backtest.Rule, _ int) numbers {
			return numbers{r.Name, r.Judged, r.Effects[backtest.Denied], r.Runs, r.First}
		}))
}

// Two calls in one turn, and two runs in one recording, keep their positions.
func TestPlaces(t *testing.T) {
	t.Parallel()
	two := `{"id":"r","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"hello"},{"role":"user","content":"two"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"x","type":"function","function":{"name":"b","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"x","content":"1","x_error":true},{"role":"tool","tool_call_id":"x","content":"2"}]}`
	report := run(t, recording(t, strings.ReplaceAll(two, "\n", "")), onTool("h", "a", deny), onTool("i", "b", deny))
	assert.Equal(t, []string{"r 3/0 a denied by h: no", "r 3/1 b denied by i: no worked after"}, said(report))
}

func TestRuleOrigins(t *testing.T) {
	t.Parallel()
	h := onTool("p/r", "a", func(c hooks.ToolContext) hooks.Result {
		return hooks.Because(c.Deny("no"), hooks.Fact{Name: "args.n", Value: "0"})
	}).From(&hooks.Origin{Policy: "p", Rule: "r", File: "p.yaml", Line: 7})
	report := run(t, recording(t, runOf("r", "", "a")), h)
	d := report.Cases[0].Verdicts[0].Decisions[0]
	assert.Equal(t, []any{"p.yaml", 7, []hooks.Fact{{Name: "args.n", Value: "0"}}}, []any{d.File, d.Line, d.Facts})
	rule := report.Policies[0].Rules[0]
	assert.Equal(t, []any{"p.yaml", 7}, []any{rule.File, rule.Line})
}

// The labels of a made-up recording yield the expected numbers.
func TestNumbers(t *testing.T) {
	t.Parallel()
	harm := `"kind":"attack","security":false,"suite":"bank","model":"m1","labels":[{"call":"c1","label":"harm","executed":true}],`
	found := recording(t,
		runOf("attack", harm, "read", "pay"), runOf("other", harm, "read", "mail"),
		runOf("good", `"kind":"clean","utility":true,"suite":"bank","model":"m2",`, "read", "pay"),
		runOf("good too", `"kind":"clean","utility":true,"suite":"bank",`, "read", "pay!"),
		runOf("twin", `"kind":"authorised_twin","suite":"shop",`, "pay"),
	)
	report := run(t, found, onTool("no-pay", "pay", deny))
	p := report.Policies[0]
	assert.Equal(t, []backtest.Share{{Count: 1, Of: 2}, {Count: 1, Of: 2}, {Count: 1, Of: 1}}, []backtest.Share{p.Total.Blocked, p.Total.Broken, p.Total.Twins})
	assert.Equal(t, []string{"bank", "shop"}, lo.Map(p.Suites, func(r backtest.Row, _ int) string { return r.Name }))
	assert.Equal(t, []string{"", "m1", "m2"}, lo.Map(p.Models, func(r backtest.Row, _ int) string { return r.Name }))
	assert.Equal(t, 1, p.Rules[0].Harm)
	assert.Len(t, report.Cases, 5)

	var text, wide bytes.Buffer
	require.NoError(t, report.WriteText(&text, backtest.Look{Width: 60}))
	require.NoError(t, report.WriteText(&wide, backtest.Look{Width: 160, Colour: true}))
	for line := range strings.Lines(text.String()) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 60, line)
	}
	assert.Contains(t, regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(wide.String(), ""), "1/2  50.0 %")
	var again backtest.Report
	var out bytes.Buffer
	require.NoError(t, report.WriteJSON(&out))
	require.NoError(t, json.Unmarshal(out.Bytes(), &again))
	assert.Equal(t, p.Total.Blocked, again.Policies[0].Total.Blocked)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	found := recording(t, runOf("r1", "", "a", "b", "c"), runOf("r2", "", "a", "c"), runOf("r3", "", "d"))
	ask := func(c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }
	of := func(old, now []hooks.Hook) *backtest.Diff {
		report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("old", old...), backtest.Always("new", now...)}})
		require.NoError(t, err)
		diff, err := report.Diff()
		require.NoError(t, err)
		return diff
	}
	before := []hooks.Hook{onTool("no-a", "a", deny), onTool("no-b", "b", deny), onTool("no-d", "d", deny).InShadow()}
	after := []hooks.Hook{onTool("ask-a", "a", ask), onTool("no-c", "c", deny)}
	diff := of(before, after)
	assert.Equal(t, []string{
		"r1 a denied→asked ask-a", "r1 b denied→allowed no-b", "r1 c allowed→denied no-c", "r2 a denied→asked ask-a", "r2 c allowed→denied no-c",
	}, lo.Map(diff.Changes, func(c backtest.Change, _ int) string {
		return fmt.Sprintf("%s %s %s→%s %s", c.Run, c.Tool, c.From, c.To, c.Rule)
	}))
	assert.Equal(t, []string{"allowed→denied c 2/2", "denied→asked a 2/2", "denied→allowed b 1/1"}, lo.Map(diff.Groups, func(g backtest.Group, _ int) string {
		return fmt.Sprintf("%s→%s %s %d/%d", g.From, g.To, g.Tool, g.Calls, g.Runs)
	}))
	var out bytes.Buffer
	require.NoError(t, diff.WriteText(&out, backtest.Look{}))
	assert.Contains(t, out.String(), "newly allowed (was denied)  b         1     1           1")

	same := of(before, lo.Map(before, func(h hooks.Hook, _ int) hooks.Hook { return h }))
	assert.True(t, same.Empty())
	out.Reset()
	require.NoError(t, same.WriteText(&out, backtest.Look{}))
	assert.Contains(t, out.String(), "old and new decide the same about every call.")
}

// Unreadable runs are reported with their position, and the others are replayed.
func TestBadRunsAreToldAndTheRestIsPlayed(t *testing.T) {
	t.Parallel()
	found := recording(t, runOf("fine", "", "a"), `{"id": `, `{"id":"role","messages":[{"role":"friend"}]}`,
		`{"id":"tools","tools_ref":"nothing.json","messages":[]}`, runOf("fine too", "", "a"),
		`{"id":"bad","tools":[{"type":"function","function":{"name":"get balance"}}],"messages":[]}`)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("p", onTool("h", "a", deny))}})
	require.NoError(t, err)
	assert.Equal(t, 2, report.Runs)
	assert.Equal(t, 4, report.Failed)
	require.Len(t, report.Problems, 4)
	for i, want := range []string{"line 2: ", `line 3: replay "role": message 1 has the role "friend"`, `line 4: run "tools": load tools: `, `line 6: run "bad": build an agent with policy p: `} {
		assert.Contains(t, report.Problems[i], want)
	}
}

func TestPoliciesThatDoNotKnowASuite(t *testing.T) {
	t.Parallel()
	report, err := backtest.Run(t.Context(), recording(t, runOf("r", `"suite":"chess",`, "a"), runOf("s", "", "a")), backtest.Options{Policies: []backtest.Policy{
		backtest.Always("all", onTool("h", "a", deny)),
		{Name: "some", Hooks: func(suite string) ([]hooks.Hook, error) {
			if suite == "chess" {
				return nil, errors.New("chess is unknown")
			}
			return []hooks.Hook{onTool("h", "a", deny)}, nil
		}},
	}})
	require.NoError(t, err)
	assert.Equal(t, []backtest.LeftOut{{Policy: "some", Suite: "chess", Runs: 1, Why: "chess is unknown"}}, report.LeftOut)
	assert.Equal(t, []int{2, 1}, lo.Map(report.Policies, func(p backtest.PolicyReport, _ int) int { return p.Total.Runs }))

	_, err = backtest.Run(t.Context(), nil, backtest.Options{})
	require.ErrorContains(t, err, "Options.Policies is empty")
	_, err = backtest.Run(t.Context(), nil, backtest.Options{Policies: []backtest.Policy{{Name: "a"}, {Name: "a"}}})
	require.ErrorContains(t, err, "two policies have the same name")
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := backtest.Find(dir, filepath.Join(dir, "nothing.jsonl"))
	require.ErrorContains(t, err, "no recordings: expected files named")
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, name := range []string{"a.jsonl", "b.json", "c.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(`{"id":"x","cmd":"ls"}`), 0o600))
	}
	found, err := backtest.Find(dir, filepath.Join(dir, "a.jsonl"), filepath.Join(dir, ".", "c.txt"))
	require.NoError(t, err)
	assert.Len(t, found, 3)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("p")}})
	require.NoError(t, err)
	assert.Len(t, report.LeftOut, 2, "what was found and is no recording is left out")
	assert.Equal(t, 1, report.Failed, "what was named must be one")
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	runs := lo.Times(50, func(i int) string { return runOf(fmt.Sprint("r", i), "", "a") })
	stop := onTool("h", "a", func(c hooks.ToolContext) hooks.Result { cancel(); return c.Allow() })
	report, err := backtest.Run(ctx, recording(t, runs...), backtest.Options{AtOnce: 1, Policies: []backtest.Policy{backtest.Always("p", stop)}})
	require.NoError(t, err)
	assert.True(t, report.Interrupted)
	assert.Less(t, report.Runs, 50)
	assert.Zero(t, report.Failed, "an interrupted run has not failed")
}

// hostile is text that tries to act as markup, script and terminal commands.
const hostile = `</script><script>document.title="HACKED"</script><img src=x onerror="document.title='HACKED'">` + "\x1b]0;HACKED\x07\x1b[2J\u202eevil"

// hostileReport returns the report on a recording in which all text is hostile.
func hostileReport(t *testing.T) *backtest.Report {
	t.Helper()
	text, err := json.Marshal(hostile)
	require.NoError(t, err)
	args, err := json.Marshal(`{"x": ` + string(text) + `}`)
	require.NoError(t, err)
	line := strings.NewReplacer("EVIL", string(text), "ARGS", string(args)).Replace(`{"id":EVIL,"suite":EVIL,"model":EVIL,"task":EVIL,"kind":"attack","security":false,` +
		`"attack":{"type":EVIL,"goal":EVIL,"injection_task":"","vectors":[]},"labels":[{"call":"c","label":"harm","executed":true}],` +
		`"messages":[{"role":"user","content":EVIL},{"role":"assistant","content":EVIL,"tool_calls":[{"id":"c","type":"function","function":{"name":EVIL,"arguments":ARGS}}]},` +
		`{"role":"tool","tool_call_id":"c","content":EVIL}]}`)
	h := hooks.On(hooks.AtPreToolUse, "h", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		return hooks.Because(c.Deny("because of "+hostile), hooks.Fact{Name: hostile, Value: hostile})
	}).From(&hooks.Origin{File: hostile, Line: 1})
	report, err := backtest.Run(t.Context(), recording(t, line), backtest.Options{Policies: []backtest.Policy{
		backtest.Always("p "+hostile, h), backtest.Always("q"),
	}})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	return report
}

func TestHostileTextIsInert(t *testing.T) {
	t.Parallel()
	report := hostileReport(t)
	diff, err := report.Diff()
	require.NoError(t, err)
	var page, text bytes.Buffer
	require.NoError(t, report.WriteHTML(&page))
	require.NoError(t, report.WriteText(&text, backtest.Look{Width: 100}))
	require.NoError(t, diff.WriteText(&text, backtest.Look{}))
	assert.Equal(t, 3, strings.Count(page.String(), "</script>"), "the data, a piece and the script: no more")
	assert.NotContains(t, page.String(), "<img")
	for _, out := range []string{page.String(), text.String()} {
		assert.NotContains(t, out, "\x1b")
		assert.NotContains(t, out, "\x07")
		assert.NotContains(t, out, "\u202e")
	}
}

// A real browser runs the page's own script and no other, and decompresses the transcripts.
func TestThePageInABrowser(t *testing.T) {
	t.Parallel()
	browser := parts.Command(t, "chromium", "apt-get install chromium")
	path := filepath.Join(t.TempDir(), "report.html")
	var page bytes.Buffer
	require.NoError(t, hostileReport(t).WriteHTML(&page))
	require.NoError(t, os.WriteFile(path, page.Bytes(), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=5000", "--dump-dom", "file://"+path).Output()
	require.NoError(t, err)
	dom := string(out)
	assert.Contains(t, dom, "<title>Backtest: p ")
	assert.Contains(t, dom, "counterfactual from here", "the transcript was unpacked")
	assert.Contains(t, dom, `class="call hit hit-denied"`)
	assert.NotContains(t, dom, "<img")
	assert.NotRegexp(t, `<title>HACKED`, dom)
}

func TestKeep(t *testing.T) {
	t.Parallel()
	found := recording(t, runOf("r", "", "a"), runOf("s", "", "a"))
	for keep, want := range map[int64]int{-1: 0, 0: 1, 1: 0} {
		report, err := backtest.Run(t.Context(), found, backtest.Options{Keep: keep, Policies: []backtest.Policy{backtest.Always("p", onTool("h", "a", deny))}})
		require.NoError(t, err)
		var page bytes.Buffer
		require.NoError(t, report.WriteHTML(&page))
		assert.Equal(t, want, strings.Count(page.String(), `id="piece`))
		assert.Equal(t, want == 0, strings.Contains(page.String(), "the others did not fit"))
	}
}

// The bar fits every terminal width, is drawn a few times a second, and leaves nothing behind.
func TestTheBarFits(t *testing.T) {
	t.Parallel()
	escape := regexp.MustCompile("\x1b\\[[0-9]*[mK]")
	for width := range 120 {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			b := &backtest.Bar{Out: &out, Columns: func() int { return width }, Colour: width%2 == 0}
			for n := range 100 {
				b.Show(backtest.Progress{Runs: n * 1234, Bytes: int64(n) * 20, Total: 1000})
				time.Sleep(10 * time.Millisecond)
			}
			b.End()
			if width == 0 {
				assert.Empty(t, out.String(), "what is no terminal gets no bar")
				return
			}
			frames := strings.Split(out.String(), "\r")[1:]
			assert.Len(t, frames, 10+1)
			for _, frame := range frames {
				assert.Less(t, len([]rune(escape.ReplaceAllString(frame, ""))), width, frame)
				assert.True(t, strings.HasSuffix(frame, "\x1b[K"), "%q", frame)
			}
			assert.Equal(t, "\x1b[K", frames[len(frames)-1])
			assert.NotContains(t, out.String(), "\n")
		})
	}
}

func TestProblemsAreSaidOnceAndNotForEver(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &backtest.Bar{Out: &out, Prefix: "x: "}
	for i := range 30 {
		b.Show(backtest.Progress{Wrong: fmt.Errorf("problem %d\x1b[2J", i/2*2)})
	}
	b.End()
	assert.Equal(t, 15, strings.Count(out.String(), "\n"))
	assert.True(t, strings.HasPrefix(out.String(), "x: problem 0␛[2J\n"), out.String())
}

// BenchmarkRun reads, replays and counts a run of three calls under a policy with one hook.
func BenchmarkRun(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.jsonl")
	lines := lo.Times(1000, func(i int) string { return runOf(fmt.Sprint("r", i), "", "a", "b", "c") })
	require.NoError(b, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	found, err := backtest.Find(path)
	require.NoError(b, err)
	o := backtest.Options{Keep: -1, Policies: []backtest.Policy{backtest.Always("p", onTool("h", "b", deny))}}
	for b.Loop() {
		report, err := backtest.Run(b.Context(), found, o)
		require.NoError(b, err)
		require.Equal(b, 1000, report.Runs)
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

func Example() {
	dir, err := os.MkdirTemp("", "backtest")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	session := `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"Tidy up."}}
{"type":"assistant","uuid":"2","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"rm -rf /"}}]}}`
	if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte(session), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	found, err := backtest.Find(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	noWipe := hooks.On(hooks.AtPreToolUse, "no-wipe", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if command, _ := c.Call().Text("command"); strings.HasPrefix(command, "rm ") {
			return c.Deny("nothing is deleted here")
		}
		return c.Allow()
	}, hooks.ToolNamed("Bash"))
	report, err := backtest.Run(context.Background(), found, backtest.Options{Policies: []backtest.Policy{backtest.Always("careful", noWipe)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, run := range report.Cases {
		for _, d := range run.Verdicts[0].Decisions {
			fmt.Println(d.Tool, d.Arguments, d.Effect, d.Rule, d.Reason)
		}
	}
	// Output: Bash {"command":"rm -rf /"} denied no-wipe nothing is deleted here
}
