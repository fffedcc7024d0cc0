package agents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/registry"
)

const whole = `
# everything that a file may say
name: fixer
model: openai/gpt-5-mini
base_url: http://localhost:11434/v1
api_key_env: MY_KEY
instructions: |
  You mend Go code. ${NAME} stays.
max_output_tokens: 4000
temperature: 0.2
options: {reasoning_effort: low, seed: 7}
tools:
  - shell: {dir: work, timeout: 2m, max_output: 64KiB, env: [PATH, GO*]}
  - files:
      root: .
      read_only: true
mcp:
  fs:
    command: [npx, -y, server]
    env: [GITHUB_TOKEN]
  web: {url: https://example.com/mcp, token_env: WEB_TOKEN}
hooks:
  - redact
  - rate-limit: {tools: [shell, mcp__*], calls: 10, per: 1m}
  - deny: {tools: [bash], argument: command, matching: 'rm\s+-rf', reason: no}
guards: {steps: 30, tokens: 200000, cost: 0.5, time: 10m}
retry: {attempts: 4, delay: 1s}
parallel: 2
output:
  name: report
  schema:
    type: object
    properties: {sum: {type: number}}
    required: [sum]
`

func TestParse(t *testing.T) {
	file, err := NewRegistry().Parse("fixer.yaml", []byte(whole))
	require.NoError(t, err)
	assert.Equal(t, "fixer", file.Name)
	assert.Equal(t, "openai/gpt-5-mini", file.Model)
	assert.Equal(t, "You mend Go code. ${NAME} stays.\n", file.Instructions)
	assert.Equal(t, registry.Guards{Steps: 30, Tokens: 200000, Cost: 0.5, Time: 10 * time.Minute}, file.Guards)
	require.Len(t, file.Tools, 2)
	var shell agentfile.Shell
	require.NoError(t, file.Tools[0].Decode(&shell))
	assert.Equal(t, agentfile.Shell{
		Dir: "work", Timeout: yamlfile.Duration(2 * time.Minute), MaxOutput: 64 << 10, Env: []agentfile.EnvPattern{"PATH", "GO*"},
	}, shell)
	assert.Equal(t, registry.Part{Name: "files", Settings: map[string]any{"root": ".", "read_only": true}}, file.Tools[1])
	require.Len(t, file.MCP, 2)
	assert.Equal(t, "fs", file.MCP[0].Name, "servers stay in the order of the file")
	assert.Equal(t, registry.Part{Name: "redact"}, file.Hooks[0])
	var limit agentfile.RateLimit
	require.NoError(t, file.Hooks[1].Decode(&limit))
	assert.Equal(t, agentfile.RateLimit{Tools: []agentfile.Pattern{"shell", "mcp__*"}, Calls: 10, Per: yamlfile.Duration(time.Minute)}, limit)
	assert.JSONEq(t, `{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`, string(file.Output.Schema))
	assert.Equal(t, "7", fmt.Sprint(file.Options["seed"]))
}

// The same file as JSON, tabs and surrogate pairs included.
func TestParseJSON(t *testing.T) {
	file, err := NewRegistry().Parse("fixer.json", []byte("{\n\t\"name\": \"\\ud83d\\ude00\",\n\t\"model\": \"gemini/g\",\n\t\"tools\": [\"shell\", {\"files\": {\"root\": \"x\"}}]\n}"))
	require.NoError(t, err)
	assert.Equal(t, "😀", file.Name)
	assert.Equal(t, "gemini/g", file.Model)
	assert.Equal(t, registry.Tools{{Name: "shell"}, {Name: "files", Settings: map[string]any{"root": "x"}}}, file.Tools)
}

