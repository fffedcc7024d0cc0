package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/toolexec"
)

// auditedText is how many bytes of a text the log keeps.
const auditedText = 16 << 10

type said struct {
	Text string `json:"text"`
}

// agentOf plays a script with two tools: echo, and burn, which fails.
func agentOf(t testing.TB, list []hooks.Hook, turns ...agenttest.Turn) *agent.Agent {
	t.Helper()
	echo := toolexec.Func("echo", "Echoes.", func(_ context.Context, in said) (string, error) { return in.Text, nil })
	burn := toolexec.Func("burn", "Burns.", func(context.Context, struct{}) (string, error) { return "", errors.New("burnt") })
	a, err := builder.New().WithName("tester").WithDriver(agenttest.Script(turns...)).
		With(capability.UseTools(echo, burn), capability.UseHooks(list...)).Build().Get()
	require.NoError(t, err)
	return a
}

func run(a *agent.Agent) agent.State {
	result := a.Run(context.Background(), agent.NewState(), agent.UserText("go"))
	if failed, ok := errors.AsType[*agent.RunError](result.Error()); ok {
		return failed.State
	}
	return result.OrEmpty()
}

// entries returns the lines of a log, each a whole JSON object with members that an Entry has.
func entries(t testing.TB, lines []byte) []audit.Entry {
	t.Helper()
	var all []audit.Entry
	for scanner := bufio.NewScanner(bytes.NewReader(lines)); scanner.Scan(); {
		if scanner.Text() == "" { // the log was opened while another process wrote a line
			continue
		}
		var e audit.Entry
		dec := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&e), scanner.Text())
		all = append(all, e)
	}
	return all
}

// short returns what tests look at in a line.
func short(e audit.Entry) string {
	words := []string{string(e.Event), e.Tool, string(e.Decision), string(e.Point), e.By, e.Status, e.Reason}
	return strings.Join(lo.Compact(words), " ")
}

func shorts(list []audit.Entry) []string {
	return lo.Map(list, func(e audit.Entry, _ int) string { return short(e) })
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

var (
	denySecret = hooks.On(hooks.AtPreToolUse, "no-secrets", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if text, _ := c.Call().Text("text"); text == "secret" {
			return c.Deny("that is a secret")
		}
		return c.Allow()
	}).WithPriority(hooks.PriorityGuard)
	politely = hooks.On(hooks.AtPreToolUse, "politely", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		if text, _ := c.Call().Text("text"); text == "hey" {
			return c.Rewrite(said{"hello"})
		}
		return c.Pass()
	})
	redact = hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
		if clean := strings.ReplaceAll(c.Text(), "sk-12345", "[key]"); clean != c.Text() {
			return c.Replace(clean)
		}
		return c.Allow()
	}).WithPriority(hooks.PriorityGuard)
)

func TestWhatIsWritten(t *testing.T) {
	var out bytes.Buffer
	log := audit.New(&out, audit.Options{})
	list := append(log.Hooks(), denySecret, politely, redact)
	final := run(agentOf(t, list,
		agenttest.Call("echo", `{"text":"hey"}`).Call("echo", `{"text":"secret"}`).Call("echo", `{"text":"sk-12345"}`).WithCost(0.25).WithTokens(10, 5),
		agenttest.Call("burn", `{}`).Call("echo", `{"txt":1}`).Call("nothing", `{}`).Call("echo", `{`).WithCost(0.25),
		agenttest.Say("done").WithCost(0),
	))
	require.Equal(t, agent.StatusDone, final.Status())
	got := entries(t, out.Bytes())
	assert.Equal(t, []string{
		"run_started",
		"tool_call echo",
		"decision echo rewrite PreToolUse politely",
		"decision echo deny PreToolUse no-secrets",
		"tool_call echo",
		"tool_result echo executed",
		"tool_result echo no-secrets not_executed denied",
		"tool_result echo redact executed",
		"decision echo replace PostToolUse redact",
		"tool_call burn",
		"tool_result burn failed error",
		"tool_result echo not_executed invalid_arguments",
		"tool_result nothing not_executed unknown_tool",
		"tool_result echo not_executed malformed_arguments",
		"run_ended done completed",
	}, lo.Map(got, func(e audit.Entry, _ int) string {
		if e.Event == audit.RunEnded {
			e.By = ""
		}
		return short(e)
	}))
	for i, e := range got {
		assert.Equal(t, audit.Version, e.Version)
		assert.Equal(t, uint64(i+1), e.Number)
		assert.Equal(t, got[0].Log, e.Log)
		assert.Equal(t, final.Run().ID, e.Run)
		assert.Equal(t, final.Session(), e.Session)
		assert.Equal(t, "tester", e.Agent)
		assert.Nil(t, e.Texts)
	}
	rewritten, result := got[1], got[7]
	assert.Equal(t, sha(`{"text":"hello"}`), rewritten.Arguments)
	assert.Equal(t, sha(`{"text":"hey"}`), rewritten.Asked)
	assert.Equal(t, sha("[key]"), result.Result)
	assert.Equal(t, 5, result.ResultBytes)
	assert.Equal(t, 1, result.Attempts)
	assert.Equal(t, &audit.Totals{Steps: 3, InputTokens: 10, OutputTokens: 5, Cost: new(0.5)}, got[14].Totals)
	assert.NoError(t, log.Err())
	assert.NotContains(t, out.String(), "sk-12345")
	assert.NotContains(t, out.String(), "secret\"")
}

