package exampletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	const printed = "one\ntwo\n\nthree\nfour\n"
	for name, tc := range map[string]struct {
		shown string
		same  bool
	}{
		"all of it":              {printed, true},
		"a gap":                  {"one\n…\nfour\n", true},
		"a gap of one line":      {"one\n…\n\nthree\nfour\n", true},
		"a gap of no line":       {"one\n…\ntwo\n\nthree\nfour\n", true},
		"a gap at the beginning": {"…\nthree\nfour\n", true},
		"a gap at the end":       {"one\ntwo\n…\n", true},
		"several gaps":           {"…\ntwo\n…\nfour\n", true},
		"nothing but a gap":      {"…\n", true},
		"another line":           {"one\ntwo\n\nthree\nfive\n", false},
		"half a line":            {"…\nfou\n", false},
		"the end of a line":      {"…\nour\n", false},
		"the order":              {"…\nfour\n…\ntwo\n…\n", false},
		"no end":                 {"one\ntwo\n", false},
		"no end after a gap":     {"…\ntwo\n", false},
		"no beginning":           {"two\n\nthree\nfour\n", false},
		"nothing":                {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.same, compareOutput(tc.shown, printed) == nil, "%v", compareOutput(tc.shown, printed))
		})
	}
	assert.NoError(t, compareOutput("one\n", "one\n\n"), "empty lines at the end are not shown")
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	const text = "# x\n\n```sh\ngo run .\n```\n\n```text\nhello\n```\n\n```go\n\tx := 1\n```\n\n```text\nother\n```\n"
	shown, err := outputOf(text)
	require.NoError(t, err)
	assert.Equal(t, "hello\n", shown)
	assert.Equal(t, []string{"x := 1"}, quotedIn(text))
	_, err = outputOf("# x\n")
	require.Error(t, err)
	code, err := codeIn(".")
	require.NoError(t, err)
	assert.True(t, code["package exampletest"])
}