// Each bad file stands with all that is said of it: the first line of each problem.
func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"an unknown key": {"instuctions: hi\n", []string{
			`f.yaml:1:1: unknown key "instuctions" (did you mean "instructions"?); known: `,
		}},
		"an unknown key far from all": {"zzzzzzz: hi\n", []string{`f.yaml:1:1: unknown key "zzzzzzz"; known: "agents", "api_key_env", "base_url"`}},
		"a secret":                    {"api_key: sk-1\n", []string{`secrets are never in an agent file`}},
		"a duplicate":                 {"name: a\nname: b\n", []string{`f.yaml:2:1: the key "name" is declared twice: the first is in line 1`}},
		"wrong types": {"name: [a]\nparallel: many\nguards: 7\ntools: shell\nmcp: 3\noptions: 3\n", []string{
			`1:7: expected text, got a list`,
			`2:11: expected a whole number above zero, such as 20, got "many"`,
			`3:9: expected keys with values, got "7": known are "cost", "steps", "time", "tokens"`,
			`4:8: expected a list of names, each of a tool, such as [a, b], got "shell"`,
			`5:6: expected keys with values, got "3"`,
			`6:10: expected keys with values, got "3"`,
		}},
		"a number for text":      {"name: 007\n", []string{`1:7: expected text, got 007: put it in quotes if it is text`}},
		"nothing for text":       {"name:\n", []string{`expected text, got nothing`}},
		"yes for a bool":         {"tools: [files: {read_only: yes}]\n", []string{`1:28: expected true or false, got "yes"`}},
		"an unknown tool":        {"tools: [shel]\n", []string{`1:9: unknown tool "shel" (did you mean "shell"?); known: "files", "shell"`}},
		"a tool twice":           {"tools: [shell, shell]\n", []string{`1:16: the tool "shell" is listed twice`}},
		"an unknown hook":        {"hooks:\n  - redcat\n", []string{`2:5: unknown hook "redcat" (did you mean "redact"?)`}},
		"two hooks in one":       {"hooks:\n  - redact:\n    audit: {file: a}\n", []string{`2:5: expected one hook with its settings below it`}},
		"a setting unknown":      {"hooks:\n  - audit: {fil: a}\n", []string{`2:12: the key "file" is missing`, `2:13: unknown key "fil" (did you mean "file"?)`}},
		"settings missing":       {"hooks: [rate-limit]\n", []string{`1:9: the hook "rate-limit" needs settings: calls`}},
		"an unknown vendor":      {"model: opnai/gpt\n", []string{`1:8: expected a model, such as anthropic/…, azure-responses/…, azure/…, gemini/…, openai-responses/…, openai/…, replay:…, vertex/…; unknown provider "opnai" (did you mean "openai"?)`}},
		"a model alone":          {"model: gpt-5\n", []string{`1:8: expected a model, such as anthropic/…, azure-responses/…, azure/…, gemini/…, openai-responses/…, openai/…, replay:…, vertex/…, got "gpt-5"`}},
		"an address":             {"base_url: localhost:80\n", []string{`1:11: expected an address`}},
		"a password":             {"base_url: http://u:p@h/\n", []string{`without a name and password`}},
		"a variable":             {"base_url: https://${HOST}/\n", []string{`${…} is not replaced in agent files`}},
		"durations":              {"guards: {time: 10}\nretry: {delay: -1s}\n", []string{`1:16: expected a time above zero with its unit, such as 90s or 10m, got "10"`, `2:16: expected a time above zero`}},
		"sizes":                  {"tools: [shell: {max_output: 3 PiB}]\n", []string{`1:29: expected a size above zero`}},
		"a huge size":            {"tools: [shell: {max_output: 99999999999GiB}]\n", []string{`expected a size above zero`}},
		"not a number":           {"guards: {cost: .nan}\ntemperature: -1\n", []string{`1:16: expected a number above zero`, `2:14: expected a number that is not negative`}},
		"zero and below":         {"guards: {steps: 0, tokens: -5}\n", []string{`1:17: expected a whole number above zero`, `1:28: expected a whole number above zero`}},
		"a bad expression":       {"hooks: [redact: {patterns: [{kind: a, matching: 'a('}]}]\n", []string{`1:49: expected a regular expression`}},
		"a bad glob":             {"hooks: [deny: {tools: ['[']}]\n", []string{`1:24: expected the name of a tool`}},
		"no way to a server":     {"mcp: {x: {}}\n", []string{`1:7: the server "x" has neither a command nor a url`}},
		"two ways":               {"mcp: {x: {command: [a], url: http://h/}}\n", []string{`has a command and a url`}},
		"a server's name":        {"mcp: {a__b: {url: http://h/}}\n", []string{`1:7: expected a name of letters, digits`}},
		"a value for a name":     {"mcp: {x: {command: [a], env: [TOKEN=abc]}}\n", []string{`expected the name of an environment variable`}},
		"no budget":              {"hooks: [budget]\n", []string{`1:9: a budget needs a limit`}},
		"half a condition":       {"hooks: [deny: {tools: [bash], matching: x}]\n", []string{`1:15: argument and matching go together`}},
		"a bad schema":           {"output: {schema: {type: object, properties: 3}}\n", []string{`1:18: expected a JSON Schema of an object`}},
		"an empty file":          {"# nothing\n", []string{`1:1: the file is empty`}},
		"a list":                 {"- a\n", []string{`1:1: expected keys with values, got a list`}},
		"not YAML":               {"name: a\n b: c\n", []string{`2:3: this is not YAML: mapping values are not allowed`}},
		"a tab":                  {"guards:\n\tsteps: 1\n", []string{`2:1: this is not YAML: found character that cannot start any token: indent with spaces, not with tabs`}},
		"bytes that are no text": {"name: \xff\n", []string{`this is not YAML`}},
		"two documents":          {"name: a\n---\nname: b\n", []string{`2:1: a second document begins here`}},
		"an alias":               {"name: &a x\ninstructions: *a\n", []string{`1:7: anchors are not supported: remove &a`, `2:15: aliases are not supported: write the value instead of *a`}},
		"a merge key":            {"guards: {<<: {steps: 1}}\n", []string{`1:10: merge keys are not supported`}},
		"a tag":                  {"name: !!binary aGk=\n", []string{`1:7: tags are not supported`}},
		"a key that is a list":   {"? [a]\n: b\n", []string{`1:3: a key must be a word`}},
		"a bomb":                 {bomb(), []string{"anchors are not supported"}},
		"a well":                 {"options: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n", []string{"nested more than 50 deep"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewRegistry().Parse("f.yaml", []byte(tc.file))
			wrong, ok := errors.AsType[*yamlfile.Error](err)
			require.True(t, ok, "got %v", err)
			if name != "a bomb" {
				require.Len(t, wrong.Problems, len(tc.want), "%v", err)
			}
			for i, want := range tc.want {
				if name == "a bomb" {
					assert.Contains(t, err.Error(), want)
					continue
				}
				first, _, _ := strings.Cut(wrong.Problems[i].String(), "\n")
				assert.Contains(t, first, want)
			}
		})
	}
}

