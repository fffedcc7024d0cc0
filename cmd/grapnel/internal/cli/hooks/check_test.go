package hooks

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/evasion"
)

// Nothing is wrong only where nothing was found. A rule that can match no known tool is an error, one of which a part can
// match none is a warning.
func TestHooksCheckSaysWhatItFound(t *testing.T) {
	t.Parallel()
	policyOf := func(tools, more string) string {
		return "policy: p\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: [" + tools + "]}, decision: deny" + more + "}\n"
	}
	for name, tc := range map[string]struct {
		text  string
		flags checking
		want  string // in what is written
		code  int
	}{
		"fine":                      {policyOf("bash", ""), checking{tools: []string{"bash"}}, "p.yaml: nothing is wrong: p: 1 rule (", 0},
		"no tools are known":        {policyOf("fetch", ""), checking{}, "p.yaml: nothing is wrong: p: 1 rule (", 0},
		"a warning":                 {policyOf("bash, fetch", ""), checking{tools: []string{"bash"}}, "p.yaml: p: 1 rule, 1 warning (", 0},
		"a warning that counts":     {policyOf("bash, fetch", ""), checking{tools: []string{"bash"}, strict: true}, "p.yaml: p: 1 rule, 1 warning (", 1},
		"a note":                    {policyOf("bash", ", mode: shadow"), checking{tools: []string{"bash"}, strict: true}, "p.yaml: p: 1 rule, 1 note (", 0},
		"a rule for nothing":        {policyOf("bsah", ""), checking{tools: []string{"bash"}}, "p.yaml: p: 1 rule, 1 error (", 2},
		"two parts, for nothing":    {policyOf("bsah, fetch", ""), checking{tools: []string{"bash"}}, "p.yaml: p: 1 rule, 2 errors (", 2},
		"for nothing, but required": {"required: true\n" + policyOf("fetch", ""), checking{tools: []string{"bash"}}, "p.yaml: nothing is wrong: p: 1 rule", 0},
		"an expression as a name":   {"policy: p\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: 'a|b'}, decision: deny}\n", checking{}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "p.yaml")
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			var out bytes.Buffer
			tc.flags.kind = "policy"
			err := tc.flags.run(&out, []string{path})
			assert.Contains(t, out.String(), tc.want)
			if tc.want == "" || tc.code > 0 || tc.flags.strict {
				assert.NotContains(t, out.String(), "nothing is wrong")
			}
			code := 0
			if exit, ok := errors.AsType[*console.ExitError](err); ok {
				code = exit.Code
			} else if err != nil {
				require.ErrorAs(t, err, new(*console.UsageError))
				code = console.ExitUsage
			}
			assert.Equal(t, tc.code, code, "%v", err)
		})
	}
}

// With the tools' schemas, a condition on an argument that no call can have is found.
func TestHooksCheckReadsSchemas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tools, path := filepath.Join(dir, "tools.json"), filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(tools, []byte(`[{"type":"function","function":{"name":"pay","parameters":{"type":"object","properties":{"amount":{"type":"integer"}},"additionalProperties":false}}}]`), 0o600))
	for condition, want := range map[string]string{
		`args.amount == "1000"`: `no call of "pay" has an argument at "amount" that is a string`,
		`args.sum == 1000`:      `no call of "pay" has an argument at "sum"`,
		`args.amount == 1000`:   "nothing is wrong",
	} {
		require.NoError(t, os.WriteFile(path, []byte("policy: p\nhooks:\n  PreToolUse:\n    - {id: r, match: {tool: pay}, when: '"+condition+"', decision: deny, reason: no}\n"), 0o600))
		var out bytes.Buffer
		f := checking{kind: "policy", tools: []string{tools}}
		require.NoError(t, f.run(&out, []string{path}))
		assert.Contains(t, out.String(), want, condition)
	}
}

// What the manual says that the check finds is what it finds.
func TestTheManualIsChecked(t *testing.T) {
	t.Parallel()
	manual := filepath.Join("..", "..", "..", "..", "..", "docs", "policies.md")
	path := filepath.Join(t.TempDir(), "workspace.yaml")
	require.NoError(t, os.WriteFile(path, []byte(evasion.Block(t, manual, "policy: workspace")), 0o600))
	shown := evasion.Block(t, manual, "--tools bash,read_file")
	var out bytes.Buffer
	f := checking{kind: "policy", tools: []string{"bash", "read_file", "write_file", "edit_file"}}
	require.Error(t, f.run(&out, []string{path}))
	for _, want := range []string{
		`workspace.yaml:40:22: tool: "fetch" matches no tool: available: "bash", "read_file", "write_file", "edit_file"; the rule can match nothing`,
		"workspace.yaml: workspace: 5 rules, 3 errors (",
	} {
		assert.Contains(t, out.String(), want)
		assert.Contains(t, shown, want)
	}
}

