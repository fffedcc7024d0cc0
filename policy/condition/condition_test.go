package condition_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/condition"
)

func languageOf(t testing.TB, o condition.Options) *condition.Language {
	t.Helper()
	l, err := condition.New(o)
	require.NoError(t, err)
	return l
}

// callOf is a call of bash with these arguments.
func callOf(t testing.TB, arguments string) condition.Input {
	t.Helper()
	in, err := condition.FromJSON([]byte(`{"point":"PreToolUse","tool":"bash","arguments":`+arguments+`}`), "")
	require.NoError(t, err)
	return in
}

// AP-46
func TestOperators(t *testing.T) {
	l := languageOf(t, condition.Options{})
	in := callOf(t, `{"n":7,"s":"x","f":1.5,"big":9007199254740993}`)
	for text, want := range map[string]bool{
		"args.n == 7": true, "args.n != 7": false, "args.n < 8": true, "args.n <= 7": true, "args.n > 7": false,
		"args.n >= 7": true, "args.n % 2 == 1": true, "args.n > 5 && args.s == 'x'": true, "args.n > 9 || args.s == \"x\"": true,
		"!(args.n == 7)": false, "(1 + 2) * 3 == 9": true, "args.big == 9007199254740993": true, "args.big == 9007199254740992": false,
		"args.f > 1": true, "tool == 'bash'": true, "has(args.n) && !has(args.m)": true,
		`shell.commands("sudo rm -rf /x").exists(c, c.name == "rm" && c.flag("r", "recursive"))`: true,
		"calls('bash') == 0": true,
	} {
		c, err := l.Compile(text, hooks.PreToolUse)
		require.NoError(t, err, text)
		got, err := c.Test(t.Context(), in)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}
