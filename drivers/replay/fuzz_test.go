package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// Whatever the bytes are: every turn of the loop has a run or an error, errors name later and later lines, the
// loop ends, and what was read is what another JSON library finds in the same line.
func FuzzReader(f *testing.F) {
	sample, err := os.ReadFile(filepath.Join("testdata", "sample.jsonl"))
	require.NoError(f, err)
	f.Add(sample)
	for line := range bytes.Lines(sample) {
		f.Add(line)
	}
	f.Add(pack(f, sample)[:200])
	f.Add(pack(f, []byte(`{"id": "a", "messages": []}`)))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte("{\n\n{}\r\n[]"))

	f.Fuzz(func(t *testing.T, data []byte) {
		r := replay.NewReader(bytes.NewReader(data))
		r.MaxLine = 1 << 16
		packed := bytes.HasPrefix(data, []byte("\x1f\x8b"))
		lines := [][]byte{}
		if !packed {
			lines = bytes.Split(data, []byte("\n"))
		}
		last := 0
		for record, err := range r.Records() {
			if err != nil {
				require.Nil(t, record)
				bad, ok := errors.AsType[*replay.LineError](err)
				require.True(t, ok, "%T", err)
				require.Greater(t, bad.Line+1, last, "lines come in order")
				last = bad.Line + 1
				continue
			}
			require.NotNil(t, record)
			if packed {
				continue
			}
			lines = findRun(t, lines, record)
		}
	})
}

// findRun looks, with encoding/json, for a line that says what the record says, and returns the lines after it.
func findRun(t *testing.T, lines [][]byte, record *replay.Record) [][]byte {
	t.Helper()
	var got []string
	for _, call := range record.Calls() {
		got = append(got, call.Function.Arguments)
	}
	for i, line := range lines {
		var other map[string]any // unlike a struct, a map does not fold the case of names
		if json.Unmarshal(line, &other) != nil || other["id"] != record.ID {
			continue
		}
		messages, ok := other["messages"].([]any)
		if ok && len(messages) == len(record.Messages) && slices.Equal(argumentsIn(messages), got) {
			return lines[i+1:]
		}
	}
	require.Fail(t, "a run that stands in no line", record.ID)
	return nil
}

func argumentsIn(messages []any) []string {
	var texts []string
	for _, message := range messages {
		message, _ := message.(map[string]any)
		calls, _ := message["tool_calls"].([]any)
		for _, call := range calls {
			call, _ := call.(map[string]any)
			function, _ := call["function"].(map[string]any)
			text, _ := function["arguments"].(string)
			texts = append(texts, text)
		}
	}
	return texts
}

// A file of tools is read or refused, and what was read can be written and read again.
func FuzzLoadTools(f *testing.F) {
	library, err := os.ReadFile(filepath.Join("testdata", "library-tools.json"))
	require.NoError(f, err)
	f.Add(library)
	f.Add([]byte(`[{"type": "function", "function": {"name": "a", "parameters": {"a": [1e9, null]}}}]`))
	f.Add([]byte(`[null]`))

	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "tools.json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		tools, err := replay.LoadTools(path)
		if err != nil {
			require.Nil(t, tools)
			return
		}
		written, err := json.Marshal(tools)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, written, 0o600))
		again, err := replay.LoadTools(path)
		require.NoError(t, err)
		require.Len(t, again, len(tools))
		for i, tool := range tools {
			assert.Equal(t, tool.Name, again[i].Name)
			assert.Equal(t, tool.Description, again[i].Description)
			if tool.Parameters == nil {
				assert.Nil(t, again[i].Parameters)
				continue
			}
			assert.JSONEq(t, string(tool.Parameters), string(again[i].Parameters))
		}
	})
}
