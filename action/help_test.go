package action_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// ready returns an action that is ready to be done.
func ready(t testing.TB, d action.Declared, h action.Host) action.Action {
	t.Helper()
	require.NoError(t, d.Validate())
	a, err := d.Action(h)
	require.NoError(t, err)
	return a
}

// control returns a hook of the name "rule" that does what f does, at the point of a moment.
func control(at hooks.PointName, f func(ctx context.Context, c hooks.Context) hooks.Result) hooks.Hook {
	limit := time.Minute
	switch at {
	case hooks.PreToolUse:
		return hooks.On(hooks.AtPreToolUse, "rule", func(ctx context.Context, c hooks.ToolContext) hooks.Result { return f(ctx, c) }).WithTimeout(limit)
	case hooks.PostToolUse:
		return hooks.On(hooks.AtPostToolUse, "rule", func(ctx context.Context, c hooks.ToolResultContext) hooks.Result { return f(ctx, c) }).WithTimeout(limit)
	case hooks.ToolFailed:
		return hooks.On(hooks.AtToolFailed, "rule", func(ctx context.Context, c hooks.ToolFailureContext) hooks.Result { return f(ctx, c) })
	case hooks.InputSubmitted:
		return hooks.On(hooks.AtInputSubmitted, "rule", func(ctx context.Context, c hooks.InputContext) hooks.Result { return f(ctx, c) })
	case hooks.ExecutionStart:
		return hooks.On(hooks.AtExecutionStart, "rule", func(ctx context.Context, c hooks.ExecutionContext) hooks.Result { return f(ctx, c) })
	case hooks.StepStart:
		return hooks.On(hooks.AtStepStart, "rule", func(ctx context.Context, c hooks.StepContext) hooks.Result { return f(ctx, c) })
	case hooks.StepEnd:
		return hooks.On(hooks.AtStepEnd, "rule", func(ctx context.Context, c hooks.StepEndContext) hooks.Result { return f(ctx, c) }).WithTimeout(limit)
	case hooks.PreInference:
		return hooks.On(hooks.AtPreInference, "rule", func(ctx context.Context, c hooks.InferenceContext) hooks.Result { return f(ctx, c) })
	case hooks.PostInference:
		return hooks.On(hooks.AtPostInference, "rule", func(ctx context.Context, c hooks.ReplyContext) hooks.Result { return f(ctx, c) })
	case hooks.PreCompact:
		return hooks.On(hooks.AtPreCompact, "rule", func(ctx context.Context, c hooks.PreCompactContext) hooks.Result { return f(ctx, c) })
	case hooks.PreSubagent:
		return hooks.On(hooks.AtPreSubagent, "rule", func(ctx context.Context, c hooks.PreSubagentContext) hooks.Result { return f(ctx, c) })
	case hooks.PostSubagent:
		return hooks.On(hooks.AtPostSubagent, "rule", func(ctx context.Context, c hooks.PostSubagentContext) hooks.Result { return f(ctx, c) })
	case hooks.InterventionRequested:
		return hooks.On(hooks.AtInterventionRequested, "rule", func(ctx context.Context, c hooks.InterventionContext) hooks.Result { return f(ctx, c) })
	case hooks.Stop:
		return hooks.On(hooks.AtStop, "rule", func(ctx context.Context, c hooks.StopContext) hooks.Result { return f(ctx, c) })
	case hooks.AgentFailed:
		return hooks.On(hooks.AtAgentFailed, "rule", func(ctx context.Context, c hooks.FailureContext) hooks.Result { return f(ctx, c) })
	case hooks.IterationStart:
		return hooks.On(hooks.AtIterationStart, "rule", func(ctx context.Context, c hooks.PipelineContext) hooks.Result { return f(ctx, c) })
	case hooks.RunStart:
		return hooks.On(hooks.AtRunStart, "rule", func(ctx context.Context, c hooks.RunStartContext) hooks.Result { return f(ctx, c) })
	case hooks.RunResult:
		return hooks.On(hooks.AtRunResult, "rule", func(ctx context.Context, c hooks.RunResultContext) hooks.Result { return f(ctx, c) })
	case hooks.RunFailed:
		return hooks.On(hooks.AtRunFailed, "rule", func(ctx context.Context, c hooks.RunFailedContext) hooks.Result { return f(ctx, c) })
	case hooks.ExecutionEnd:
		return hooks.Observe(hooks.AtExecutionEnd, "rule", func(ctx context.Context, c hooks.EndContext) error { return f(ctx, c).Error() }).WithTimeout(limit)
	}
	panic("no hook for " + at)
}

// fire fires a moment for a hook that does an action.
func fire(t testing.TB, a action.Action, at hookstest.Moment) hookstest.Fired {
	t.Helper()
	return hookstest.Fire(t, control(at.Point(), func(ctx context.Context, c hooks.Context) hooks.Result {
		return action.Apply(ctx, c, a, action.NewRequest(c, "policy/rule"))
	}), at)
}

// asked returns what an action is told at a moment.
func asked(t testing.TB, at hookstest.Moment) *action.Request {
	t.Helper()
	var r *action.Request
	hookstest.Fire(t, control(at.Point(), func(_ context.Context, c hooks.Context) hooks.Result {
		r = action.NewRequest(c, "policy/rule")
		return hooks.Result{}
	}), at)
	require.NotNil(t, r)
	return r
}

// guarded returns the request of a tool call's guard.
func guarded(t testing.TB) *action.Request {
	t.Helper()
	return asked(t, hookstest.ToolCall("bash", `{"command":"ls"}`))
}

func observed(t testing.TB) *action.Request {
	t.Helper()
	r := guarded(t)
	r.Decides = false
	return r
}

// faultOf returns what kept an action from being done.
func faultOf(t testing.TB, err error) action.Fault {
	t.Helper()
	var failed *action.Error
	require.ErrorAs(t, err, &failed)
	return failed.Fault
}

// bash makes sure that there is one.
func bash(t testing.TB) {
	t.Helper()
	parts.Command(t, "bash", "install bash")
}

// awaitFile waits for a real process to make a file.
func awaitFile(t testing.TB, path string) {
	t.Helper()
	assert.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, time.Minute, 5*time.Millisecond, "%s does not come", filepath.Base(path))
}

// signal is closed once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (s *signal) give() { s.once.Do(func() { close(s.c) }) }
