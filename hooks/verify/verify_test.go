package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/hooks/verify"
	"github.com/grapnel-go/grapnel/toolexec"
)

// says returns a check that finds the same each time.
func says(v verify.Verdict, err error) verify.Check {
	return func(context.Context, agent.State) (verify.Verdict, error) { return v, err }
}

func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		check  verify.Check
		o      verify.Options
		want   hooks.Decision
		saying string
	}{
		"passed":          {says(verify.Verdict{Passed: true, Output: "ok"}, nil), verify.Options{}, hooks.Allow, ""},
		"not passed":      {says(verify.Verdict{Output: "--- FAIL: TestAdd"}, nil), verify.Options{}, hooks.Continue, "(1 of 3). Fix what is wrong.\n\n--- FAIL: TestAdd"},
		"without a word":  {says(verify.Verdict{}, nil), verify.Options{}, hooks.Continue, "It wrote nothing."},
		"no attempts":     {says(verify.Verdict{Output: "red"}, nil), verify.Options{Attempts: -1}, hooks.StopRun, "has not passed, and the model was sent back 0 times: red"},
		"not to be made":  {says(verify.Verdict{}, errors.New("no go")), verify.Options{}, hooks.StopRun, "could not decide: checking: no go"},
		"passed or not":   {says(verify.Verdict{Passed: true}, errors.New("no go")), verify.Options{}, hooks.StopRun, "checking: no go"},
		"a panic":         {func(context.Context, agent.State) (verify.Verdict, error) { panic("kaboom") }, verify.Options{}, hooks.StopRun, "panic: kaboom"},
		"none":            {nil, verify.Options{}, hooks.StopRun, "there is no check"},
		"the end of much": {says(verify.Verdict{Output: "first\n" + strings.Repeat("a line\n", 100) + "the last"}, nil), verify.Options{MaxBytes: 40}, hooks.Continue, "\n[… what came before is left out …]\na line\na line\na line\na line\nthe last"},
		"cleaned": {says(verify.Verdict{Output: "key=sk-1"}, nil), verify.Options{Clean: func(s string) string { return strings.ReplaceAll(s, "sk-1", "…") }},
			hooks.Continue, "key=…"},
	} {
		t.Run(name, func(t *testing.T) {
			hookstest.Cases{name: {At: hookstest.Stop("done"), Want: tc.want, Saying: tc.saying}}.Test(t, verify.Hook(tc.check, tc.o))
		})
	}
}

// The cap of the agent is never reached with a check that has not passed.
func TestOtherHooksMadeItGoOnToo(t *testing.T) {
	hook := verify.Hook(says(verify.Verdict{Output: "red"}, nil), verify.Options{Attempts: 100})
	hookstest.Cases{
		"some":        {At: hookstest.Stop("done").WithContinuations(hooks.DefaultContinuations - 1), Want: hooks.Continue, Saying: "(1 of 1)"},
		"all of them": {At: hookstest.Stop("done").WithContinuations(hooks.DefaultContinuations), Want: hooks.StopRun, Saying: "sent back 0 times"},
	}.Test(t, hook)
}

// play runs an agent whose model says that it is done, again and again.
func play(ctx context.Context, t *testing.T, hook hooks.Hook, more ...capability.Capability) agent.State {
	t.Helper()
	says := make([]agenttest.Turn, 20)
	for i := range says {
		says[i] = agenttest.Say(fmt.Sprintf("done %d", i))
	}
	a, err := builder.New().WithDriver(agenttest.Script(says...)).With(capability.UseHooks(hook)).With(more...).Build().Get()
	require.NoError(t, err)
	final, err := a.Run(ctx, agent.NewState(), agent.UserText("go")).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		return failed.State
	}
	return final
}

// An agent that lets its hooks go on less often than the hook would: what has not passed is not done.
func TestRunIsStoppedWhenItMayNotGoOn(t *testing.T) {
	hook := verify.Hook(says(verify.Verdict{Output: "red"}, nil), verify.Options{Attempts: 5})
	final := play(t.Context(), t, hook, capability.UseGuards{Continuations: 1})
	assert.Equal(t, agent.StatusStopped, final.Status())
	assert.Contains(t, final.StopSignal().Message, "sent back 1 times: red")
}