// With --strict, an agent does not run with rules for what it does not have. Rules that are for any agent are left out.
func TestStrictRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"policy: p\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: bsah}, decision: deny}\n":                               `did you mean "bash"?`,
		"policy: p\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: bash, args: {comand: present}}, decision: deny}\n":      `no call of "bash" has an argument at "comand"`,
		"policy: p\nrequired: true\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: bsah}, decision: deny}\n":               "",
		"policy: p\ninclude: [library:assistant]\nhooks:\n  PreToolUse:\n    - {id: one, match: {tool: bash}, decision: deny}\n": "",
	} {
		path := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, strict := range []bool{true, false} {
			o := &agents.Options{Color: "auto", Policies: []string{path}, Tools: []string{"shell"}, Rules: agents.Rules{Strict: strict}}
			o.Flags.Model.Provider, o.Flags.Model.Name, o.Flags.BaseURL = "openai", "x", "http://127.0.0.1:1"
			file, err := o.Resolve()
			require.NoError(t, err)
			m, err := agents.Build(t.Context(), file, agents.Watchers{Rules: o.Rules})
			if strict && want != "" {
				assert.ErrorContains(t, err, want)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, want != "", len(m.Notes) > 1, "%v", m.Notes)
			require.NoError(t, m.Close())
		}
	}
}

// A variable in a URL or a header that a hook of a pipeline or a blueprint does not declare is an error at its place.
func TestHooksCheckFindsUndeclaredVariables(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const text = `hooks:
  on_error:
    - type: webhook
      url: "https://hooks.example.com/${HOOK}"
    - type: webhook
      url: "https://hooks.example.com/x"
      env: [TOKEN]
      headers:
        Authorization: "Bearer ${TOKEN}"
        X-Other: "${OTHER}"
`
	for kind, head := range map[string]string{"pipeline": "name: p\nstages: [{name: a, agent: a}]\n", "blueprint": "name: p\ntype: autonomous\n"} {
		path := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(path, []byte(head+text), 0o600))
		var out bytes.Buffer
		err := (&checking{kind: kind}).run(&out, []string{path})
		require.ErrorContains(t, err, "p.yaml:6:12: on_error, entry 1: url: HOOK is neither a variable nor a declared secret", kind)
		require.ErrorContains(t, err, "p.yaml:12:18: on_error, entry 2: headers.X-Other: OTHER is neither", kind)
		assert.NotContains(t, err.Error(), "TOKEN is neither", kind)
	}
}

// A rule for a stage matches nothing outside of pipelines, and a rule for another stage nothing in a pipeline without that stage.
func TestHooksCheckFindsStages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`policy: p
hooks:
  PreToolUse:
    - {id: one, match: {stage: build}, decision: deny}
    - {id: two, when: 'tool == "bash" && stage == "biuld"', decision: deny}
    - {id: three, match: {stage: '*'}, decision: ask}
    - {id: four, when: 'stage != "build"', decision: ask}
`), 0o600))
	check := func(f checking) string {
		var out bytes.Buffer
		f.kind = "policy"
		require.NoError(t, f.run(&out, []string{path}))
		return out.String()
	}
	out := check(checking{})
	assert.Contains(t, out, `p.yaml:4:8: stage: "build" matches no stage: the agent runs outside of pipelines, where the stage is empty; the rule can match nothing`)
	assert.Contains(t, out, `p.yaml:5:8: stage: "biuld" matches no stage`)
	assert.Contains(t, out, "2 warnings")
	out = check(checking{stages: []string{"build", "review"}})
	assert.Contains(t, out, `p.yaml:5:8: stage: "biuld" matches no stage: did you mean "build"?`)
	assert.Contains(t, out, "1 warning")
}

// Settings of Claude Code are recognised and checked for what does nothing.
func TestHooksCheckReadsClaudeSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"hooks":{"PreToolUse":[{"matcher":"bash","hooks":[{"type":"command","command":"true"}]}]}}`), 0o600))
	var out bytes.Buffer
	f := checking{kind: "policy"}
	require.NoError(t, f.run(&out, []string{path}))
	assert.Contains(t, out.String(), `settings.json:1:36: no tool of Claude Code has the exact name "bash": did you mean Bash?`)
	assert.Contains(t, out.String(), "hooks of Claude Code, 1 warning")
	f.strict, f.json = true, true
	require.Error(t, f.run(&out, []string{path}))
	assert.Contains(t, out.String(), `"code":"claude-hooks"`)
}
