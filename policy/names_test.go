package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy"
)

// A policy may call its rules, definitions and variables what the library calls its own.
func TestLibraryRulesHaveTheirOwnNames(t *testing.T) {
	p, err := policy.Parse("ours.yaml", []byte(`policy: ours
version: "7"
include: [library:safe-shell@1, library:network-egress]
definitions:
  safe-shell-line: {match: {tool: deploy}, decision: deny}
hooks:
  PreToolUse:
    - {$ref: safe-shell-line, id: readable, reason: ours}
    - {$ref: library:safe-shell/safe-shell-line, id: wreck, decision: deny, when: 'args.command == "ours"', reason: also ours}
    - {match: {tool: nothing}, type: command, argv: [date]}
`), policy.Options{})
	require.NoError(t, err)
	names := lo.Map(p.Rules(), func(r policy.Rule, _ int) string { return r.Hook() })
	assert.Subset(t, names, []string{
		"ours/readable", "ours/wreck", "library:safe-shell/readable", "library:safe-shell/wreck", "library:git-safety/discard", "library:network-egress/url",
		"ours/PreToolUse-3", // counted among the rules of the file
	})
	assert.Equal(t, []string{"ours"}, p.Names())
	assert.Empty(t, p.Check())

	list, err := p.Hooks()
	require.NoError(t, err)
	set := hooks.NewSet(list...)
	fired := hookstest.FireSet(t, set, hookstest.ToolCall("bash", `{"command":"eval \"$X\""}`))
	assert.Equal(t, "library:safe-shell/readable", fired.Hook)
	assert.Equal(t, "ours/readable", hookstest.FireSet(t, set, hookstest.ToolCall("deploy", `{}`)).Hook)
	assert.Equal(t, "ours/wreck", hookstest.FireSet(t, set, hookstest.ToolCall("bash", `{"command":"ours"}`)).Hook)
	for _, h := range list {
		if h.Name() == "library:safe-shell/readable" {
			o := h.Origin()
			assert.Equal(t, "library:safe-shell 1 readable library:safe-shell", o.Policy+" "+o.Version+" "+o.Rule+" "+o.File)
			assert.Equal(t, p.Hash(), o.Hash)
		}
	}
}

func TestAPolicyMayHaveTheNameOfOneOfTheLibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(path, []byte("policy: safe-shell\nhooks: {PreToolUse: {id: readable, match: {tool: x}, decision: deny}}\n"), 0o600))
	p, err := policy.LoadFiles(path, "library:safe-shell", "library:safe-shell@1")
	require.NoError(t, err)
	assert.Equal(t, []string{"safe-shell", "library:safe-shell"}, p.Names())
	assert.Equal(t, "safe-shell/readable", p.Rules()[0].Hook())
}

// An included file of the user's goes before a policy of the library, in whichever order they stand.
func TestVariablesOfIncludedFilesGoBeforeTheLibrary(t *testing.T) {
	for _, include := range []string{"[hosts.yaml, library:network-egress]", "[library:network-egress, hosts.yaml]"} {
		p, err := policy.Parse("ours.yaml", []byte("policy: ours\ninclude: "+include+"\n"), policy.Options{Read: func(string) ([]byte, error) {
			return []byte("policy: hosts\nvariables: {hosts: [only.example]}\n"), nil
		}})
		require.NoError(t, err)
		list, err := p.Hooks()
		require.NoError(t, err)
		at := func(url string) hooks.Decision {
			return hookstest.FireSet(t, hooks.NewSet(list...), hookstest.ToolCall("fetch", `{"url":"`+url+`"}`)).Decision
		}
		assert.Equal(t, hooks.Pass, at("https://only.example/"), include)
		assert.Equal(t, hooks.Deny, at("https://localhost/"), include)
	}
}

func TestWrongReferencesToTheLibrary(t *testing.T) {
	for text, want := range map[string]string{
		"policy: ours\ninclude: [library:safe-shell@2]\n":                                                  `ours.yaml:2:11: include: read library:safe-shell@2: unknown version "2"; known: 1`,
		"policy: ours\ninclude: [library:save-shell@1]\n":                                                  `unknown policy (did you mean "safe-shell"?); known: assistant,`,
		"policy: ours\ninclude: library:safe-shell\nhooks: {PreToolUse: {id: x, $ref: safe-shell-line}}\n": `unknown definition "safe-shell-line" (did you mean "library:safe-shell/safe-shell-line"?)`,
	} {
		_, err := policy.Parse("ours.yaml", []byte(text), policy.Options{})
		require.ErrorContains(t, err, want)
	}
	_, err := policy.LoadFiles("library:secrets@x")
	require.ErrorContains(t, err, `load policies: read library:secrets@x: unknown version "x"; known: 1`)
	// Both names are the same text: it counts once.
	p, err := policy.Parse("ours.yaml", []byte("policy: ours\ninclude: [library:secrets, library:secrets@1, library:secrets.yaml]\n"), policy.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"ours.yaml", "library:secrets"}, p.Files())
}

func TestUnknownRule(t *testing.T) {
	rules := []policy.Rule{{Policy: "ours", ID: "inside"}, {Policy: "library:safe-shell", ID: "readable"}}
	for name, want := range map[string]string{
		"readable":            `unknown rule "readable" (did you mean "library:safe-shell/readable"?)`,
		"ours/readable":       `unknown rule "ours/readable" (did you mean "library:safe-shell/readable"?)`,
		"safe-shell/readable": `unknown rule "safe-shell/readable" (did you mean "library:safe-shell/readable"?)`,
		"insde":               `unknown rule "insde" (did you mean "inside"?); known: "inside", "library:safe-shell/readable"`,
	} {
		assert.Equal(t, want, policy.UnknownRule("rule", name, rules))
	}
	assert.True(t, policy.NamesRule("inside", "ours/inside"))
	assert.True(t, policy.NamesRule("ours/inside", "ours/inside"))
	assert.True(t, policy.NamesRule("library:safe-shell/readable", "library:safe-shell/readable"))
	assert.False(t, policy.NamesRule("readable", "library:safe-shell/readable"))
	assert.False(t, policy.NamesRule("side", "ours/inside"))
}

// Several policies may include the same of the library, each with variables of its own: all hold, and the names of hooks stay unique.
func TestPoliciesThatIncludeTheSameOfTheLibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ours.yaml")
	require.NoError(t, os.WriteFile(path, []byte("policy: ours\ninclude: library:network-egress\nvariables: {hosts: [a.example]}\n"), 0o600))
	p, err := policy.LoadFiles("library:network-egress", path)
	require.NoError(t, err)
	names := lo.Map(p.Rules(), func(r policy.Rule, _ int) string { return r.Hook() })
	assert.Len(t, lo.Uniq(names), len(names))
	assert.Subset(t, names, []string{"library:network-egress/url", "library:network-egress/url:ours"})
	list, err := p.Hooks()
	require.NoError(t, err)
	_, err = hooks.NewSet(list...).Compile("bash", "fetch")
	require.NoError(t, err)
	fired := hookstest.FireSet(t, hooks.NewSet(list...), hookstest.ToolCall("fetch", `{"url":"http://localhost"}`))
	assert.Equal(t, "library:network-egress/url:ours", fired.Hook, "allowed by the first")
}
