package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// check returns the rules that the source of a one-file package breaks, in order.
func check(t *testing.T, source string) []string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\n"+source), 0o600))
	found, err := checkFolder(dir)
	require.NoError(t, err)
	var broken []string
	for _, f := range found {
		broken = append(broken, f.Rule)
	}
	return broken
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		broken []string
	}{
		"a good comment":              {"// Parse reads a line.\nfunc Parse() {}", nil},
		"a comment with an auxiliary": {"// Parse must not be called twice.\nfunc Parse() {}", nil},
		"no comment":                  {"func Parse() {}", nil},
		"a comment that says is":      {"// Parse is the line as read.\nfunc Parse() {}", []string{ruleComment}},
		"a comment without the name":  {"// Reads a line.\nfunc Parse() {}", []string{ruleComment}},
		"a comment with a noun":       {"// Parse line reader.\nfunc Parse() {}", []string{ruleComment}},
		"a word in a comment":         {"// nobody reads it\nvar x = 1", []string{ruleWord}},
		"a word in a message":         {"var x = \"disposition 7, which there is not\"", []string{ruleWord}},
		"a word in a name":            {"func askNobody() {}", nil},
		"a type may be what it is":    {"// Keeper is what records runs.\ntype Keeper struct{}", nil},
		"a genitive":                  {"// x holds the events of a run.\nvar x = 1", []string{rulePhrase}},
		"a possessive":                {"// x holds a run's events.\nvar x = 1", nil},
		"an example's output":         {"var x = 1\n\n// Output: the events of a run", nil},
		"case":                        {"type S struct{}\n\nfunc (S) Parked() bool { return true }\nfunc (S) parked() bool { return true }", []string{ruleCase}},
		"the same name on two types":  {"type S struct{}\ntype T struct{}\n\nfunc (S) Len() int { return 1 }\nfunc (T) Len() int { return 1 }", nil},
		"two of one word":             {"func room() {}\nfunc hall() {}", []string{ruleOneWord}},
		"one of one word":             {"func room() {}\nfunc aB() {}\nfunc aC() {}\nfunc aD() {}\nfunc aE() {}\nfunc aF() {}\nfunc aG() {}", nil},
		"a participle":                {"func (s) Settled() int { return 1 }\ntype s struct{}", []string{ruleParticiple}},
		"an irregular one":            {"func (s) took() {}\ntype s struct{}", []string{ruleParticiple}},
		"a question":                  {"func (s) Parked() bool { return true }\ntype s struct{}", nil},
		"a verb in -ed":               {"func (s) Need() int { return 1 }\ntype s struct{}", nil},
		"a participle in two":         {"func readSealed() {}", nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.broken, check(t, c.source)) })
	}
}

func TestSplitName(t *testing.T) {
	for name, words := range map[string]string{"parse": "parse", "parseURL": "parse URL", "URLOf": "URL Of", "snake_case": "snake case", "HTTPServer": "HTTP Server"} {
		assert.Equal(t, words, strings.Join(splitName(name), " "), name)
	}
}

func TestRunListsFindings(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a", "a.go")
	require.NoError(t, os.Mkdir(filepath.Dir(source), 0o700))
	require.NoError(t, os.WriteFile(source, []byte("package a\n\n// nobody\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.md"), []byte("Somebody reads it.\n"), 0o600))

	var out strings.Builder
	require.ErrorContains(t, run(&out, dir, nil), "2 findings")
	assert.Contains(t, out.String(), "a.go:3: word: \"nobody\"")
	assert.Contains(t, out.String(), "page.md:1: word: \"Somebody\"")

	require.ErrorContains(t, run(&out, dir, []string{"./a"}), "1 findings")
	require.NoError(t, run(&out, dir, []string{"./b"}))
}
