package hooks_test

import (
	"context"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// A call without the text is denied, and the body is not asked, whatever the failure policy is.
func TestRequireText(t *testing.T) {
	t.Parallel()
	for arguments, reason := range map[string]string{
		``:                              `argument "command" is missing: it must be a text`,
		`{}`:                            `argument "command" is missing: it must be a text`,
		`{"cmd":"ls"}`:                  `argument "command" is missing: it must be a text`,
		`{"COMMAND":"ls"}`:              `argument "command" is missing: it must be a text`,
		`{"command ":"ls"}`:             `argument "command" is missing: it must be a text`,
		`{"in":{"command":"ls"}}`:       `argument "command" is missing: it must be a text`,
		`{"command":null}`:              `argument "command" is null: it must be a text`,
		`{"command": ["ls"]}`:           `argument "command" is a list: it must be a text`,
		`{"command":{"command":"ls"}}`:  `argument "command" is an object: it must be a text`,
		`{"command":7}`:                 `argument "command" is a number: it must be a text`,
		`{"command":-7.5e3}`:            `argument "command" is a number: it must be a text`,
		`{"command" : true }`:           `argument "command" is a boolean: it must be a text`,
		`{"command":false,"x":[1,"y"]}`: `argument "command" is a boolean: it must be a text`,
	} {
		asked := false
		guard := hooks.On(hooks.AtPreToolUse, "guard", hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, _ string) hooks.Result {
			asked = true
			return c.Allow()
		})).WithFailure(hooks.Open)
		fired := hookstest.Fire(t, guard, hookstest.ToolCall("bash", arguments))
		assert.Equal(t, hooks.Deny, fired.Decision, arguments)
		assert.Equal(t, reason, fired.Reason, arguments)
		assert.False(t, fired.Ran(), arguments)
		assert.False(t, asked, arguments)
	}
}

// The body gets the text as the tool would, with what JSON escapes.
func TestRequireTextReadsWhatTheToolReads(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"command":"sudo\u0020rm"}`:                  "sudo rm",
		`{"\u0063ommand":"rm"}`:                       "rm",
		`{"command":""}`:                              "",
		`{"other":{"command":"x"},"command" : "a"  }`: "a",
	} {
		var got []string
		guard := hooks.On(hooks.AtPreToolUse, "guard", hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
			got = append(got, command)
			return c.Allow()
		}))
		fired := hookstest.Fire(t, guard, hookstest.ToolCall("bash", arguments))
		assert.True(t, fired.Ran(), arguments)
		assert.Equal(t, []string{want}, got, arguments)
	}
	nested := hooks.On(hooks.AtPreToolUse, "guard", hooks.RequireText("to.0.mail", func(_ context.Context, c hooks.ToolContext, mail string) hooks.Result {
		if strings.HasSuffix(mail, "@a.example") {
			return c.Allow()
		}
		return c.Deny("a stranger")
	}))
	hookstest.Cases{
		"known":    {At: hookstest.ToolCall("send", `{"to":[{"mail":"ann@a.example"}]}`), Want: hooks.Allow},
		"stranger": {At: hookstest.ToolCall("send", `{"to":[{"mail":"eve@e.example"}]}`), Want: hooks.Deny, Saying: "stranger"},
		"no one":   {At: hookstest.ToolCall("send", `{"to":[]}`), Want: hooks.Deny, Saying: `argument "to.0.mail" is missing`},
	}.Test(t, nested)
}

// Without a body there is no hook.
func TestRequireTextWithoutABody(t *testing.T) {
	t.Parallel()
	guard := hooks.On(hooks.AtPreToolUse, "guard", hooks.RequireText("command", nil))
	assert.ErrorContains(t, lo.T2(hooks.NewSet(guard).Compile()).B, "guard")
}
