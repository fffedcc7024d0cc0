package replay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

func loadToolsText(t *testing.T, text string) ([]replay.ToolSchema, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	tools, err := replay.LoadTools(path)
	if err != nil {
		assert.ErrorContains(t, err, `load tools "`+path+`": `)
	}
	return tools, err
}

func TestParametersAreKeptAsWritten(t *testing.T) {
	tools, err := loadToolsText(t, `[
		{"type": "function", "function": {"name": "a", "description": "Do a.",
			"parameters": {"type":"object", "maximum" : 123456789012345678901.0}}, "strict": true},
		{"type": "function", "function": {"name": "b", "parameters": null}},
		{"type": "function", "function": {"name": "c"}}]`)
	require.NoError(t, err)
	assert.Equal(t, []replay.ToolSchema{
		{
			Name: "a", Description: "Do a.",
			Parameters: json.RawMessage(`{"type":"object", "maximum" : 123456789012345678901.0}`),
		},
		{Name: "b"},
		{Name: "c"},
	}, tools)
}

func TestToolsAreWrittenAsTheyAreRead(t *testing.T) {
	tools, err := replay.LoadTools(filepath.Join("testdata", "library-tools.json"))
	require.NoError(t, err)
	written, err := json.Marshal(tools)
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join("testdata", "library-tools.json"))
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(written))
}

func TestBadToolsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "the text is empty",
		`{}`:                                     "expected array, got object",
		`null`:                                   "expected a list of tools, got null",
		`[null]`:                                 `at /0: expected a tool of type "function", got ""`,
		`[{"type": "function", "function": {}}]`: "at /0: the tool has no name",
		`[{"type": "function", "function": {"name": "a"}}, {"type": "function"}]`:                            "at /1: the tool has no name",
		`[{"type": "function", "function": {"name": "a"}}, {"type": "web_search"}]`:                          `at /1: expected a tool of type "function", got "web_search"`,
		`[{"type": "function", "function": {"name": "a", "parameters": []}}]`:                                `at /0: parameters of tool "a": expected a JSON Schema object, got []`,
		`[{"type": "function", "function": {"name": 1}}]`:                                                    "at /0/function/name: expected string, got number",
		`[{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {"name": "a"}}]`: `tools 1 and 2 are both called "a"`,
		`[{"type": "function", "function": {"name": "a", "name": "b"}}]`:                                     `member "name" is given twice`,
	} {
		tools, err := loadToolsText(t, text)
		assert.Nil(t, tools, text)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := replay.LoadTools(filepath.Join(t.TempDir(), "missing.json"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "load tools: ")
}

// A recording may name its tools by a path from its own folder or from the folder tools below it.
func TestFindTools(t *testing.T) {
	text := []byte(`[{"type":"function","function":{"name":"pay"}}]`)
	dir := fstest.MapFS{"mine.json": {Data: text}, "tools/shared.json": {Data: text}, "tools/mine.json": {Data: []byte("not this one")}}
	for _, ref := range []string{"mine.json", "shared.json", "tools/shared.json"} {
		tools, err := replay.FindTools(dir, ref)
		require.NoError(t, err, ref)
		assert.Equal(t, "pay", tools[0].Name, ref)
	}
	_, err := replay.FindTools(dir, "missing.json")
	assert.ErrorContains(t, err, "load tools: open missing.json")
	_, err = replay.FindTools(dir, "../mine.json")
	assert.Error(t, err)
}
