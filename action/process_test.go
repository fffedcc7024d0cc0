package action_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// AP-14, LH-36
func TestShellDecides(t *testing.T) {
	bash(t)
	for text, want := range map[string]struct {
		decision hooks.Decision
		saying   string
	}{
		`true`:                        {hooks.Pass, ""},
		`echo '{}'`:                   {hooks.Pass, ""},
		`echo '{"decision":"allow"}'`: {hooks.Allow, ""},
		`echo '{"decision":"deny","reason":"not on Sundays"}'`:                   {hooks.Deny, "not on Sundays"},
		`echo '{"decision":"deny","reason":""}'`:                                 {hooks.Deny, ""},
		`echo '{"decision":"stop"}'`:                                             {hooks.StopRun, ""},
		`echo '{"decision":"mock","result":"made up"}'`:                          {hooks.Mock, ""},
		`echo '{"decision":"rewrite","arguments":{"command":"true"}}'`:           {hooks.Rewrite, ""},
		`grep -q '"command":"ls"' && echo '{"decision":"deny","reason":"seen"}'`: {hooks.Deny, "seen"},
	} {
		t.Run(text, func(t *testing.T) {
			f := fire(t, ready(t, action.Shell{Text: text}, action.Host{Dir: t.TempDir()}), hookstest.ToolCall("bash", `{"command":"ls"}`))
			assert.Equal(t, want.decision, f.Decision, f.String())
			assert.Equal(t, want.saying, f.Reason)
		})
	}
}

// Every variable is in the environment, the request on standard input, and secrets of this process are not there.
// AP-19, AP-53
func TestWhatAProcessIsTold(t *testing.T) {
	bash(t)
	t.Setenv("SERVICE_API_KEY", "sk-secret")
	t.Setenv("PASSED_ON", "yes")
	r := observed(t)
	r.Variables = action.Variables{
		Session: "s", Stage: "plan", Iteration: 3, MaxIterations: 10, Progress: "/p", Status: "/s", Ctx: "/c", LastDecision: "continue",
		LastHookStatus: "failed", ChangedFiles: "a\nb", StageOutputs: "o", Error: "e", Timestamp: "2026-01-02T03:04:05Z",
		CallbackURL: "u", HookResponse: "h", SpawnOutput: "w",
	}
	names := action.VariableNames()
	require.Len(t, names, 17)
	text := `cat >request; for name in ` + strings.Join(names, " ") + `; do printf '%s=%s;' "$name" "${!name}"; done; echo "$OWN $PASSED_ON $SERVICE_API_KEY"`
	dir := t.TempDir()
	a := ready(t, action.Shell{Text: text, Env: map[string]string{"OWN": "mine"}, Inherit: []string{"PASSED_*"}}, action.Host{Dir: dir})
	answer := lo.Must(a.Do(t.Context(), r))
	want := "SESSION=s;STAGE=plan;NEXT_STAGE=;ITERATION=3;MAX_ITERATIONS=10;PROGRESS=/p;STATUS=/s;CTX=/c;LAST_DECISION=continue;" +
		"LAST_HOOK_STATUS=failed;CHANGED_FILES=a\nb;STAGE_OUTPUTS=o;ERROR=e;TIMESTAMP=2026-01-02T03:04:05Z;CALLBACK_URL=u;HOOK_RESPONSE=h;SPAWN_OUTPUT=w;"
	assert.Equal(t, want+"mine yes \n", answer.Output)

	told, err := os.ReadFile(filepath.Join(dir, "request"))
	require.NoError(t, err)
	var form struct {
		Version   int
		Hook      string
		Point     string
		Deadline  time.Time
		Tool      string
		Arguments map[string]string
		Variables map[string]any
	}
	require.NoError(t, json.Unmarshal(told, &form))
	assert.Equal(t, "policy/rule PreToolUse bash", form.Hook+" "+form.Point+" "+form.Tool)
	assert.Equal(t, map[string]string{"command": "ls"}, form.Arguments)
	assert.False(t, form.Deadline.IsZero(), "it is told how long it has")
	assert.ElementsMatch(t, names, lo.Keys(form.Variables))
}

// Output and errors never contain an inherited secret.
// AP-27
func TestInheritedSecretsAreNotTold(t *testing.T) {
	bash(t)
	t.Setenv("SERVICE_API_KEY", secret)
	for text, want := range map[string]string{
		`printf %s "$SERVICE_API_KEY"`:            "${SERVICE_API_KEY}",
		`echo "key $SERVICE_API_KEY" >&2; exit 1`: `bash ended with exit code 1; stderr: "key ${SERVICE_API_KEY}"`,
	} {
		answer, err := ready(t, action.Shell{Text: text, Inherit: []string{"SERVICE_*"}}, action.Host{}).Do(t.Context(), observed(t))
		if err != nil {
			assert.ErrorContains(t, err, want)
			continue
		}
		assert.Equal(t, want, answer.Output)
	}
}

