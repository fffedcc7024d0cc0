package toolexec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// brokenError is an error that cannot even be read when it is nil.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// troubled returns a tool in every kind of trouble.
func troubled() []toolexec.Tool {
	trouble := func(name string, f func() (toolexec.Output, error)) toolexec.Tool {
		return toolexec.Func(name, "", func(context.Context, nothing) (toolexec.Output, error) { return f() })
	}
	return []toolexec.Tool{
		trouble("fine", func() (toolexec.Output, error) { return toolexec.TextOutput("all well"), nil }),
		trouble("failing", func() (toolexec.Output, error) { return toolexec.Output{}, fs.ErrNotExist }),
		trouble("sorry", func() (toolexec.Output, error) {
			return toolexec.Output{Content: agent.TextContent("exit status 1"), Failed: true}, nil
		}),
		trouble("panicking", func() (toolexec.Output, error) { panic("the secret is 42") }),
		trouble("panicking_error", func() (toolexec.Output, error) { panic(fs.ErrClosed) }),
		trouble("typed_nil", func() (toolexec.Output, error) { return toolexec.Output{}, (*brokenError)(nil) }),
	}
}

// LH-61, X-13
func TestWhatBecomesOfACall(t *testing.T) {
	for name, want := range map[string]struct {
		status agent.ToolStatus
		reason agent.ReasonCode
		text   string
		err    error
	}{
		"fine":            {agent.ToolExecuted, "", "all well", nil},
		"sorry":           {agent.ToolExecuted, agent.ReasonError, "exit status 1", nil}, // an answer, no failure
		"failing":         {agent.ToolFailed, agent.ReasonError, `tool "failing": failed: file does not exist`, fs.ErrNotExist},
		"panicking":       {agent.ToolFailed, agent.ReasonPanic, `tool "panicking": failed: it panicked`, nil},
		"panicking_error": {agent.ToolFailed, agent.ReasonPanic, `tool "panicking_error": failed: it panicked`, fs.ErrClosed},
		"typed_nil":       {agent.ToolFailed, agent.ReasonError, `tool "typed_nil": failed: an error that is a nil *toolexec_test.brokenError`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []toolexec.Policy{{}, {Timeout: time.Hour}} { // on the caller's goroutine and on another
				before := time.Now()
				r := answer(t, t.Context(), executor(t, toolexec.Options{Policy: policy}, troubled()...), call(name, `{}`))
				assert.Equal(t, want.status, r.Status)
				assert.Equal(t, want.reason, r.Reason)
				assert.Equal(t, want.text, r.Text())
				assert.Equal(t, want.reason != "", r.IsError())
				assert.Equal(t, 1, r.Attempts)
				assert.WithinRange(t, r.Started, before, time.Now())
				assert.GreaterOrEqual(t, r.Duration, time.Duration(0))
				assert.Equal(t, call(name, `{}`), r.Call())
				assert.Equal(t, call(name, `{}`), r.Original())
				assert.Equal(t, "c1", r.CallID())
				assert.Equal(t, name, r.Tool())
				assert.Equal(t, want.status == agent.ToolFailed, r.Err != nil)
				if want.err != nil {
					assert.ErrorIs(t, r.Err, want.err)
				}
			}
		})
	}
}

// IP-46
func TestPanicKeepsItsStack(t *testing.T) {
	r := answer(t, t.Context(), executor(t, toolexec.Options{}, troubled()...), call("panicking", `{}`))
	var panicked *toolexec.PanicError
	require.ErrorAs(t, r.Err, &panicked)
	assert.Equal(t, "the secret is 42", panicked.Value)
	assert.Contains(t, panicked.Stack, "execute_test.go")
	assert.EqualError(t, panicked, "panicked: the secret is 42")
	assert.Equal(t, agent.KindTool, agent.KindOf(r.Err))
	assert.NotContains(t, r.Text(), "secret", "a panic's text is not for the model")
}

