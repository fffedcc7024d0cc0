package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
	"github.com/grapnel-go/grapnel/toolexec/shell"
)

func arguments(t testing.TB, command string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": command})
	require.NoError(t, err)
	return string(raw)
}

// play runs an agent whose model makes these calls of bash and then says done.
func play(t *testing.T, ctx context.Context, s *shell.Shell, calls []string, list ...hooks.Hook) (agent.State, error) { //nolint:revive // t is first
	t.Helper()
	script := make([]agenttest.Turn, 0, len(calls)+1)
	for _, args := range calls {
		script = append(script, agenttest.Call("bash", args))
	}
	a, err := builder.New().WithName("tester").
		WithDriver(agenttest.Script(append(script, agenttest.Say("done"))...)).
		With(capability.UseTools(s.Tool()), capability.UseHooks(list...)).
		Build().Get()
	require.NoError(t, err)
	return a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
}

// onlyResult returns the answer to the call of the first step.
func onlyResult(t *testing.T, s agent.State) *agent.ToolResult {
	t.Helper()
	for _, step := range s.RunSteps() {
		r := step.Result(0)
		return &r
	}
	require.Fail(t, "no step")
	return nil
}

func TestToolInAnAgent(t *testing.T) {
	s := newShell(t, nil)
	for name, tc := range map[string]struct {
		arguments, text string
		status          agent.ToolStatus
		reason          agent.ReasonCode
	}{
		"well":          {`{"command":"echo hi"}`, "exit code 0\nstdout:\nhi", agent.ToolExecuted, ""},
		"badly":         {`{"command":"exit 3"}`, "exit code 3\nno output", agent.ToolExecuted, agent.ReasonError},
		"killed":        {`{"command":"kill -9 $$"}`, "killed by SIGKILL\nno output", agent.ToolExecuted, agent.ReasonError},
		"too long":      {`{"command":"echo x; sleep 300","timeout_seconds":1}`, "tool \"bash\": failed: no answer within 1s", agent.ToolFailed, agent.ReasonTimeout},
		"no command":    {`{}`, "command", agent.ToolNotExecuted, agent.ReasonInvalid},
		"empty":         {`{"command":""}`, "command", agent.ToolNotExecuted, agent.ReasonInvalid},
		"spaces":        {`{"command":"  "}`, "shell: the command is empty", agent.ToolFailed, agent.ReasonError},
		"unknown":       {`{"command":"true","cwd":"/"}`, "cwd", agent.ToolNotExecuted, agent.ReasonInvalid},
		"no time":       {`{"command":"true","timeout_seconds":0}`, "timeout_seconds", agent.ToolNotExecuted, agent.ReasonInvalid},
		"too much time": {`{"command":"true","timeout_seconds":601}`, "timeout_seconds", agent.ToolNotExecuted, agent.ReasonInvalid},
		"as text":       {`{"command":"true","timeout_seconds":"5"}`, "timeout_seconds", agent.ToolNotExecuted, agent.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			final, err := play(t, t.Context(), s, []string{tc.arguments})
			require.NoError(t, err)
			r := onlyResult(t, final)
			assert.Contains(t, r.Text(), tc.text)
			assert.Equal(t, tc.status, r.Status)
			assert.Equal(t, tc.reason, r.Reason)
		})
	}
}

func TestTimeoutTellsWhatWasWritten(t *testing.T) {
	t.Parallel()
	s := newShell(t, func(c *shell.Config) { c.Timeout = time.Second })
	final, err := play(t, t.Context(), s, []string{`{"command":"echo step one; sleep 300"}`})
	require.NoError(t, err)
	assert.Contains(t, onlyResult(t, final).Text(), "timed out after 1s and was killed\nstdout:\nstep one")
}

func TestCancelledRun(t *testing.T) {
	s := newShell(t, nil)
	dir := strings.TrimSpace(run(t, s, "pwd").Stdout.Text)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for { // until the command has begun
			if _, err := os.Stat(dir + "/begun"); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
		}
	}()
	final, err := play(t, ctx, s, []string{`{"command":"echo partly; touch begun; sleep 300; touch ended"}`})
	require.ErrorIs(t, err, context.Canceled)
	failed, ok := errors.AsType[*agent.RunError](err)
	require.True(t, ok)
	assert.Equal(t, agent.StatusCancelled, failed.State.Status())
	assert.NoFileExists(t, dir+"/ended")
	_ = final
}

