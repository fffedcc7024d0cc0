package capability_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// The longest recorded runs, with compaction and without: what the model would have been
// shown, and that nothing is split. The table in docs/compaction.md has the first runs of each
// file; "make compaction" prints it.
func TestCompactionOfRecordedRuns(t *testing.T) {
	const shownRuns = 3 // of each file
	dir := parts.Recordings(t)
	table := "| recorded run | messages | calls of the model | tokens shown, without → with | largest prompt | compactions | read for summaries |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n"
	for _, file := range []struct {
		name   string
		tokens int64
		runs   int
	}{{"tau", 4000, 8}, {"shell", 2000, 8}} {
		for i, record := range longest(t, filepath.Join(dir, file.name+".jsonl.gz"), file.runs) {
			without := play(t, record, nil)
			with := play(t, record, &capability.UseCompaction{Tokens: file.tokens})
			assert.Equal(t, without.transcript, with.transcript, "%s: the transcript is whole", record.ID)
			assert.LessOrEqual(t, with.shown, without.shown, record.ID)
			assert.Equal(t, with.compactions > 0, with.shown < without.shown, "%s: where nothing can be gained, nothing is done", record.ID)
			if i >= shownRuns {
				continue
			}
			table += fmt.Sprintf("| %s | %d | %d | %d → %d (%d %%) | %d → %d | %d | %d |\n", shortID(record.ID), without.messages, without.calls,
				without.shown, with.shown, with.shown*100/without.shown, without.largest, with.largest, with.compactions, with.read)
		}
	}
	t.Log("\n" + table)
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "compaction.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), table, "docs/compaction.md has another table: put in the one above")
}

// shortID returns the end of an id, which may be long.
func shortID(id string) string {
	id = strings.ReplaceAll(id, "replay__marshmallow-code__", "")
	parts := strings.Split(id, "/")
	id = strings.Join(parts[max(0, len(parts)-2):], "/")
	return id[:min(len(id), 52)]
}

// longest returns the longest runs of a file, by their text.
func longest(t *testing.T, path string, n int) []*replay.Record {
	t.Helper()
	records, err := replay.Load(path)
	require.NoError(t, err)
	size := func(r *replay.Record) int {
		return lo.SumBy(r.Messages, func(m replay.Message) int { return len(m.Content.Text) + len(fmt.Sprint(m.ToolCalls)) })
	}
	slices.SortStableFunc(records, func(a, b *replay.Record) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), strings.Compare(a.ID, b.ID))
	})
	return records[:n]
}

// playedRun is the result of playing a recorded run.
type playedRun struct {
	transcript                   string
	messages, calls, compactions int
	shown, largest, read, split  int
}

// about returns an estimate of tokens: a token for four bytes, and four for a message.
func about(list []agent.Message) (tokens int) {
	for _, m := range list {
		bytes := len(m.Text())
		for _, c := range m.Calls() {
			bytes += len(c.Name) + len(c.Arguments)
		}
		tokens += 4 + bytes/4
	}
	return tokens
}

// play plays a recorded run, and records the messages that the model is shown.
func play(t *testing.T, record *replay.Record, use *capability.UseCompaction) (p playedRun) {
	t.Helper()
	session, err := replay.NewSession(record)
	require.NoError(t, err)
	rec := agenttest.Record()
	b := builder.New().WithDriver(replay.Driver{}).WithObserver(rec).With(
		capability.UseTools(replay.Tools(schemasOf(record)...)...), capability.UseCriteria(replay.GoOn),
	)
	if use != nil {
		use.Summarize = func(_ context.Context, _ agent.State, messages []agent.Message) (string, error) {
			p.read += about(messages)
			return extract(messages), nil
		}
		b = b.With(*use)
	}
	played, err := session.Play(t.Context(), b.Build().MustGet())
	require.NoError(t, err)
	require.Empty(t, played.Departures, record.ID)
	for _, e := range agenttest.Of[agent.InferenceStarted](rec) {
		var list []agent.Message
		for _, m := range e.State.Messages() {
			list = append(list, m)
		}
		p.split += splitIn(list)
		p.shown, p.largest = p.shown+about(list), max(p.largest, about(list))
		p.calls++
	}
	require.Zero(t, p.split, record.ID)
	p.compactions = len(agenttest.Of[capability.CompactionCompleted](rec))
	p.transcript, p.messages = agenttest.Transcript(played.State), played.State.MessageCount()
	return p
}

// splitIn counts calls without their answer and answers without their call.
func splitIn(list []agent.Message) (n int) {
	open := map[string]int{}
	for _, m := range list {
		if m.Role() == agent.RoleTool {
			open[m.CallID()]--
		}
		for _, c := range m.Calls() {
			open[c.ID]++
		}
	}
	for _, left := range open {
		n += max(left, -left)
	}
	return n
}

// extract returns a summary without a model, about as long as one of a model: the begin of
// each message, 3,000 bytes at most, the newest.
func extract(messages []agent.Message) string {
	var lines []string
	for _, m := range messages {
		text := strings.Join(strings.Fields(m.Text()), " ")
		for _, c := range m.Calls() {
			text += " " + c.Name + c.Arguments
		}
		lines = append(lines, string(m.Role())+": "+strings.ToValidUTF8(text[:min(len(text), 120)], ""))
	}
	all := strings.Join(lines, "\n")
	return strings.ToValidUTF8(all[max(0, len(all)-3000):], "")
}

// schemasOf returns tools for all names that a run calls, with whatever arguments: of some
// runs it was not written down what their tools were.
func schemasOf(record *replay.Record) (schemas []replay.ToolSchema) {
	seen := map[string]bool{}
	for _, c := range record.Calls() {
		if name := c.Function.Name; !seen[name] {
			seen[name] = true
			schemas = append(schemas, replay.ToolSchema{Name: name, Parameters: []byte(`{"type":"object"}`)})
		}
	}
	return schemas
}