// A developer finds the stack of a panic in the log; texts that no hook has reviewed are not in it.
func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(before)
	index := toolexec.Func("index", "", func(_ context.Context, in struct{ N int }) (string, error) { return []string{"a"}[in.N], nil })
	for name, want := range map[string]string{"panicking": "a value of type string", "panicking_error": "a value of type *errors.errorString", "index": "runtime error: index out of range [7] with length 1"} {
		for _, policy := range []toolexec.Policy{{}, {Timeout: time.Hour}} {
			log.Reset()
			arguments := lo.Ternary(name == "index", `{"N":7}`, `{}`)
			r := answer(t, t.Context(), executor(t, toolexec.Options{Policy: policy}, append(troubled(), index)...), call(name, arguments))
			assert.Equal(t, agent.ReasonPanic, r.Reason)
			var record struct{ Level, Msg, Tool, Panic, Stack string }
			require.NoError(t, json.Unmarshal(log.Bytes(), &record), log.String())
			assert.Equal(t, []string{"ERROR", "tool panicked", name, want}, []string{record.Level, record.Msg, record.Tool, record.Panic})
			assert.Contains(t, record.Stack, "execute_test.go")
			assert.NotContains(t, log.String(), "secret")
			assert.NotContains(t, r.Text(), "goroutine")
		}
	}
}

// IP-46
func TestFailureLeavesTheBatchAlone(t *testing.T) {
	var calls []agent.ToolCall
	for _, name := range []string{"panicking", "fine", "failing", "gone", "sorry", "fine"} {
		calls = append(calls, agent.ToolCall{Name: name})
	}
	for _, parallel := range []int{1, 4} {
		a, err := agent.New(agent.Config{
			Driver: scripted(agent.Assistant("", calls...), agent.Assistant("bye")), Parallel: parallel,
			Executor: executor(t, toolexec.Options{}, troubled()...),
		}).Get()
		require.NoError(t, err)
		final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
		require.NoError(t, err)
		assert.Equal(t, agent.StatusDone, final.Status())
		assert.Equal(t, 1, final.RunFailures())
		var statuses []agent.ToolStatus
		for _, record := range final.RunSteps() {
			for _, r := range record.Results() {
				statuses = append(statuses, r.Status)
			}
		}
		assert.Equal(t, []agent.ToolStatus{
			agent.ToolFailed, agent.ToolExecuted, agent.ToolFailed, agent.ToolNotExecuted, agent.ToolExecuted, agent.ToolExecuted,
		}, statuses)
	}
}

// IP-46
func TestFailRunMakesFailuresErrors(t *testing.T) {
	e := executor(t, toolexec.Options{FailRun: true}, troubled()...)
	for name, want := range map[string]string{
		"failing": "failed: file does not exist", "panicking": "failed: panicked: the secret is 42",
		"fine": "", "sorry": "", "gone": "", // answers, whatever they say
	} {
		_, err := e.Execute(t.Context(), agent.State{}, prepare(t, e, call(name, `{}`))).Get()
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, want)
		}
	}
	a, err := agent.New(agent.Config{Driver: scripted(agent.Assistant("", call("failing", ``))), Executor: e}).Get()
	require.NoError(t, err)
	_, err = a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, `tool "failing": call c1: failed: file does not exist`)
}

// IP-40
func TestAnsweredCallsPassThrough(t *testing.T) {
	e := executor(t, toolexec.Options{FailRun: true}, toolexec.Func("add", "", func(context.Context, pair) (string, error) {
		t.Error("the tool ran")
		return "", nil
	}))
	c := call("add", `{"a":1,"b":2}`)
	denied := agent.NotExecuted(&c, agent.ReasonDenied, "guard", "not today")
	p := *prepare(t, e, c)
	p.Disposition, p.Answer = agent.DisposeAnswer, denied
	r, err := e.Execute(t.Context(), agent.State{}, &p).Get()
	require.NoError(t, err)
	assert.Same(t, denied, r)
}

// IP-40
func TestUndecidedCallsAreErrors(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "", func(context.Context, pair) (string, error) {
		t.Error("the tool ran")
		return "", nil
	}))
	for _, disposition := range []agent.Disposition{agent.DisposeAsk, agent.DisposeStop, agent.DisposeAnswer} {
		p := *prepare(t, e, call("add", `{"a":1,"b":2}`))
		p.Disposition = disposition
		_, err := e.Execute(t.Context(), agent.State{}, &p).Get()
		assert.EqualError(t, err, "executing: the call was neither allowed nor answered")
	}
}

