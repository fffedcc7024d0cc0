package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
)

// kinded is an error that says its kind.
type kinded agent.ErrorKind

func (k kinded) Error() string              { return string(k) + " trouble" }
func (k kinded) ErrorKind() agent.ErrorKind { return agent.ErrorKind(k) }

var kinds = []agent.ErrorKind{
	agent.KindTool, agent.KindModel, agent.KindRateLimit, agent.KindTimeout, agent.KindInvalid, agent.KindUnknown,
}

// onlyFor returns the policy that does h about one kind and stops on the others.
func onlyFor(kind agent.ErrorKind, h continuation.Handling, retries int) continuation.ErrorPolicy {
	p := continuation.ErrorPolicy{MaxRetries: retries}
	*map[agent.ErrorKind]*continuation.Handling{
		agent.KindTool: &p.Tool, agent.KindModel: &p.Model, agent.KindRateLimit: &p.RateLimit,
		agent.KindTimeout: &p.Timeout, agent.KindInvalid: &p.Invalid, agent.KindUnknown: &p.Unknown,
	}[kind] = h
	return p
}

// failing returns an agent whose first steps fail in a way that counts as kind, and
// which then answers. Errors of unknown kind come from the executor, the rest from
// the model or, for tools, from a tool.
func failing(kind agent.ErrorKind, steps int, criterion agent.Criterion) agent.Config {
	broken := fail(kinded(kind))
	config := agent.Config{Executor: tools{"t": errors.New("exit 1")}, Criterion: criterion}
	switch kind {
	case agent.KindTool:
		broken = call("t")
	case agent.KindUnknown:
		broken = call("t")
		config.Executor = noExecutor{}
	}
	config.Driver = turns(append(slices.Repeat([]turn{broken}, steps), answer("recovered"))...)
	return config
}

// noExecutor cannot even prepare a call.
type noExecutor struct{ agent.Executor }

func (noExecutor) Prepare(context.Context, agent.State, *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Err[*agent.Prepared](errors.New("out of order"))
}

func (noExecutor) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(p.Answer)
}

// IP-92
func TestZeroPolicyStopsOnEveryKind(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			final, err := run(t, failing(kind, 1, continuation.All(agent.Base, continuation.ErrorPolicy{})))
			require.Error(t, err)
			assert.Equal(t, agent.StatusFailed, final.Status())
			assert.Equal(t, 1, final.RunStepCount())
			got := signal(t, final)
			assert.Equal(t, agent.StopError, got.Reason)
			assert.Equal(t, "continuation.ErrorPolicy", got.Source)
			assert.Equal(t, string(kind), got.Details["errorType"])
			assert.Equal(t, "stop", got.Details["handling"])
		})
	}
}

// IP-92: also without Base, which would have stopped on most of them itself.
func TestPolicyStopsWithoutBase(t *testing.T) {
	for _, kind := range kinds {
		final, err := run(t, failing(kind, 1, continuation.All(continuation.ToolCallPresence(), continuation.ErrorPolicy{})))
		require.Error(t, err, kind)
		assert.Equal(t, agent.StatusFailed, final.Status(), kind)
	}
}

// Without a policy a failed tool is news for the model.
func TestWithoutPolicyToolErrorsAreNews(t *testing.T) {
	final, err := run(t, failing(agent.KindTool, 3, nil))
	require.NoError(t, err)
	assert.Equal(t, "recovered", final.Answer())
}

// IP-93
func TestRetryToolErrors(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			final, err := run(t, failing(kind, 2, continuation.All(continuation.RetryToolErrors(2), agent.Base)))
			if kind == agent.KindTool {
				require.NoError(t, err)
				assert.Equal(t, agent.StatusDone, final.Status())
				assert.Equal(t, 3, final.RunStepCount())
				return
			}
			require.Error(t, err)
			assert.Equal(t, 1, final.RunStepCount())
		})
	}
}

// IP-94: exactly MaxRetries retries, for each kind.
func TestRetriesAreLimited(t *testing.T) {
	const retries = 2
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			criterion := continuation.All(agent.Base, onlyFor(kind, continuation.Retry, retries))
			final, err := run(t, failing(kind, retries, criterion))
			require.NoError(t, err)
			assert.Equal(t, "recovered", final.Answer())
			assert.Equal(t, retries, final.RunFailures())

			final, err = run(t, failing(kind, retries+1, criterion))
			require.Error(t, err)
			assert.Equal(t, agent.StatusFailed, final.Status())
			assert.Equal(t, retries+1, final.RunStepCount())
			assert.Equal(t, retries+1, signal(t, final).Details["consecutiveFailures"])
			assert.Equal(t, "retry", signal(t, final).Details["handling"])
		})
	}
}

