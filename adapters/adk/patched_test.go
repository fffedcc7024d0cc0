package adkguard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/internal/patched"
)

// An agent that adk's authors wrote, with two of their tools: ten lines more, and NewAgent in the place of llmagent.New.
func TestAgentOfADK(t *testing.T) {
	t.Parallel()
	program := patched.Build(t, "google.golang.org/adk/v2/examples/tools/loadmemory", "testdata/loadmemory.patch", 11, 1)
	var mu sync.Mutex
	var read []string // by the model
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Contents []*genai.Content }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		part := genai.NewPartFromText("Done.")
		last := request.Contents[len(request.Contents)-1].Parts[0]
		switch {
		case last.FunctionResponse != nil:
			mu.Lock()
			defer mu.Unlock()
			read = append(read, fmt.Sprint(last.FunctionResponse.Response))
		default:
			part = genai.NewPartFromFunctionCall("load_memory", map[string]any{"query": strings.TrimSpace(last.Text)})
		}
		text, err := json.Marshal(genai.GenerateContentResponse{Candidates: []*genai.Candidate{
			{Content: genai.NewContentFromParts([]*genai.Part{part}, genai.RoleModel), FinishReason: genai.FinishReasonStop},
		}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", text)
	}))
	defer service.Close()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(`
policy: memory
hooks:
  PreToolUse:
    - {id: past, match: {tool: load_memory}, when: 'args.query != "trip"', decision: deny, reason: only trips}
`), 0o600))
	agent := exec.CommandContext(t.Context(), program)
	agent.Dir = dir
	agent.Env = append(os.Environ(), "GOOGLE_API_KEY=none", "GOOGLE_GEMINI_BASE_URL="+service.URL)
	agent.Stdin = strings.NewReader("trip\nsushi\n")
	output, _ := agent.CombinedOutput() // the program fails at the end of its input
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, read, 2, string(output))
	assert.Contains(t, read[0], "Tokyo")
	assert.Contains(t, read[1], "denied by memory/past: only trips")
	assert.NotContains(t, read[1], "Tsukiji", "the denied call did not run")
}
