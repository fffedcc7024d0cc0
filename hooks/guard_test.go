package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/hooks"
)

// checker returns a guard that leaves the decision to a program: ask is what the program
// writes, or why it could not be started.
func checker(ask func() (string, error)) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "checker", func(_ context.Context, c hooks.ToolContext) hooks.Result {
		raw, err := ask()
		if err != nil {
			return c.Fail(fmt.Errorf("starting the checker: %w", err))
		}
		var verdict struct {
			Decision, Reason string
		}
		if err := json.Unmarshal([]byte(raw), &verdict); err != nil {
			return c.Fail(fmt.Errorf("reading what the checker wrote: %w", err))
		}
		switch verdict.Decision {
		case "allow":
			return c.Allow()
		case "deny":
			return c.Deny(verdict.Reason)
		}
		return c.Fail(fmt.Errorf("the checker decided %q: want allow or deny", verdict.Decision))
	})
}

// a guard whose checker cannot be started, crashes, or writes what no program
// can read lets nothing through, unless it was told to; and what it wrote is never
// passed over in silence.
func TestGuardThatCannotDecideLetsNothingThrough(t *testing.T) {
	says := func(text string) func() (string, error) { return func() (string, error) { return text, nil } }
	for name, tc := range map[string]struct {
		ask  func() (string, error)
		ran  bool
		text string // of the failure; empty: the guard decided
	}{
		"yes":                 {says(`{"decision":"allow"}`), true, ""},
		"no":                  {says(`{"decision":"deny","reason":"no"}`), false, ""},
		"not started":         {func() (string, error) { return "", errors.New("no such file") }, false, "starting the checker: no such file"},
		"crashed":             {func() (string, error) { panic("kaboom") }, false, "panic: kaboom"},
		"nothing":             {says(``), false, "unexpected end of JSON input"},
		"no JSON":             {says(`deny`), false, "reading what the checker wrote"},
		"cut off":             {says(`{"decision":"al`), false, "unexpected end of JSON input"},
		"another type":        {says(`{"decision":true}`), false, "cannot unmarshal bool"},
		"another word":        {says(`{"decision":"block"}`), false, `the checker decided "block"`},
		"a word is missing":   {says(`{"reason":"no"}`), false, `the checker decided ""`},
		"null":                {says(`null`), false, `the checker decided ""`},
		"another system's no": {says(`{"hookSpecificOutput":{"permissionDecision":"deny"}}`), false, `the checker decided ""`},
	} {
		t.Run(name, func(t *testing.T) {
			script := func() *agenttest.Driver {
				return agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done"))
			}
			end := play(t, script(), []hooks.Hook{checker(tc.ask)})
			require.NoError(t, end.err)
			result := end.Message(2)
			assert.Equal(t, tc.ran, result.Status() == agent.ToolExecuted)
			failed := end.told(hooks.HookFailed)
			if tc.text == "" {
				assert.Empty(t, failed)
				return
			}
			assert.Equal(t, []string{"hook.failed checker@PreToolUse"}, failed)
			assert.Contains(t, result.Text(), "checker: the hook could not decide: ")
			assert.Contains(t, result.Text(), tc.text)

			open := play(t, script(), []hooks.Hook{checker(tc.ask).WithFailure(hooks.Open)})
			assert.Equal(t, "x", open.Message(2).Text())
			assert.Equal(t, failed, open.told(hooks.HookFailed), "told all the same")
		})
	}
}

// an outcome that no context made says nothing: that is a failure at every
// point, and no opinion nowhere.
func TestHandMadeOutcomesAreFailures(t *testing.T) {
	for at, hook := range failing(func(context.Context, hooks.Context) hooks.Result { return mo.Ok(&hooks.Outcome{}) }) {
		t.Run(string(at), func(t *testing.T) {
			end := play(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Say("done")), []hooks.Hook{hook})
			assert.Equal(t, []string{fmt.Sprintf("hook.failed broken at %s@%s", at, at)}, end.told(hooks.HookFailed))
			if end.Status() == agent.StatusDone { // at a tool call: news for the model
				assert.Contains(t, end.Message(2).Text(), "the hook could not decide: ")
				return
			}
			assert.Contains(t, end.signal().Message, "the hook could not decide: ")
		})
	}
}