func TestContentIsWrittenWhenAskedFor(t *testing.T) {
	var out bytes.Buffer
	log := audit.New(&out, audit.Options{
		Content: true, Key: []byte("k"),
		Clean: func(text string) string { return strings.ReplaceAll(text, "sk-12345", "…") },
	})
	run(agentOf(t, append(log.Hooks(), denySecret, politely, redact),
		agenttest.Call("echo", `{"text":"hey"}`).Call("echo", `{"text":"secret"}`).Call("echo", `{"text":"sk-12345"}`),
		agenttest.Call("echo", `{"text":"`+strings.Repeat("x", 2*auditedText)+`"}`),
		agenttest.Say("done"),
	))
	assert.NotContains(t, out.String(), "sk-12345")
	texts := map[string]audit.Texts{}
	for _, e := range entries(t, out.Bytes()) {
		texts[fmt.Sprint(e.Number, " ", short(e))] = lo.FromPtr(e.Texts)
	}
	assert.Equal(t, audit.Texts{Arguments: `{"text":"hello"}`, Asked: `{"text":"hey"}`}, texts["2 tool_call echo"])
	assert.Equal(t, audit.Texts{Arguments: `{"text":"secret"}`, Reason: "that is a secret"}, texts["4 decision echo deny PreToolUse no-secrets"])
	assert.Equal(t, audit.Texts{Arguments: `{"text":"…"}`, Result: "[key]"}, texts["8 tool_result echo redact executed"])
	assert.Len(t, texts["11 tool_result echo executed"].Result, auditedText+len("…"))

	mac := hmac.New(sha256.New, []byte("k"))
	mac.Write([]byte("hello"))
	result, _ := lo.Find(entries(t, out.Bytes()), func(e audit.Entry) bool { return e.Event == audit.ToolResult })
	assert.Equal(t, "hmac-sha256:"+hex.EncodeToString(mac.Sum(nil)), result.Result)
}

// A model that calls what is no tool does not fill the log with it.
func TestLongNamesAreCut(t *testing.T) {
	var out bytes.Buffer
	run(agentOf(t, audit.New(&out, audit.Options{}).Hooks(), agenttest.Call(strings.Repeat("ä", 1<<16), `{}`), agenttest.Say("done")))
	results := lo.Filter(entries(t, out.Bytes()), func(e audit.Entry, _ int) bool { return e.Event == audit.ToolResult })
	require.Len(t, results, 1)
	assert.Equal(t, strings.Repeat("ä", 64)+"…", results[0].Tool)
	assert.Equal(t, string(agent.ToolNotExecuted), results[0].Status)
}