// Hooks see figures, whether the command ended well, badly or not at all.
func TestResultOf(t *testing.T) {
	t.Parallel()
	s := newShell(t, func(c *shell.Config) { c.Timeout = time.Second })
	var seen []string
	look := hooks.Observe(hooks.AtPostToolUse, "look", func(_ context.Context, c hooks.ToolResultContext) error {
		r, ok := shell.ResultOf(c.Result())
		seen = append(seen, fmt.Sprintf("%v %s %d %q %d", ok, r.Ended, r.ExitCode, r.Signal, r.Stdout.Bytes))
		return nil
	})
	final, err := play(t, t.Context(), s, []string{
		`{"command":"echo hi"}`, `{"command":"exit 4"}`, `{"command":"kill $$"}`, `{"command":"echo begun; sleep 300"}`, `{}`,
	}, look)
	require.NoError(t, err)
	assert.Equal(t, []string{
		`true exited 0 "" 3`, `true exited 4 "" 0`, `true exited -1 "SIGTERM" 0`, `true timed_out -1 "SIGTERM" 6`, `false  0 "" 0`,
	}, seen)
	raw, err := json.Marshal(final)
	require.NoError(t, err)
	assert.NoError(t, new(agent.State).UnmarshalJSON(raw))
}

func TestIdempotencyKey(t *testing.T) {
	s := newShell(t, nil)
	final, err := play(t, t.Context(), s, []string{arguments(t, `printf "$GRAPNEL_IDEMPOTENCY_KEY"`)})
	require.NoError(t, err)
	_, key, _ := strings.Cut(onlyResult(t, final).Text(), "stdout:\n")
	call := onlyResult(t, final).Call()
	assert.Equal(t, string(final.Run().ID)+"/0/"+call.ID, key)
}

func TestParallelCommands(t *testing.T) {
	s := newShell(t, nil)
	calls := make([]agent.ToolCall, 8)
	for i := range calls {
		calls[i] = agent.ToolCall{ID: fmt.Sprint("c", i), Name: "bash", Arguments: arguments(t, fmt.Sprintf("echo %d; sleep 0.02 & wait", i))}
	}
	box, err := toolexec.NewToolbox(s.Tool())
	require.NoError(t, err)
	a := agent.New(agent.Config{
		Driver:   agenttest.Script(agenttest.Reply(agent.Step{Message: agent.Assistant("", calls...)}), agenttest.Say("done")),
		Executor: toolexec.NewExecutor(box, toolexec.Options{}), Parallel: 4,
	}).MustGet()
	final := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).MustGet()
	for _, step := range final.RunSteps() {
		for i, r := range step.Results() {
			assert.Equal(t, fmt.Sprintf("exit code 0\nstdout:\n%d", i), r.Text())
		}
	}
}

func TestSpec(t *testing.T) {
	s := newShell(t, func(c *shell.Config) { c.Name, c.Timeout, c.MaxTimeout = "run", time.Second, time.Minute })
	spec := s.Tool().Spec()
	assert.Equal(t, "run", spec.Name)
	assert.Contains(t, spec.Description, "Runs a command with bash")
	assert.Contains(t, spec.Description, "killed after 1 seconds")
	assert.Contains(t, spec.Parameters, `"maximum":60`)
	assert.Contains(t, spec.Parameters, `"additionalProperties":false`)
}

func ExampleTool() {
	dir, err := os.MkdirTemp("", "shell")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	bash, err := shell.Tool(shell.Config{Dir: dir, Timeout: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	model := agenttest.Script(
		agenttest.Call("bash", `{"command":"echo 'package main' >main.go; ls"}`),
		agenttest.Say("There is a main.go now."),
	)
	a := builder.New().WithDriver(model).With(capability.UseTools(bash)).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Begin a program.")).MustGet()
	for _, m := range final.Messages() {
		fmt.Printf("%s says %q\n", m.Role(), m.Text())
	}
	// Output:
	// user says "Begin a program."
	// assistant says ""
	// tool says "exit code 0\nstdout:\nmain.go"
	// assistant says "There is a main.go now."
}