// IP-94: no retries are none.
func TestRetryWithoutRetriesStops(t *testing.T) {
	final, err := run(t, failing(agent.KindModel, 1,
		continuation.All(agent.Base, continuation.ErrorPolicy{Model: continuation.Retry})))
	require.ErrorIs(t, err, kinded(agent.KindModel), "the error itself comes back")
	assert.Equal(t, 1, final.RunStepCount())
}

// IP-95
func TestPolicyHasNoOpinionOnSuccess(t *testing.T) {
	policy := continuation.RetryToolErrors(1)
	assert.Equal(t, agent.Evaluation{}, policy.Evaluate(t.Context(), agent.State{}).MustGet())
	final, err := run(t, agent.Config{Driver: turns(call("t"), answer("a")), Executor: works})
	require.NoError(t, err)
	assert.Equal(t, agent.Evaluation{}, policy.Evaluate(t.Context(), final).MustGet())
}

// IP-96
func TestStopSignalHasTheFigures(t *testing.T) {
	boom := errors.New("exit 1")
	final, err := run(t, agent.Config{
		Driver:    turns(call("bad"), call("good"), call("bad"), call("bad"), call("good", "bad")),
		Executor:  tools{"bad": boom},
		Criterion: continuation.All(agent.Base, continuation.RetryToolErrors(2)),
	})
	require.EqualError(t, errors.Unwrap(err), `3 steps in a row failed, at last tool "bad" failed: it did not work: exit 1`)
	assert.Equal(t, map[string]any{
		"errorType": "tool", "consecutiveFailures": 3, "totalFailures": 4, "maxRetries": 2, "handling": "retry", "toolName": "bad",
	}, signal(t, final).Details)

	final, err = run(t, agent.Config{
		Driver:    turns(call("bad"), fail(kinded(agent.KindRateLimit))),
		Executor:  tools{"bad": boom},
		Criterion: continuation.All(agent.Base, continuation.RetryToolErrors(2)),
	})
	require.Error(t, err)
	assert.Equal(t, map[string]any{
		"errorType": "rate_limit", "consecutiveFailures": 2, "totalFailures": 2, "maxRetries": 2, "handling": "stop", "toolName": "",
	}, signal(t, final).Details)
}

// IP-97
func TestVerdictsOfThePolicy(t *testing.T) {
	final, err := run(t, failing(agent.KindModel, 1, nil))
	require.Error(t, err)
	for handling, want := range map[continuation.Handling]agent.Evaluation{
		continuation.Retry:  {Verdict: agent.RequestContinuation, Handled: true},
		continuation.Ignore: {Handled: true},
	} {
		got := onlyFor(agent.KindModel, handling, 1).Evaluate(t.Context(), final).MustGet()
		assert.Equal(t, want, got, handling)
	}
}

// IP-97: an ignored failure neither stops the run nor makes it continue.
func TestIgnoredErrors(t *testing.T) {
	for _, kind := range kinds {
		final, err := run(t, failing(kind, 5, continuation.All(agent.Base, onlyFor(kind, continuation.Ignore, 0))))
		require.NoError(t, err, kind)
		assert.Equal(t, "recovered", final.Answer())
		assert.Equal(t, 5, final.RunFailures())
	}
	final, err := run(t, failing(agent.KindTool, 5, continuation.All(
		agent.Base, onlyFor(agent.KindTool, continuation.Ignore, 0), continuation.FinishReason(agent.FinishToolCalls))))
	require.NoError(t, err)
	assert.Equal(t, 1, final.RunStepCount())
}

// IP-78: a retry does not get past a limit.
func TestLimitsStopRetries(t *testing.T) {
	final, err := run(t, failing(agent.KindModel, 9, continuation.All(
		agent.Base, onlyFor(agent.KindModel, continuation.Retry, 9), continuation.Steps(3))))
	require.NoError(t, err)
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Equal(t, agent.StopStepsLimit, signal(t, final).Reason)
	assert.Equal(t, 3, final.RunStepCount())
}

// An ignored failure does not use up the retries of another kind.
func TestIgnoredStepsBeginANewRow(t *testing.T) {
	policy := continuation.ErrorPolicy{Tool: continuation.Ignore, Model: continuation.Retry, MaxRetries: 1}
	down := fail(kinded(agent.KindModel))
	final, err := run(t, agent.Config{
		Driver:   turns(call("bad"), call("bad"), down, call("bad"), down, answer("a")),
		Executor: tools{"bad": errors.New("exit 1")}, Criterion: continuation.All(agent.Base, policy),
	})
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, 5, final.RunFailures())
}