func TestDecisionsAwayFromTools(t *testing.T) {
	for name, tc := range map[string]struct {
		hook hooks.Hook
		want []string
	}{
		"input": {
			hooks.On(hooks.AtInputSubmitted, "input", func(_ context.Context, c hooks.InputContext) hooks.Result { return c.Deny("no") }),
			[]string{"decision deny InputSubmitted input", "run_ended input denied denied"},
		},
		"step": {
			hooks.On(hooks.AtStepStart, "step", func(_ context.Context, c hooks.StepContext) hooks.Result { return c.Stop("no") }),
			[]string{"run_started", "decision stop StepStart step", "run_ended step stopped hook"},
		},
		"reply": {
			hooks.On(hooks.AtPostInference, "reply", func(_ context.Context, c hooks.ReplyContext) hooks.Result { return c.ReplaceText("other") }),
			[]string{"run_started", "decision replace PostInference reply", "run_ended agent done completed"},
		},
		"a hook that cannot decide": {
			hooks.On(hooks.AtStop, "broken", func(_ context.Context, c hooks.StopContext) hooks.Result { return c.Fail(errors.New("broken")) }),
			[]string{"run_started", "decision stop Stop broken", "run_ended broken stopped hook"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := audit.New(&out, audit.Options{})
			run(agentOf(t, append(log.Hooks(), tc.hook), agenttest.Say("done")))
			got := entries(t, out.Bytes())
			assert.Equal(t, tc.want, shorts(got))
			for _, e := range got {
				assert.Equal(t, e.Event == audit.Decision && name == "a hook that cannot decide", e.HookFailed)
			}
		})
	}
}

// full is a disk with room for this many lines and the beginning of one more.
type full struct {
	bytes.Buffer

	lines int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if f.lines--; f.lines >= 0 {
		return f.Buffer.Write(p)
	}
	n, _ := f.Buffer.Write(p[:10])
	return n, errFull
}

// What cannot be written down does not happen.
func TestFullDisk(t *testing.T) {
	turns := []agenttest.Turn{agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done")}
	for name, tc := range map[string]struct {
		lines   int
		failure hooks.FailurePolicy
		status  agent.Status
		text    string // of the tool's answer
	}{
		"at the start":           {0, hooks.FailurePolicy{}, agent.StatusDenied, ""},
		"before the call":        {1, hooks.FailurePolicy{}, agent.StatusDone, "withheld"},
		"after the call":         {2, hooks.FailurePolicy{}, agent.StatusDone, "withheld"},
		"at the end":             {3, hooks.FailurePolicy{}, agent.StatusDone, "x"},
		"at the start, abort":    {0, hooks.Abort, agent.StatusFailed, ""},
		"before the call, abort": {1, hooks.Abort, agent.StatusFailed, ""},
		"after the call, abort":  {2, hooks.Abort, agent.StatusFailed, ""},
		"at the start, open":     {0, hooks.Open, agent.StatusDone, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &full{lines: tc.lines}
			log := audit.New(disk, audit.Options{Failure: tc.failure})
			ran := 0
			count := hooks.Observe(hooks.AtPostToolUse, "count", func(_ context.Context, c hooks.ToolResultContext) error {
				ran += c.Result().Attempts
				return nil
			})
			final := run(agentOf(t, append(log.Hooks(), count), turns...))
			assert.Equal(t, tc.status, final.Status())
			require.ErrorIs(t, log.Err(), errFull)
			assert.Equal(t, tc.lines >= 2 && tc.failure != hooks.Abort || tc.failure == hooks.Open, ran == 1)
			if tc.text != "" {
				assert.Contains(t, final.Message(2).Text(), tc.text)
			}
		})
	}
}

// A line that was torn by a full disk does not spoil the next one.
func TestTornLine(t *testing.T) {
	disk := &full{lines: 1}
	log := audit.New(disk, audit.Options{})
	a := agentOf(t, log.Hooks(), agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done"))
	run(a)
	disk.lines = 100
	before := disk.Len()
	run(a)
	assert.Equal(t, byte('\n'), disk.Bytes()[before])
	got := entries(t, disk.Bytes()[before+1:])
	assert.Equal(t, "run_started", short(got[0]))
	assert.Greater(t, got[0].Number, uint64(3), "the gap shows")
}

// The half of a line that a process left when it died costs the next one no line.
func TestTornFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	half := `{"v":1,"time":"2026-01-`
	require.NoError(t, os.WriteFile(path, []byte(half), 0o600))
	log, err := audit.Open(path, audit.Options{})
	require.NoError(t, err)
	run(agentOf(t, log.Hooks(), agenttest.Say("done")))
	require.NoError(t, log.Close())
	lines, err := os.ReadFile(path)
	require.NoError(t, err)
	rest, ok := bytes.CutPrefix(lines, []byte(half+"\n"))
	require.True(t, ok, "%s", lines)
	assert.Equal(t, "run_started", short(entries(t, rest)[0]))
}