func TestCancelledRunStartsNothing(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.Func("add", "", func(context.Context, pair) (string, error) {
		t.Error("the tool ran")
		return "", nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := answer(t, ctx, e, call("add", `{"a":1,"b":2}`))
	assert.Equal(t, agent.ToolNotExecuted, r.Status)
	assert.Equal(t, agent.ReasonCancelled, r.Reason)
	assert.Zero(t, r.Attempts)
}

func TestToolThatEndsItsGoroutineHasFailed(t *testing.T) {
	e := executor(t, toolexec.Options{}, toolexec.WithPolicy(
		toolexec.Func("quit", "", func(context.Context, nothing) (string, error) { runtime.Goexit(); return "", nil }),
		toolexec.Policy{Timeout: time.Hour}))
	r := answer(t, t.Context(), e, call("quit", ``))
	assert.Equal(t, agent.ToolFailed, r.Status)
	assert.Equal(t, `tool "quit": failed: the tool ended its goroutine without an answer`, r.Text())
}

func TestCancelWhileTheToolRuns(t *testing.T) {
	limit := &agent.SignalError{Signal: agent.Signal{Reason: "time_limit", Message: "an hour has passed", Source: "clock"}}
	halves := errors.New("only half of it was written")
	cancelled := func(out string, err error) *agent.ToolResult {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		e := executor(t, toolexec.Options{}, toolexec.Func("wait", "", func(ctx context.Context, _ nothing) (string, error) {
			cancel(limit)
			<-ctx.Done()
			return out, err
		}))
		return answer(t, ctx, e, call("wait", ``))
	}

	r := cancelled("", halves)
	assert.Equal(t, agent.ToolFailed, r.Status, "its body was started")
	assert.Equal(t, agent.ReasonCancelled, r.Reason)
	assert.Equal(t, 1, r.Attempts)
	assert.Equal(t, `tool "wait": failed: the run was cancelled (time_limit: an hour has passed (by clock)); it said: only half of it was written`, r.Text())
	assert.ErrorIs(t, r.Err, limit)
	assert.ErrorIs(t, r.Err, halves)

	r = cancelled("done all the same", nil)
	assert.Equal(t, agent.ToolExecuted, r.Status, "what was done was done")
	assert.Equal(t, "done all the same", r.Text())
}

// IP-76
func TestToolMayStopTheRun(t *testing.T) {
	signal := agent.Signal{Reason: agent.StopRequested, Message: "the house is on fire", Source: "smoke detector"}
	err := fmt.Errorf("sniffing: %w", &agent.SignalError{Signal: signal})
	for name, f := range map[string]func(ctx context.Context) error{
		"at once":             func(context.Context) error { return err },
		"when its time is up": func(ctx context.Context) error { <-ctx.Done(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := toolexec.Func("sniff", "", func(ctx context.Context, _ nothing) (string, error) { return "", f(ctx) })
				policy := toolexec.Policy{Timeout: time.Second, Retry: toolexec.Retry{Attempts: 3}}
				e := executor(t, toolexec.Options{Policy: policy, FailRun: true}, tool)
				r := answer(t, t.Context(), e, call("sniff", ``))
				assert.Equal(t, agent.ToolExecuted, r.Status, "a decision is no failure")
				assert.Equal(t, agent.ReasonRunStopped, r.Reason)
				assert.Equal(t, `tool "sniff": stopped the run: the house is on fire`, r.Text())
				assert.Equal(t, 1, r.Attempts)

				a := agent.New(agent.Config{Driver: scripted(agent.Assistant("", call("sniff", ``))), Executor: e}).MustGet()
				final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(t, err)
				assert.Equal(t, agent.StatusStopped, final.Status())
				assert.Equal(t, signal, final.StopSignal())
				assert.Zero(t, final.RunFailures())
			})
		})
	}
}
