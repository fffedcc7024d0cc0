package anthropic_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// FuzzReply: whatever a service answers, whole or streamed, comes to an error with a
// kind, or to a step whose pieces are the whole, and which can be sent back.
func FuzzReply(f *testing.F) {
	files, err := filepath.Glob("testdata/replies/*.http")
	require.NoError(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		_, body, _ := strings.Cut(string(raw), "\n\n")
		f.Add(body)
	}
	f.Add("event: message_start\ndata: {}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	f.Add(`{"type":"message","content":[{"type":"tool_use","input":"\ud800"},{"type":"thinking"},null,7]}`)
	f.Fuzz(func(t *testing.T, body string) {
		d := offline(t, body)
		var text strings.Builder
		arguments := map[int]string{}
		step, err := d.Stream(t.Context(), hello, func(d agent.Delta) {
			text.WriteString(d.Text)
			arguments[d.CallIndex] += d.Call.Arguments
		}).Get()
		if err != nil {
			assert.NotEqual(t, agent.KindUnknown, agent.KindOf(err), "%v", err)
			return
		}
		assert.Equal(t, step.Message.Text(), text.String())
		for i, c := range step.Message.Calls() {
			assert.Equal(t, c.Arguments, arguments[i])
		}
		s := hello.With(step.Message)
		for _, c := range step.Message.Calls() {
			s = s.With(answer(c, "", agent.Text("ok")))
		}
		var request bytes.Buffer
		require.NoError(t, recorded(t, good, &request).Next(t.Context(), s.With(agent.UserText("go on"))).Error())
		assert.True(t, json.Valid(request.Bytes()), "%s", &request)
	})
}