// The failures of an earlier run of the session do not count.
func TestRowsEndWithTheRun(t *testing.T) {
	a := agent.New(failing(agent.KindTool, 1, continuation.All(agent.Base, continuation.RetryToolErrors(1)))).MustGet()
	session := a.Session(agent.NewState())
	for range 3 {
		final, err := session.Run(t.Context()).Get()
		require.NoError(t, err)
		assert.Equal(t, 1, final.RunFailures())
	}
}

// Of several failed tools the one that is handled hardest decides.
func TestHardestHandlingDecides(t *testing.T) {
	policy := continuation.ErrorPolicy{Tool: continuation.Ignore, Timeout: continuation.Retry, MaxRetries: 9}
	failed := tools{
		"ignored": errors.New("exit 1"),
		"retried": fmt.Errorf("waiting: %w", context.DeadlineExceeded),
		"stops":   kinded(agent.KindInvalid),
	}
	for want, calls := range map[string][]string{
		"no_opinion":           {"ignored", "ignored"},
		"request_continuation": {"ignored", "retried", "ignored"},
		"forbid":               {"ignored", "stops", "retried"},
	} {
		final, err := run(t, agent.Config{
			Driver: turns(call(calls...)), Executor: failed,
			Criterion: afterSteps(1, agent.Evaluation{Verdict: agent.AllowStop}),
		})
		require.NoError(t, err)
		assert.Equal(t, want, policy.Evaluate(t.Context(), final).MustGet().Verdict.String(), calls)
	}
}

// The error value of a tool is gone from a state that was stored; a timeout is
// still known by its reason.
func TestTimeoutIsKnownAfterJSON(t *testing.T) {
	late := resultOf(func(r *agent.ToolResult) {
		r.Status, r.Reason, r.Content = agent.ToolFailed, agent.ReasonTimeout, agent.TextContent("no answer in 2s")
		r.Err = fmt.Errorf("waiting: %w", context.DeadlineExceeded)
	})
	final, err := run(t, agent.Config{
		Driver: turns(call("slow")), Executor: late, Criterion: afterSteps(1, agent.Evaluation{Verdict: agent.AllowStop}),
	})
	require.NoError(t, err)
	raw, err := json.Marshal(final)
	require.NoError(t, err)
	var stored agent.State
	require.NoError(t, json.Unmarshal(raw, &stored))
	require.NoError(t, stored.LastStep().Result(0).Err)

	want := continuation.ErrorPolicy{}.Evaluate(t.Context(), final).MustGet()
	assert.Equal(t, "timeout", want.Signal.Details["errorType"])
	assert.Equal(t, "slow", want.Signal.Details["toolName"])
	assert.Equal(t, want, continuation.ErrorPolicy{}.Evaluate(t.Context(), stored).MustGet())
}

// The stop signal does not contain text that a hook withheld from the model.
func TestSignalShowsWhatTheModelWasShown(t *testing.T) {
	redacted := resultOf(func(r *agent.ToolResult) {
		r.Status, r.Reason, r.Err = agent.ToolFailed, agent.ReasonError, errors.New("token hunter2 refused")
		r.Content = agent.TextContent("token ***** refused " + strings.Repeat("ä", 1000))
	})
	final, err := run(t, agent.Config{
		Driver: turns(call("login")), Executor: redacted, Criterion: continuation.All(agent.Base, continuation.ErrorPolicy{}),
	})
	require.Error(t, err)
	got, err := json.Marshal(signal(t, final))
	require.NoError(t, err)
	assert.NotContains(t, string(got), "hunter2")
	shown := strings.TrimPrefix(signal(t, final).Message, `tool "login" failed: `)
	assert.True(t, strings.HasPrefix(shown, "token ***** refused ä"), shown)
	assert.Len(t, []rune(shown), 301, "300 and the sign that there was more")
}

// Calls that did not run do not count as failures.
func TestDeniedCallsAreNoFailures(t *testing.T) {
	denied := resultOf(func(r *agent.ToolResult) {
		c := r.Call()
		*r = *agent.NotExecuted(&c, agent.ReasonDenied, "guard", "denied")
	})
	final, err := run(t, agent.Config{
		Driver: turns(call("t"), answer("a")), Executor: denied, Criterion: continuation.All(agent.Base, continuation.ErrorPolicy{}),
	})
	require.NoError(t, err)
	assert.Equal(t, agent.StatusDone, final.Status())
}

// resultOf is an executor whose every tool gives that result.
type resultOf func(*agent.ToolResult)

func (resultOf) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

func (f resultOf) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	r := agent.NewResult(p)
	f(r)
	return mo.Ok(r)
}

func TestHandlingNames(t *testing.T) {
	assert.Equal(t, "stop retry ignore handling(9)",
		fmt.Sprint(continuation.Stop, continuation.Retry, continuation.Ignore, continuation.Handling(9)))
}
