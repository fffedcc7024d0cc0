package toolexec

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

type recordedRun struct {
	ID       string `json:"id"`
	ToolsRef string `json:"tools_ref"`
	Messages []struct {
		ToolCalls []struct {
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
			Malformed bool `json:"x_malformed"`
		} `json:"tool_calls"`
	} `json:"messages"`
}

// What models really sent: what the recordings call malformed is refused as that and nothing else is, and about what
// fits the schemas another library agrees.
func TestRecordedArguments(t *testing.T) {
	calls, malformed, invalid, plain := 0, 0, 0, 0
	for call := range recordedCalls(t, parts.Recordings(t)) {
		calls++
		wrong, _ := errors.AsType[*agent.ArgumentsError](call.tool.schema.Validate(call.args))
		require.Equal(t, call.malformed, wrong != nil && wrong.Malformed, "%s: %s: %v", call.run, call.args, wrong)
		if call.malformed {
			malformed++
			continue
		}
		if testing.AllocsPerRun(1, func() { _ = strictjson.CheckObject(call.args) }) == 0 {
			plain++
		}
		var value any
		require.NoError(t, json.Unmarshal([]byte(call.args), &value))
		require.Equal(t, call.tool.other.Validate(value) != nil, wrong != nil, "%s: %s: %v", call.run, call.args, wrong)
		if wrong != nil {
			invalid++
		}
	}
	t.Logf("%d calls: %d malformed, %d invalid, %d read without allocation", calls, malformed, invalid, plain)
	assert.NotZero(t, malformed)
	assert.NotZero(t, invalid)
	assert.Greater(t, plain, calls*9/10, "the scanner misses what models commonly send")
}

type recordedCall struct {
	run, args string
	malformed bool
	tool      recordedTool
}

// recordedCalls returns the recorded runs' calls to tools with known schemas.
func recordedCalls(t *testing.T, folder string) iter.Seq[recordedCall] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	require.NoError(t, err)
	tools := map[string]map[string]recordedTool{"": {}}
	return func(yield func(recordedCall) bool) {
		for run := range recordedRuns(t, files) {
			if tools[run.ToolsRef] == nil {
				tools[run.ToolsRef] = recordedTools(t, folder, run.ToolsRef)
			}
			for _, message := range run.Messages {
				for _, call := range message.ToolCalls {
					tool, ok := tools[run.ToolsRef][call.Function.Name]
					if ok && !yield(recordedCall{run.ID, call.Function.Arguments, call.Malformed, tool}) {
						return
					}
				}
			}
		}
	}
}

// recordedTool is a schema twice over: ours, and the same read by another library.
type recordedTool struct {
	schema *Schema
	other  *jsonschema.Resolved
}

// recordedRuns reads files of runs, one run a line.
func recordedRuns(t *testing.T, files []string) iter.Seq[recordedRun] {
	t.Helper()
	return func(yield func(recordedRun) bool) {
		for _, path := range files {
			file, err := os.Open(path)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, file.Close()) })
			unzipped, err := gzip.NewReader(file)
			require.NoError(t, err)
			lines := json.NewDecoder(unzipped)
			for lines.More() {
				var run recordedRun
				require.NoError(t, lines.Decode(&run), path)
				if !yield(run) {
					return
				}
			}
		}
	}
}

// recordedTools compiles the tool schemas a run refers to, by tool name. The file is in the folder or in tools below it.
func recordedTools(t *testing.T, folder, ref string) map[string]recordedTool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, ref))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(folder, "tools", ref))
	}
	require.NoError(t, err)
	var list []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	require.NoError(t, json.Unmarshal(text, &list))
	tools := make(map[string]recordedTool)
	for _, tool := range list {
		var schema jsonschema.Schema
		require.NoError(t, json.Unmarshal(tool.Function.Parameters, &schema))
		other, err := schema.Resolve(nil)
		require.NoError(t, err)
		tools[tool.Function.Name] = recordedTool{schema: compiled(t, string(tool.Function.Parameters)), other: other}
	}
	return tools
}
