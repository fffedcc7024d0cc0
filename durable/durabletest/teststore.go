package durabletest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// part is a test of one sentence of the contract; it gets an empty store of its own.
type part func(t *testing.T, s durable.Store)

// TestStore tests a store against the contract of durable.Store. Open returns an empty store, once for each part of the
// contract, and TestStore closes it.
func TestStore(t *testing.T, open func(t *testing.T) durable.Store) {
	for _, group := range []struct {
		name  string
		parts map[string]part
	}{
		{"create", creating},
		{"claim", claiming},
		{"append", appending},
		{"list", listing},
		{"due", dueing},
		{"questions", asking},
		{"answer", answering},
		{"end", ending},
		{"switch", switching},
		{"at once", racing},
		{"failed run", failing},
	} {
		t.Run(group.name, func(t *testing.T) {
			for name, test := range group.parts {
				t.Run(name, func(t *testing.T) {
					s := open(t)
					t.Cleanup(func() { assert.NoError(t, s.Close(), "close the store") })
					test(t, s)
				})
			}
		})
	}
}

const (
	// hour is a lease longer than any test.
	hour = time.Hour
	// gone is a lease that has expired as soon as it is granted.
	gone = time.Nanosecond
	// unknownRun is the id of a run that does not exist.
	unknownRun agent.RunID = "unknown"
)

// testTime returns a time that every store can represent.
func testTime() time.Time { return time.Date(2026, 11, 21, 12, 5, 8, 123456000, time.UTC) }

// createRun creates a run that one owner holds for an hour.
func createRun(t *testing.T, s durable.Store, id agent.RunID) durable.Lease {
	t.Helper()
	return createAs(t, s, durable.Run{ID: id, Session: "s", Agent: "tester", Root: id}, "one", hour)
}

func createAs(t *testing.T, s durable.Store, r durable.Run, owner string, ttl time.Duration) durable.Lease {
	t.Helper()
	l, err := s.Create(t.Context(), r, owner, ttl)
	require.NoError(t, err, "create run %q", r.ID)
	return l
}

// getRun returns the record of a run, which must exist.
func getRun(t *testing.T, s durable.Store, id agent.RunID) durable.Run {
	t.Helper()
	r, err := s.Run(t.Context(), id)
	require.NoError(t, err, "look at run %q", id)
	return r
}

func claimRun(t *testing.T, s durable.Store, id agent.RunID, owner string, take durable.Take) durable.Lease {
	t.Helper()
	l, err := s.Claim(t.Context(), id, owner, hour, take)
	require.NoError(t, err, "claim run %q", id)
	return l
}

func writeUpdate(t *testing.T, s durable.Store, l durable.Lease, u durable.Update, entries ...durable.Entry) {
	t.Helper()
	require.NoError(t, s.Append(t.Context(), l, u, entries...), "append to run %q", l.Run)
}

func releaseRun(t *testing.T, s durable.Store, l durable.Lease) {
	t.Helper()
	require.NoError(t, s.Release(t.Context(), l), "release run %q", l.Run)
}

// parkRun creates a parked run that waits for answers and that no process holds.
func parkRun(t *testing.T, s durable.Store, id agent.RunID, questions ...durable.Question) {
	t.Helper()
	l := createRun(t, s, id)
	writeUpdate(t, s, l, parkUpdate(1, questions...))
	releaseRun(t, s, l)
}

func parkUpdate(steps int, questions ...durable.Question) durable.Update {
	return durable.Update{Status: agent.StatusParked, Steps: steps, Questions: questions}
}

// endUpdate returns an update that ends a run.
func endUpdate() durable.Update {
	return durable.Update{Status: agent.StatusDone, Reason: agent.StopCompleted, Steps: 3}
}

// newEntry returns a small entry with that number.
func newEntry(seq int64) durable.Entry {
	return durable.Entry{Seq: seq, Kind: "note", At: testTime(), Data: []byte("data")}
}

// newEntries returns small entries with those numbers.
func newEntries(from, to int64) []durable.Entry {
	var all []durable.Entry
	for seq := from; seq <= to; seq++ {
		all = append(all, newEntry(seq))
	}
	return all
}

// readJournal returns the whole journal of a run.
func readJournal(t *testing.T, s durable.Store, id agent.RunID) []durable.Entry {
	t.Helper()
	all, err := s.Entries(t.Context(), id, 0)
	require.NoError(t, err, "read the journal of run %q", id)
	return all
}

// newQuestion returns a question about a call, with the hash that newAnswer uses.
func newQuestion(call string) durable.Question {
	return durable.Question{Call: call, Hash: "hash of " + call, Tool: "bash", Asked: testTime(), Data: []byte("may I?")}
}

func newAnswer(call string) durable.Answer {
	return durable.Answer{Call: call, Hash: "hash of " + call, Data: []byte("yes")}
}

func readQuestions(t *testing.T, s durable.Store, id agent.RunID) []durable.Question {
	t.Helper()
	all, err := s.Questions(t.Context(), id)
	require.NoError(t, err, "read the questions of run %q", id)
	return all
}

func runIDs(runs []durable.Run) []agent.RunID {
	all := []agent.RunID{}
	for _, r := range runs {
		all = append(all, r.ID)
	}
	return all
}

// newCancelledContext returns a cancelled context.
func newCancelledContext(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// sameEntries compares journals: a time is equal in any zone, no data is empty data.
func sameEntries(t *testing.T, want, got []durable.Entry) {
	t.Helper()
	require.Len(t, got, len(want), "entries")
	for i, w := range want {
		g := got[i]
		assert.Equal(t, []any{w.Seq, w.Kind, w.Key}, []any{g.Seq, g.Kind, g.Key}, "entry %d", i)
		assert.True(t, w.At.Equal(g.At), "entry %d: at %v, want %v", i, g.At, w.At)
		assert.Equal(t, string(w.Data), string(g.Data), "data of entry %d", i)
	}
}