// bomb returns a file that would be a billion words if aliases were followed.
func bomb() string {
	var b strings.Builder
	b.WriteString("name: x\nl0: &l0 [a, a, a, a, a, a, a, a, a, a]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i), 10), ", "))
	}
	return b.String()
}

func TestJSONMistakes(t *testing.T) {
	for file, want := range map[string]string{
		"{\n  \"name\": 3\n}":                "f.json:2:11: expected text, got 3",
		"{\"nme\": \"x\"}":                   "f.json:1:2: unknown key \"nme\" (did you mean \"name\"?)",
		"{\"name\": \"x\", \"name\": \"y\"}": "f.json:1:15: the key \"name\" is declared twice",
		"{\"name\": \"x\"":                   "this is not JSON: unexpected end of the file",
		"{\"name\": x}":                      "f.json:1:10: this is not JSON",
		"{} {}":                              "f.json:1:4: this is not JSON: unexpected text after the end of the object",
		"":                                   "f.json:1:1: the file is empty",
		strings.Repeat("[", 10000):           "nested more than 50 deep",
	} {
		_, err := NewRegistry().Parse("f.json", []byte(file))
		require.Error(t, err, file)
		assert.Contains(t, err.Error(), want, file)
	}
}

// The line that is wrong is shown, with a mark below what is meant.
func TestTheLineIsShown(t *testing.T) {
	_, err := NewRegistry().Parse("f.yaml", []byte("name: a\nguards:\n  steps: \"viele 日本\x1b[2J\"\n"))
	require.Error(t, err) // the escape is no YAML at all
	assert.NotContains(t, err.Error(), "\x1b")
	_, err = NewRegistry().Parse("f.yaml", []byte("name: a\nguards:\n  steps: viele\n"))
	require.Error(t, err)
	assert.Equal(t, `f.yaml:3:10: expected a whole number above zero or -1, such as 20, got "viele"
     3 |   steps: viele
       |          ^^^^^`, err.Error())
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	_, err := NewRegistry().Load(filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	big := filepath.Join(dir, "big.yaml")
	require.NoError(t, os.WriteFile(big, []byte("name: "+strings.Repeat("x", yamlfile.MaxBytes)), 0o600))
	_, err = NewRegistry().Load(big)
	require.ErrorContains(t, err, "larger than a megabyte")
	require.NoError(t, os.WriteFile(big, []byte(whole), 0o600))
	_, err = NewRegistry().Load(big)
	require.NoError(t, err)
}

// The agent files under examples can be read.
func TestExamples(t *testing.T) {
	found, err := filepath.Glob("../../../../../examples/agents/*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), 3)
	for _, path := range found {
		file, err := NewRegistry().Load(path)
		require.NoError(t, err)
		assert.NotEmpty(t, file.Model, path)
	}
}

// docs/agent-file.md names every key, tool and hook.
func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/agent-file.md")
	require.NoError(t, err)
	keys := []string{}
	for _, form := range []any{
		registry.Definition{}, registry.Guards{}, registry.Retry{}, registry.Price{}, registry.Output{}, registry.Server{},
		agentfile.Limits{}, agentfile.Secret{},
	} {
		for _, key := range yamlfile.Keys(reflect.TypeOf(form)) {
			keys = append(keys, key.Name)
		}
	}
	for name, maker := range NewRegistry().Tools {
		keys = append(append(keys, name), maker.Keys()...)
	}
	for name, maker := range NewRegistry().Hooks {
		keys = append(append(keys, name), maker.Keys()...)
	}
	for _, key := range keys {
		assert.Contains(t, string(page), "`"+key+"`", "docs/agent-file.md has no `%s`", key)
	}
}
