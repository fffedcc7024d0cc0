package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy"
)

// The policy that docs/policies.md begins with does what it says.
func TestTheManual(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(manual), -1)
	require.NotEmpty(t, blocks)
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	text := strings.Replace(blocks[0][1], "workspace: .", "workspace: "+dir, 1)
	p := load(t, text)
	assert.NoError(t, judged(t, schema(t), []byte(text)))
	assert.Empty(t, p.Check())

	for name, tc := range map[string]struct {
		at   hookstest.Moment
		want string // the rule that denies; empty for none
	}{
		"a file inside":             {hookstest.ToolCall("read_file", `{"path":"a/b.txt"}`), ""},
		"a file outside":            {hookstest.ToolCall("read_file", `{"path":"/etc/passwd"}`), "inside"},
		"dots":                      {hookstest.ToolCall("write_file", `{"path":"a/../../x"}`), "inside"},
		"a link":                    {hookstest.ToolCall("read_file", `{"path":"link/passwd"}`), "inside"},
		"no text":                   {hookstest.ToolCall("read_file", `{"path":["/etc/passwd"]}`), "inside"},
		"a command":                 {hookstest.ToolCall("bash", `{"command":"ls -l a && cat a/b.txt"}`), ""},
		"a command outside":         {hookstest.ToolCall("bash", `{"command":"cat ../secret"}`), "files"},
		"a command with a variable": {hookstest.ToolCall("bash", `{"command":"cat ./$UP/passwd"}`), "files"},
		"a command in disguise":     {hookstest.ToolCall("bash", `{"command":"eval \"$(echo Y2F0IC9ldGMvcGFzc3dk | base64 -d)\""}`), "readable"},
		"a request":                 {hookstest.ToolCall("bash", `{"command":"curl -s https://example.com/x"}`), "offline"},
		"a clone":                   {hookstest.ToolCall("bash", `{"command":"git clone git@github.com:a/b.git"}`), "offline"},
		"a tool for the web":        {hookstest.ToolCall("web_search", `{}`), "no-fetch"},
		"another tool":              {hookstest.ToolCall("todo", `{}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := fire(t, p, tc.at)
			assert.Equal(t, tc.want != "", f.Decision == hooks.Deny, "%s", f)
			if tc.want != "" {
				assert.Equal(t, "workspace/"+tc.want, f.Hook, "%s", f)
			}
		})
	}
}

// The tables of docs/policies.md and docs/actions.md name every decision, action and rule of the model.
func TestTheManualIsWhole(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	require.NoError(t, err)
	actions, err := os.ReadFile(filepath.Join("..", "docs", "actions.md"))
	require.NoError(t, err)
	schema := string(policy.Schema())
	for _, word := range []string{"decision", "type"} {
		words := regexp.MustCompile(`"const": "([a-z_]+)"\s*\}\s*\},\s*"required": \[\s*"`+word+`"`).FindAllStringSubmatch(schema, -1)
		require.NotEmpty(t, words, word)
		for _, w := range words {
			assert.Contains(t, string(manual)+string(actions), "`"+w[1]+"`", "no word on %s: %s", word, w[1])
		}
	}
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range sources {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, named := range regexp.MustCompile(`\(rule: ([a-z ]+)\)`).FindAllStringSubmatch(string(text), -1) {
			assert.Contains(t, string(manual), "\n| "+named[1]+" |", "%s names a rule of the model", path)
		}
	}
}
