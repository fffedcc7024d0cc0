package hooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/hooks"
)

// What looks like a regular expression and stands outside of slashes is refused, with what to do: it would match next
// to nothing, and a guard with it would guard nothing.
func TestRegularExpressionsStandBetweenSlashes(t *testing.T) {
	for text, sign := range map[string]string{
		"^rm ": "^", `rm\s+-rf`: `\s`, "^bash$": "^", "bash|sh": "|", "bash$": "$", "(bash)": "(", "rm+": "+", "a{2}": "{", "*.{go,md}": "{",
		`\bsudo\b`: `\b`, `\d*`: `\d`, `\w?`: `\w`, "rm.*": ".*", ".*": ".*", "rm.?": ".?", "[a-z]+": "+", "[[:alpha:]]*": "[:", `[\s]`: `\s`,
		"rm -rf .*": ".*", "(?i)rm*": "(", "/^rm": "^", "^rm/i": "^", "rm)": ")", "a}": "}", `\Arm*`: `\A`, `\1`: `\1`,
	} {
		for name, m := range map[string]hooks.Matcher{
			"tool": hooks.ToolMatching(text), "argument": hooks.ArgumentMatching("command", text),
			"agent": hooks.AgentNamed(text), "stage": hooks.StageNamed(text),
		} {
			_, err := hooks.NewSet(before("h", allow, m)).Compile()
			require.ErrorContains(t, err, `pattern "`, "%s %s", name, text)
			assert.ErrorContains(t, err, "is regular expression syntax: write the pattern between slashes, /"+text+"/", name)
			assert.ErrorContains(t, err, "hooks.Exact", name)
		}
		sure := hooks.ArgumentMatching("command", hooks.Exact(text))
		assert.True(t, matchesMoment(t, sure, "bash", `{"command":`+quoted(text)+`}`), text)
		assert.False(t, matchesMoment(t, sure, "bash", `{"command":`+quoted(text+"x")+`}`), text)
		_ = sign
	}
}

// Patterns that are globs, or texts, stay what they are.
func TestPatternsThatAreNoRegularExpressions(t *testing.T) {
	for _, tc := range []struct{ pattern, yes, no string }{
		{"[a-z]*", "bash", "Bash"},
		{"[^a-z]*", "Bash", "bash"},
		{"mcp__x.y", "mcp__x.y", "mcp__xzy"},
		{"mcp__x.y*", "mcp__x.y_z", "mcp__xzy"},
		{"rm *", "rm -rf /", "rm"},
		{"rm -rf /", "rm -rf /", "rm -rf /tmp"},
		{"/etc/*", "/etc/passwd", "/srv/etc"},
		{"*/.env*", "/srv/.env.local", "/srv/env"},
		{"*.go", "main.go", "main.js"},
		{`*\.*`, "main.go", "main"}, // a dot that is meant
		{`\^rm`, "^rm", "rm"},
		{`a\|b`, "a|b", "a"},
		{`C:\\Users\\*`, `C:\Users\ann`, `C:/Users/ann`},
		{"src/**", "src/a/b", "doc/a"},
		{"what?", "what!", "what"},
		{"a@b.org", "a@b.org", "a@bxorg"},
		{"git push --force*", "git push --force-with-lease", "git push"},
		{"[+]1", "+1", "1"},
		{"/^rm /", "rm -rf /", "xrm "},
		{`/rm\s+-rf/`, "rm  -rf /", "rm -r"},
	} {
		m := hooks.ArgumentMatching("text", tc.pattern)
		require.NoError(t, m.Err(), tc.pattern)
		assert.True(t, matchesMoment(t, m, "tool", `{"text":`+quoted(tc.yes)+`}`), "%s %s", tc.pattern, tc.yes)
		assert.False(t, matchesMoment(t, m, "tool", `{"text":`+quoted(tc.no)+`}`), "%s %s", tc.pattern, tc.no)
	}
}

// Exact is the pattern of any text.
func TestExactMatchesTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z/^$()|+{}\\.*?\[\] ]{1,12}`).Draw(t, "text")
		other := rapid.StringMatching(`[a-z/^$()|+{}\\.*?\[\] ]{1,12}`).Draw(t, "other")
		m := hooks.ArgumentMatching("text", hooks.Exact(text))
		require.NoError(t, m.Err())
		require.True(t, matchesMoment(t, m, "tool", `{"text":`+quoted(text)+`}`))
		require.Equal(t, text == other, matchesMoment(t, m, "tool", `{"text":`+quoted(other)+`}`))
	})
}