// A process that does not end when it is asked to is killed, with all that it started.
// AP-18
func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	bash(t)
	dir := t.TempDir()
	text := `trap '' TERM; (trap '' TERM; echo $BASHPID >child; exec sleep 1000) & echo $$ >parent; touch began; wait`
	a := ready(t, action.Shell{Text: text, Timeout: 500 * time.Millisecond}, action.Host{Dir: dir})
	_, err := a.Do(t.Context(), guarded(t))
	assert.Equal(t, action.FaultTimeout, faultOf(t, err))
	require.ErrorContains(t, err, "shell: timed out after 500ms")
	for _, name := range []string{"parent", "child"} {
		pid, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			continue // it was not that far when its time was up
		}
		require.NoError(t, err)
		number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
		require.NoError(t, err)
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(number) + "/stat")
		assert.True(t, err != nil || strings.Contains(string(stat), ") Z "), "%s is still there", name)
	}
}

func TestWhatIsWrongWithAProcessIsTold(t *testing.T) {
	bash(t)
	for name, tc := range map[string]struct {
		d     action.Declared
		fault action.Fault
		want  string
	}{
		"exit code":      {action.Shell{Text: "echo why >&2; exit 7"}, action.FaultExit, `shell: bash ended with exit code 7; stderr: "why"`},
		"signal":         {action.Shell{Text: "kill -KILL $$"}, action.FaultSignal, "shell: bash was killed by SIGKILL"},
		"no such file":   {action.Command{Argv: []string{"./missing"}}, action.FaultStart, "command: finding ./missing: no such file"},
		"not in PATH":    {action.Command{Argv: []string{"no-such-program-anywhere"}}, action.FaultStart, "command: finding no-such-program-anywhere: executable file not found"},
		"no interpreter": {action.Command{Argv: []string{"./script"}}, action.FaultStart, "command: starting ./script: no such file"},
		"not executable": {action.Command{Argv: []string{"./text"}}, action.FaultStart, "command: finding ./text: permission denied"},
		"no directory":   {action.Command{Argv: []string{"true"}, Dir: "/no/such"}, action.FaultStart, "command: running in /no/such: no such directory"},
		"truncated":      {action.Shell{Text: `printf '{"decision":"allow","reason":"%01000d"}' 5`, MaxBytes: 1000}, action.FaultTooMuch, "the output exceeds 1000 bytes"},
		"no decision":    {action.Shell{Text: `echo '{"action":"deny"}'`}, action.FaultAnswer, `invalid decision: at /action: member "action" is not known; output: "{\"action\":\"deny\"}"`},
		"two decisions":  {action.Shell{Text: `echo '{"decision":"allow"}{"decision":"deny"}'`}, action.FaultAnswer, "invalid decision"},
		"said twice":     {action.Shell{Text: `echo '{"decision":"allow","decision":"deny"}'`}, action.FaultAnswer, "invalid decision"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			parts.WriteExecutable(t, filepath.Join(dir, "script"), []byte("#!/no/such/interpreter\n"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), nil, 0o644))
			_, err := ready(t, tc.d, action.Host{Dir: dir}).Do(t.Context(), guarded(t))
			assert.Equal(t, tc.fault, faultOf(t, err))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// What is exactly as long as is kept is whole.
// LH-21
func TestOutputLimitIsExact(t *testing.T) {
	bash(t)
	for n, truncated := range map[int]bool{65_536: false, 65_537: true} {
		a := ready(t, action.Shell{Text: "head -c " + strconv.Itoa(n) + ` /dev/zero | tr '\0' x`}, action.Host{})
		answer := lo.Must(a.Do(t.Context(), observed(t)))
		assert.Len(t, answer.Output, 65_536)
		assert.Equal(t, truncated, answer.Truncated)
	}
}

// When a detached action is done, its process is gone: no zombie remains.
// AP-09, AP-21
func TestDetached(t *testing.T) {
	bash(t)
	dir := t.TempDir()
	require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", filepath.Join(dir, "go")).Run())
	d := action.Shell{Text: `cat go >/dev/null; touch done; echo '{"decision":"deny"}'`}
	a := ready(t, d, action.Host{Dir: dir})
	started := false
	hook := control(hooks.PreToolUse, func(ctx context.Context, c hooks.Context) hooks.Result {
		at, ok := c.(interface {
			Detach(ctx context.Context, name string, limit time.Duration, f func(ctx context.Context) error) bool
		})
		require.True(t, ok)
		request := action.NewRequest(c, "policy/notify")
		request.Decides = false
		started = at.Detach(ctx, request.Hook, d.Limit(), func(ctx context.Context) error { return lo.T2(a.Do(ctx, request)).B })
		go func() { _ = os.WriteFile(filepath.Join(dir, "go"), []byte("go"), 0o600) }() // which waits for a reader
		return hooks.Result{}
	})
	f := hookstest.Fire(t, hook, hookstest.ToolCall("bash", `{"command":"ls"}`)) // which drains at its end
	assert.True(t, started)
	assert.Equal(t, hooks.Pass, f.Decision, "it decides nothing")
	assert.True(t, f.Ran())
	assert.FileExists(t, filepath.Join(dir, "done"))
	last, ok := lo.Last(f.Events)
	require.True(t, ok)
	assert.Equal(t, "policy/notify", last.Hook)
	assert.Equal(t, hooks.HookComplete, last.Kind)
	assert.True(t, last.Detached)
}
