package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/grapnel-go/grapnel/policy"
)

var update = flag.Bool("update", false, "write what is published")

// What is published is what the loader takes.
func TestTheSchemaIsPublished(t *testing.T) {
	path := filepath.Join("..", "docs", "policy.schema.json")
	if *update {
		require.NoError(t, os.WriteFile(path, policy.Schema(), 0o600))
	}
	published, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(policy.Schema()), string(published), "run go test ./policy -run Published -update")
}

// The URL of a schema names a release, and the manuals name the same one.
func TestTheSchemaHasAVersion(t *testing.T) {
	for page, id := range map[string]string{
		"policies.md": policy.SchemaID, "policy-testing.md": strings.ReplaceAll(policy.SchemaID, "policy.schema", "policy-test.schema"),
	} {
		assert.Regexp(t, `/v[0-9]+\.[0-9]+\.[0-9]+/docs/`, id)
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		require.NoError(t, err)
		assert.Contains(t, string(text), "# yaml-language-server: $schema="+id+"\n")
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(policy.SchemaID, text))
	compiled, err := c.Compile(policy.SchemaID)
	require.NoError(t, err)
	return compiled
}

// judged returns what the schema says of a file.
func judged(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var value any
	require.NoError(t, yaml.Unmarshal(text, &value))
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return s.Validate(instance)
}

// Policies that load are right by the schema.
func TestTheSchemaTakesWhatLoads(t *testing.T) {
	s := schema(t)
	files, err := filepath.Glob("testdata/policies/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = policy.LoadFiles(path)
		assert.NoError(t, err, path)
		assert.NoError(t, judged(t, s, text), path)
	}
}

// What an editor should mark.
func TestTheSchemaRefuses(t *testing.T) {
	s := schema(t)
	for name, text := range map[string]string{
		"an unknown key":               "policy: p\nverzion: 1",
		"no name":                      "hooks: {}",
		"a rule that does nothing":     "policy: p\nhooks: {PreToolUse: [{id: a}]}",
		"an unknown decision":          "policy: p\nhooks: {PreToolUse: [{id: a, decision: dney}]}",
		"a key of another decision":    "policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, set: {a: b}}]}",
		"a key of another action":      "policy: p\nhooks: {PreToolUse: [{type: command, url: b}]}",
		"an unknown key of a match":    "policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, match: {tol: a}}]}",
		"a waiver without an end":      "policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, waiver: {owner: a, reason: b}}]}",
		"not a time":                   "policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, timeout: soon}]}",
		"an unknown kind of a secret":  "policy: p\nhooks: {PostToolUse: [{id: a, decision: redact, secrets: [nope]}]}",
		"an unknown failure policy":    "policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, on_failure: maybe}]}",
		"an unknown key in a default":  "policy: p\ndefaults: {mod: shadow}",
		"a list where a point is due":  "policy: p\nhooks: []",
		"no list, no rule at a point":  "policy: p\nhooks: {PreToolUse: deny}",
		"an empty choice in a match":   "policy: p\nhooks: {PreToolUse: [{id: a, decision: deny, match: {any: []}}]}",
		"a definition that is no rule": "policy: p\ndefinitions: {a: 1}",
	} {
		t.Run(name, func(t *testing.T) {
			assert.Error(t, judged(t, s, []byte(text)))
			refused(t, text)
		})
	}
}
