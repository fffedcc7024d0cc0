package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// check returns the rules that a source file of one package breaks, in order.
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
		"case":                        {"type S struct{}\n\nfunc (S) Parked() bool { return true }\nfunc (S) parked() bool { return true }", []string{ruleCase}},
		"the same name on two types":  {"type S struct{}\ntype T struct{}\n\nfunc (S) Len() int { return 1 }\nfunc (T) Len() int { return 1 }", nil},
		"one word":                    {"func room() {}", []string{ruleOneWord}},
		"one word of many":            {"func room() {}\nfunc aB() {}\nfunc aC() {}\nfunc aD() {}\nfunc aE() {}\nfunc aF() {}\nfunc aG() {}", nil},
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

func TestAllowedMayOnlyShrink(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "allowed.txt")
	source := filepath.Join(dir, "a", "a.go")
	require.NoError(t, os.Mkdir(filepath.Dir(source), 0o700))
	write := func(file, text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	compare := func() (string, error) {
		var out strings.Builder
		err := run(&out, dir, list, false, nil)
		return out.String(), err
	}
	write(list, "a word 1\n")
	write(source, "package a\n\n// nobody\n")
	_, err := compare()
	require.NoError(t, err)

	write(source, "package a\n\n// nobody\n// somebody\n")
	said, err := compare()
	require.Error(t, err)
	assert.Contains(t, said, "a: word: 2 findings, 1 allowed")
	require.NoError(t, run(&strings.Builder{}, dir, list, true, nil), "-update")
	_, err = compare()
	require.Error(t, err, "-update does not raise a number")

	write(source, "package a\n")
	said, err = compare()
	require.Error(t, err, "a number that is too high must be lowered")
	assert.Contains(t, said, "scripts/prose -update")
	require.NoError(t, run(&strings.Builder{}, dir, list, true, nil))
	_, err = compare()
	require.NoError(t, err)
}

func TestAllowedNamesTheBrokenLine(t *testing.T) {
	list := filepath.Join(t.TempDir(), "allowed.txt")
	require.NoError(t, os.WriteFile(list, []byte("# comment\nagent word many\n"), 0o600))
	_, err := readAllowed(list)
	require.ErrorContains(t, err, "allowed.txt:2")
}
