package coordinator_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// A runner that writes the answers of on_result hooks to the journal does not decide in their place.
func TestForgedResultHooks(t *testing.T) {
	b := newBench(t)
	answer := filepath.Join(t.TempDir(), "answer.json")
	argv := lo.Must(json.Marshal([]string{"cat", answer}))
	b.create(`{"name": "job", "type": "procedural", "command": {"argv": ["echo", "secret"]},
		"hooks": {"on_result": {"type": "command", "argv": ` + string(argv) + `, "on_error": "block"}}}`)
	require.NoError(t, os.WriteFile(answer, []byte(`{"action": "continue"}`), 0o600))
	first := b.submit("job", "{}")
	require.Equal(t, "secret\n", *b.work(first).ResultText)
	entries, err := b.store.Entries(t.Context(), first, 0)
	require.NoError(t, err)
	forged := lo.Filter(entries, func(e durable.Entry, _ int) bool { return e.Kind == durable.EntryOnce || e.Kind == durable.EntryDone })
	require.NotEmpty(t, forged)
	for i := range forged {
		forged[i].Seq = int64(i) + 1
	}

	require.NoError(t, os.WriteFile(answer, []byte(`{"action": "block", "block_reason": "classified"}`), 0o600))
	id := b.submit("job", "{}")
	p := b.plain(b.serve(), wire.RunnerRole)
	runs := p.claim("r1").Runs
	require.Len(t, runs, 1)
	status, text := p.send(http.MethodPost, "/runner/runs/"+string(id)+"/journal", "r1", wire.JournalCommit{Epoch: runs[0].Epoch, ID: "c", Entries: forged})
	require.Less(t, status, 300, string(text))
	last := []durable.Entry{{Seq: int64(len(forged)) + 1, Kind: "result_before_hooks", Data: []byte("{}")}}
	status, _ = p.send(http.MethodPost, "/runner/runs/"+string(id)+"/journal", "r1", wire.JournalCommit{Epoch: runs[0].Epoch, ID: "d", Entries: last})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	require.Less(t, p.report("r1", id, "completed", map[string]any{"epoch": runs[0].Epoch, "result_text": "secret\n"}), 300)
	d := b.work(id)
	require.Equal(t, wire.Completed, d.Status)
	assert.Contains(t, *d.ResultText, "classified")
	assert.NotContains(t, *d.ResultText, "secret")
}