// What is no number is not known, and no reason to lose the line.
func TestCostThatIsNoNumber(t *testing.T) {
	var out bytes.Buffer
	log := audit.New(&out, audit.Options{})
	run(agentOf(t, log.Hooks(), agenttest.Say("done").WithCost(math.NaN())))
	require.NoError(t, log.Err())
	last, _ := lo.Last(entries(t, out.Bytes()))
	assert.Equal(t, audit.RunEnded, last.Event)
	assert.Nil(t, last.Totals.Cost)
}

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestShortWriteIsAFailure(t *testing.T) {
	log := audit.New(shortWriter{}, audit.Options{})
	assert.Equal(t, agent.StatusDenied, run(agentOf(t, log.Hooks(), agenttest.Say("done"))).Status())
	assert.ErrorIs(t, log.Err(), io.ErrShortWrite)
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 {
		log, err := audit.Open(path, audit.Options{Sync: true})
		require.NoError(t, err)
		run(agentOf(t, log.Hooks(), agenttest.Say("done")))
		require.NoError(t, log.Close())
		assert.Equal(t, agent.StatusDenied, run(agentOf(t, log.Hooks(), agenttest.Say("done"))).Status(), "it is closed")
		assert.ErrorIs(t, log.Err(), os.ErrClosed)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	lines, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, entries(t, lines), 4)

	require.NoError(t, os.Chmod(path, 0o644))
	_, err = audit.Open(path, audit.Options{})
	require.EqualError(t, err, "audit: "+path+" can be accessed by other users (-rw-r--r--): run chmod 600 on it")
	_, err = audit.Open(filepath.Join(path, "x"), audit.Options{})
	require.ErrorContains(t, err, "audit: open ")
}

// Many runs of several logs append to one file, a whole line at a time.
func TestRunsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all sync.WaitGroup
	for range 3 {
		log, err := audit.Open(path, audit.Options{Content: true})
		require.NoError(t, err)
		defer log.Close()
		a := agentOf(t, log.Hooks(), agenttest.Call("echo", `{"text":"`+strings.Repeat("long ", 2000)+`"}`), agenttest.Say("done"))
		for range 10 {
			all.Go(func() { run(a) })
		}
	}
	all.Wait()
	lines, err := os.ReadFile(path)
	require.NoError(t, err)
	got := entries(t, lines)
	assert.Len(t, got, 3*10*4)
	for _, of := range lo.GroupBy(got, func(e audit.Entry) string { return e.Log }) {
		for i, e := range of {
			require.Equal(t, uint64(i+1), e.Number)
		}
	}
	for _, of := range lo.GroupBy(got, func(e audit.Entry) agent.RunID { return e.Run }) {
		assert.Equal(t, []string{"run_started", "tool_call echo", "tool_result echo executed"}, shorts(of)[:3])
	}
}

func Example() {
	var out bytes.Buffer
	log := audit.New(&out, audit.Options{})
	echo := toolexec.Func("echo", "Echoes.", func(_ context.Context, in said) (string, error) { return in.Text, nil })
	a := builder.New().
		WithDriver(agenttest.Script(agenttest.Call("echo", `{"text":"secret"}`).Call("echo", `{"text":"hi"}`), agenttest.Say("done"))).
		With(capability.UseTools(echo), capability.UseHooks(log.Hooks()...), capability.UseHooks(denySecret)).
		Build().MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("Echo.")).MustGet()

	for dec := json.NewDecoder(&out); dec.More(); {
		var e audit.Entry
		if err := dec.Decode(&e); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Number, short(e))
	}
	// Output:
	// 1 run_started
	// 2 decision echo deny PreToolUse no-secrets
	// 3 tool_call echo
	// 4 tool_result echo no-secrets not_executed denied
	// 5 tool_result echo executed
	// 6 run_ended agent done completed
}