func TestRunEndsWhenTheCheckPasses(t *testing.T) {
	reds := 2
	hook := verify.Hook(func(context.Context, agent.State) (verify.Verdict, error) {
		reds--
		return verify.Verdict{Passed: reds < 0, Output: "red"}, nil
	}, verify.Options{Name: "tests"})
	final := play(t.Context(), t, hook)
	assert.Equal(t, agent.StatusDone, final.Status())
	assert.Equal(t, "done 2", final.Answer())
	assert.Equal(t, 3, final.RunStepCount())
}

func TestRunIsStoppedWhenItNeverPasses(t *testing.T) {
	hook := verify.Hook(says(verify.Verdict{Output: "red"}, nil), verify.Options{Attempts: 2})
	for range 2 { // each run has its own attempts
		final := play(t.Context(), t, hook)
		assert.Equal(t, agent.StatusStopped, final.Status())
		assert.Equal(t, 3, final.RunStepCount())
		signal := final.StopSignal()
		assert.Equal(t, "verify", signal.Source)
		assert.Contains(t, signal.Message, "sent back 2 times: red")
	}
}

func TestCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, _ agent.State) (verify.Verdict, error) {
			<-ctx.Done()
			return verify.Verdict{Output: "so far"}, ctx.Err()
		}
		fired := hookstest.Fire(t, verify.Hook(hangs, verify.Options{Timeout: time.Minute}), hookstest.Stop("done"))
		assert.Equal(t, hooks.Continue, fired.Decision)
		assert.Contains(t, fired.Reason, "so far\nThe check did not end within 1m0s.")
	})
}

func TestCancelledCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hangs := func(ctx context.Context, _ agent.State) (verify.Verdict, error) {
			<-ctx.Done()
			return verify.Verdict{Passed: true}, nil
		}
		assert.Equal(t, agent.StatusCancelled, play(ctx, t, verify.Hook(hangs, verify.Options{})).Status())
	})
}

func Example() {
	tests := func(_ context.Context, s agent.State) (verify.Verdict, error) {
		for _, m := range s.MessagesBackward() {
			if m.Tool() == "write_file" {
				return verify.Verdict{Passed: true}, nil
			}
		}
		return verify.Verdict{Output: "--- FAIL: TestAdd\n    add(1, 2) = 4, want 3"}, nil
	}
	model := agenttest.Script(
		agenttest.Say("All is well."),
		agenttest.Call("write_file", `{"Path":"add.go"}`),
		agenttest.Say("Now it is."),
	)
	write := toolexec.Func("write_file", "Writes a file.", func(context.Context, struct{ Path string }) (string, error) {
		return "written", nil
	})
	a := builder.New().WithDriver(model).
		With(capability.UseTools(write), capability.UseHooks(verify.Hook(tests, verify.Options{}))).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Mend add.")).MustGet()
	for _, m := range final.Messages() {
		if m.Text() != "" {
			fmt.Printf("%s: %s\n", m.Role(), m.Text())
		}
	}
	// Output:
	// user: Mend add.
	// assistant: All is well.
	// user: You are not done: the check that your work must pass has failed (1 of 3). Fix what is wrong.
	//
	// --- FAIL: TestAdd
	//     add(1, 2) = 4, want 3
	// tool: written
	// assistant: Now it is.
}

func ExampleCommand() {
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	test := verify.Command{Dir: dir, Args: []string{"go", "vet", "./..."}}
	verdict, err := test.Check(context.Background(), agent.NewState())
	fmt.Println(verdict.Passed, err)

	_ = os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/mended\n"), 0o600)
	_ = os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600)
	verdict, err = test.Check(context.Background(), agent.NewState())
	fmt.Println(verdict.Passed, err)
	// Output:
	// false <nil>
	// true <nil>
}
