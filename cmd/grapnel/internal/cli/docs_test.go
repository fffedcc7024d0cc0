package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/blueprints"
	pipelinecmd "github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/pipeline"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/registry"
)

// fragment is a form of YAML that stands in documents and is a part of a file: how it begins, and what makes a file of it.
type fragment struct {
	begins *regexp.Regexp
	file   func(text string) string
}

var fragments = []fragment{
	{regexp.MustCompile(`^- (\{)?id: `), func(text string) string { // rules
		return "policy: p\nhooks:\n  PreToolUse:\n" + indented(text)
	}},
	{regexp.MustCompile(`^type: `), func(text string) string { // an action
		return "policy: p\nhooks:\n  StepEnd:\n" + indented(text)
	}},
	{regexp.MustCompile(`^waiver: `), func(text string) string { // a key of a rule
		return "policy: p\nhooks:\n  PreToolUse:\n    id: a\n    decision: deny\n" + indented(text)
	}},
	{regexp.MustCompile(`^- name: `), func(text string) string { return "cases:\n" + indented(text) }}, // cases of a test
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// load reads a block of YAML by what it is.
func load(dir, text string) error {
	for _, f := range fragments {
		if f.begins.MatchString(text) {
			text = f.file(text)
			break
		}
	}
	has := func(begin string) bool { return strings.Contains("\n"+text, "\n"+begin) }
	switch {
	case has("type: autonomous"), has("type: procedural"), has("type: pipeline"):
		return loadBlueprint(dir, text)
	case has("policy: "):
		_, err := policy.Parse("block.yaml", []byte(text), policy.Options{})
		return err
	case has("commands:"):
		_, err := registry.ParseCommands("block.yaml", []byte(text))
		return err
	case has("cases:"):
		return loadCases(dir, text)
	case has("stages:"):
		path := filepath.Join(dir, "pipeline.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		_, err := pipeline.Load(path, pipeline.LoadOptions{Host: pipelinecmd.Host()})
		return err
	case has("hooks:\n  on_run_"):
		return loadRules(policy.Blueprints, text)
	case has("hooks:\n  on_"):
		return loadRules(policy.Pipelines, text)
	}
	_, err := agents.NewRegistry().Parse("block.yaml", []byte(text))
	return err
}

// loadRules loads the rules in a kind of file.
func loadRules(kind policy.Kind, text string) error {
	read := func(string) ([]byte, error) { return []byte(text), nil }
	_, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{"block.yaml"}, Kind: kind, Read: read}}, policy.Options{})
	return err
}

// loadBlueprint reads a blueprint with the files that those in documents name.
func loadBlueprint(dir, text string) error {
	for _, name := range []string{"blueprint.yaml", "nightly/pipeline.yaml", "nightly/agents/writer.yaml", "nightly/check.sh"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	b, err := blueprints.Read(filepath.Join(dir, "blueprint.yaml"))
	if err != nil {
		return err
	}
	_, err = coordinator.ParseBlueprint(b.Text)
	return errors.Join(b.File.Err(), err)
}

func loadCases(dir, text string) error {
	for name, text := range map[string]string{"block.test.yaml": text, "block.yaml": "policy: p\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	_, err := policytest.Open(filepath.Join(dir, "block.test.yaml"))
	return err
}

var yamlBlock = regexp.MustCompile("(?ms)^[ \t]*```ya?ml[^\n]*\n(.*?)^[ \t]*```")

// Every block of YAML in a Markdown file loads: as the policy, the pipeline, the agent file or the file of cases that it is,
// or, for a part of one, inside of it.
func TestYAMLInDocsLoads(t *testing.T) {
	blocks := map[string]int{} // by page
	root := filepath.Join("..", "..", "..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		for _, at := range yamlBlock.FindAllSubmatchIndex(text, -1) {
			blocks[page]++
			block := strings.TrimSpace(string(text[at[2]:at[3]]))
			line := 1 + strings.Count(string(text[:at[2]]), "\n")
			assert.NoError(t, load(t.TempDir(), block), "%s:%d: mend the block, or say in fragments what it is a part of:\n%s", page, line, block)
		}
		return nil
	}))
	for _, page := range []string{
		"README.md", "docs/actions.md", "docs/agent-file.md", "docs/backtesting.md", "docs/policies.md", "docs/policy-library.md", "docs/policy-testing.md",
	} {
		assert.Contains(t, lo.Keys(blocks), page)
	}
}

// What does not load is found in each kind of block.
func TestBrokenYAMLInDocs(t *testing.T) {
	for _, text := range []string{
		"policy: p\nhooks:\n  PreTool: {id: a, decision: deny}",
		"hooks:\n  on_start: {type: shell, command: 'true'}",
		"hooks:\n  on_run_begin: {type: shell, command: 'true'}",
		"- {id: a, decision: perhaps}",
		"- id: a\n  desision: deny",
		"type: htp\nurl: https://example.com",
		"waiver: {owner: ann, expires: never}",
		"cases:\n  - {name: a, event: {tool: b}, expects: pass}",
		"- {name: a, event: {tool: b}, expect: perhaps}",
		"- name: a\n  event: {tool: b}\n  expect: perhaps",
		"name: a\ntools: [shel]",
		"something: else",
		"commands: {report: {argw: [report]}}",
		"name: a\ntype: procedural\ncomand: {argv: [x]}",
		"name: a\ntype: pipeline\npipeline: {files: [other.yaml]}",
		"a: [",
	} {
		t.Run(fmt.Sprintf("%.20q", text), func(t *testing.T) { assert.Error(t, load(t.TempDir(), text)) })
	}
}
