package replay_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Newcomers see the project's recordings first. Their tools exist, their arguments fit the schemas unless the run is
// about invalid ones, and every tool answer has a call.
func TestOurOwnRecordingsAreSound(t *testing.T) {
	for _, path := range []string{
		filepath.Join("..", "..", "examples", "quickstart", "session.jsonl"),
		filepath.Join("testdata", "sample.jsonl"),
	} {
		records, err := replay.Load(path)
		require.NoError(t, err)
		require.NotEmpty(t, records)
		for _, record := range records {
			require.NotEmpty(t, record.ToolsRef, record.ID)
			schemas := compileTools(t, filepath.Join(filepath.Dir(path), record.ToolsRef))
			asked := map[string]string{} // a later step may use an id again
			for i, message := range record.Messages {
				for _, call := range message.ToolCalls {
					checkCall(t, record, call, schemas)
					asked[call.ID] = call.Function.Name
				}
				if message.Role != replay.RoleTool {
					continue
				}
				require.Contains(t, asked, message.ToolCallID, "%s, message %d", record.ID, i)
				if message.Name != "" {
					assert.Equal(t, asked[message.ToolCallID], message.Name, "%s, message %d", record.ID, i)
				}
			}
		}
	}
}

func checkCall(t *testing.T, record *replay.Record, call replay.ToolCall, schemas map[string]*jsonschema.Schema) {
	t.Helper()
	schema, known := schemas[call.Function.Name]
	assert.Equal(t, record.Flagged("unknown_tool_called"), !known, "%s, call %s", record.ID, call.ID)
	err := strictjson.CheckObject(call.Function.Arguments)
	if record.Flagged("malformed_arguments") && err != nil {
		return
	}
	require.NoError(t, err, "%s, call %s", record.ID, call.ID)
	if known {
		arguments, err := jsonschema.UnmarshalJSON(strings.NewReader(call.Function.Arguments))
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(arguments), "%s, call %s", record.ID, call.ID)
	}
}

// compileTools returns the compiled parameters of the tools in a file, by tool.
func compileTools(t *testing.T, path string) map[string]*jsonschema.Schema {
	t.Helper()
	tools, err := replay.LoadTools(path)
	require.NoError(t, err)
	schemas := map[string]*jsonschema.Schema{}
	for _, tool := range tools {
		parameters, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.Parameters)))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource(tool.Name, parameters))
		schema, err := compiler.Compile(tool.Name)
		require.NoError(t, err, "tool %q in %s", tool.Name, path)
		schemas[tool.Name] = schema
	}
	return schemas
}

// No part of 11,712 recorded runs is lost or read as something else: written again, every run is the line that it
// was read from. With -short, every sixteenth is.
func TestRecordedRunsSurviveReading(t *testing.T) {
	t.Parallel()
	dir := parts.Recordings(t)
	for name, want := range map[string]int{
		"agentdojo-banking": 1494, "agentdojo-slack": 1148, "agentdojo-travel": 1647, "agentdojo-workspace": 2747,
		"agentdyn-shopping": 1881, "agentdyn-github": 1881, "own-cases": 77, "tau": 282, "shell": 555,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRoundTrip(t, filepath.Join(dir, name+".jsonl.gz"), want)
		})
	}
}

func checkRoundTrip(t *testing.T, path string, want int) {
	t.Helper()
	r, err := replay.Open(path)
	require.NoError(t, err)
	defer r.Close()
	lines := openLines(t, path)

	runs := 0
	for record, err := range r.Records() {
		require.NoError(t, err)
		require.True(t, lines.Scan(), "%s has a line for every run", path)
		if runs++; testing.Short() && runs%16 != 0 {
			continue
		}
		written, err := strictjson.Marshal(record)
		require.NoError(t, err)
		require.Equal(t, withoutNothing(t, lines.Text()), withoutNothing(t, written), record.ID)
	}
	assert.Equal(t, want, runs, path)
	assert.False(t, lines.Scan(), "%s has a run for every line", path)
}

func TestRecordedToolsAreSchemas(t *testing.T) {
	dir := filepath.Join(parts.Recordings(t), "tools")
	for name, want := range map[string]int{
		"agentdojo-banking": 11, "agentdojo-slack": 11, "agentdojo-travel": 28, "agentdojo-workspace": 24,
		"shell": 1, "tau-airline": 14, "tau-retail": 16,
	} {
		assert.Len(t, compileTools(t, filepath.Join(dir, name+".json")), want, name)
	}
	_, err := replay.LoadTools(filepath.Join(dir, "agentdojo-operator-facts.json"))
	assert.ErrorContains(t, err, "expected array, got object")
}

func TestCommandListsAreNoRecordings(t *testing.T) {
	_, err := replay.Load(filepath.Join(parts.Recordings(t), "shell-dangerous.jsonl"))
	assert.ErrorContains(t, err, `has no "messages"`)
}

// openLines cuts a packed file into lines with the standard library.
func openLines(t *testing.T, path string) *bufio.Scanner {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	return lines
}

// withoutNothing decodes one object and leaves out members that the package treats as absent: null members in the run,
// its attack and its messages, and empty ones in the run and its attack.
func withoutNothing(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&object))
	require.ErrorIs(t, dec.Decode(new(any)), io.EOF)
	messages, _ := object["messages"].([]any)
	for _, message := range messages {
		maps.DeleteFunc(message.(map[string]any), func(_ string, v any) bool { return v == nil })
	}
	empty := func(_ string, v any) bool {
		list, isList := v.([]any)
		return v == nil || v == "" || isList && len(list) == 0
	}
	if attack, ok := object["attack"].(map[string]any); ok {
		maps.DeleteFunc(attack, empty)
	}
	maps.DeleteFunc(object, empty)
	return object
}
