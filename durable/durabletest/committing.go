package durabletest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var committing = map[string]part{
	"entries come back in order": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		assert.Empty(t, readJournal(t, s, "r"))
		all := []durable.Entry{
			{Seq: 1, Kind: "reply", At: testTime(), Data: []byte(`{"a":1}`)},
			{Seq: 2, Kind: "call", Key: "c1", At: testTime().Add(hour), Data: nil},
			{Seq: 3, Kind: "", Key: "", At: testTime().Add(-hour), Data: []byte{}},
		}
		writeUpdate(t, s, l, durable.Update{}, all[0])
		writeUpdate(t, s, l, durable.Update{}, all[1:]...)
		writeUpdate(t, s, l, durable.Update{}, newEntries(4, 30)...)
		sameEntries(t, append(all, newEntries(4, 30)...), readJournal(t, s, "r"))
		assert.Equal(t, int64(30), getRun(t, s, "r").Entries)
	},
	"entries after a number": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{}, newEntries(1, 10)...)
		writeUpdate(t, s, beginRun(t, s, "other"), durable.Update{}, newEntries(1, 20)...)
		for after, want := range map[int64][]durable.Entry{
			0: newEntries(1, 10), 1: newEntries(2, 10), 9: newEntries(10, 10), 10: nil, 1000: nil,
		} {
			got := must(s.Entries(t.Context(), "r", after))(t)
			sameEntries(t, want, got)
		}
	},
	"a number that is not the next is refused": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{}, newEntries(1, 3)...)
		sendSignal(t, s, "r", durable.SignalContext, "text")
		for name, c := range map[string]struct {
			entries   []durable.Entry
			got, want int64
		}{
			"again":        {newEntries(3, 3), 3, 4},
			"first":        {newEntries(1, 1), 1, 4},
			"zero":         {newEntries(0, 0), 0, 4},
			"below zero":   {newEntries(-1, -1), -1, 4},
			"a gap":        {newEntries(5, 5), 5, 4},
			"a gap inside": {[]durable.Entry{newEntry(4), newEntry(6)}, 6, 5},
			"twice":        {[]durable.Entry{newEntry(4), newEntry(4)}, 4, 5},
			"backwards":    {[]durable.Entry{newEntry(4), newEntry(5), newEntry(4)}, 4, 6},
		} {
			changesNothing(t, s, func() {
				var wrong *durable.SeqError
				require.ErrorAs(t, s.Commit(t.Context(), l, durable.Commit{
					Entries: c.entries, Events: []durable.Event{newEvent("e")}, Update: waitUpdate(2, newWait("c")),
					Jobs: []durable.Job{newJob("child")}, HandledSignals: 1,
				}), &wrong, name)
				assert.Equal(t, &durable.SeqError{Run: "r", Got: c.got, Want: c.want}, wrong, name)
			})
		}
	},
	"an update is kept": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		before := getRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusWaiting, Reason: "because", Steps: 4}, newEntry(1))
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusWaiting, agent.StopReason("because"), 4, int64(1)}, []any{r.Status, r.Reason, r.Steps, r.Entries})
		assert.Equal(t, []any{"one", int64(1)}, []any{r.Owner, r.Epoch}, "a waiting run keeps its lease")
		assert.True(t, before.Created.Equal(r.Created), "created")
		assert.False(t, r.Updated.Before(before.Updated), "updated %v, before that %v", r.Updated, before.Updated)
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusRunning})
		r = getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusRunning, agent.StopReason(""), 0}, []any{r.Status, r.Reason, r.Steps})
	},
	"an empty status leaves things as they are": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusWaiting, Reason: "because", Steps: 4, Waits: []durable.Wait{newWait("c")}})
		writeUpdate(t, s, l, durable.Update{Reason: "other", Steps: 9, Blocked: true, Result: []byte("no")}, newEntry(1))
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.StatusWaiting, agent.StopReason("because"), 4, int64(1), false},
			[]any{r.Status, r.Reason, r.Steps, r.Entries, r.Blocked})
		assert.Len(t, readWaits(t, s, "r"), 1, "nil leaves the waits")
	},
	"a status that ends the run releases it": func(t *testing.T, s durable.Store) {
		for _, status := range endStatuses {
			id := agent.RunID(status)
			l := beginRun(t, s, id)
			writeUpdate(t, s, l, waitUpdate(1, newWait("c")), newEntry(1))
			writeUpdate(t, s, l, durable.Update{Status: status, Reason: "over", Steps: 2, Waits: []durable.Wait{newWait("d")}}, newEntry(2))
			r := getRun(t, s, id)
			assert.Equal(t, []any{status, agent.StopReason("over"), 2, int64(2), "", int64(1)},
				[]any{r.Status, r.Reason, r.Steps, r.Entries, r.Owner, r.Epoch})
			assert.True(t, r.Deadline.IsZero(), "deadline")
			assert.Empty(t, readWaits(t, s, id))
			stale(t, s, l)
		}
	},
	"a commit that adds nothing is no repetition": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		c := durable.Commit{Update: durable.Update{Status: durable.StatusRunning, Steps: 3}}
		writeCommit(t, s, l, c)
		writeCommit(t, s, l, c)
		releaseRun(t, s, l)
		refusesCommit(t, s, durable.ErrStale, l, c)
	},
	"an end may be repeated": func(t *testing.T, s durable.Store) {
		for name, c := range map[string]durable.Commit{
			"nothing else": {Update: endUpdate()},
			"entries":      {Update: endUpdate(), Entries: newEntries(1, 3)},
			"everything": {
				Update: durable.Update{Status: durable.StatusFailed, Result: []byte("result"), Blocked: true}, Entries: newEntries(1, 2),
				Events: []durable.Event{newEvent("e")}, Jobs: []durable.Job{newJob("follows")},
			},
		} {
			id := agent.RunID(name)
			l := beginRun(t, s, id)
			writeCommit(t, s, l, c)
			repeats(t, s, l, c)
			other, later := c, l
			other.Update.Steps++
			refusesCommit(t, s, durable.ErrStale, l, other, "another end: %s", name)
			other = c
			other.Events = append(slices.Clone(c.Events), newEvent("another"))
			refusesCommit(t, s, durable.ErrStale, l, other, "another event: %s", name)
			later.Epoch++
			refusesCommit(t, s, durable.ErrStale, later, c, "another lease: %s", name)
		}
	},
	"data is any bytes": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for i, data := range [][]byte{all, {0}, {0, 0, 0}, {0xff, 0xfe}, []byte("\x00text\x00"), []byte("it's")} {
			e := newEntry(int64(i + 1))
			e.Data = data
			writeUpdate(t, s, l, durable.Update{}, e)
			got := readJournal(t, s, "r")
			assert.Equal(t, data, got[i].Data)
		}
	},
	"data may be large": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		e := newEntry(1)
		e.Data = bytes.Repeat([]byte("grapnel\x00"), 1<<17)
		second := newEntry(2)
		second.Data = bytes.Repeat([]byte{0xff}, 1<<20)
		writeUpdate(t, s, l, durable.Update{}, e, second)
		sameEntries(t, []durable.Entry{e, second}, readJournal(t, s, "r"))
	},
	"many entries at once": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, durable.Update{}, newEntries(1, 5000)...)
		sameEntries(t, newEntries(1, 5000), readJournal(t, s, "r"))
	},
	"what was given may be changed afterwards": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		e, q, a := newEntry(1), newWait("c"), newAnswer("c")
		writeUpdate(t, s, l, waitUpdate(1, q), e)
		answerAll(t, s, "r", a)
		e.Data[0], q.Data[0], a.Data[0] = '!', '!', '!'
		got := readJournal(t, s, "r")
		assert.Equal(t, "data", string(got[0].Data))
		asked := readWaits(t, s, "r")
		assert.Equal(t, "may I?", string(asked[0].Data))
		assert.Equal(t, "yes", string(asked[0].Answer.Data))
		changesNothing(t, s, func() { got[0].Data[0], asked[0].Data[0], asked[0].Answer.Data[0] = '?', '?', '?' })
	},
	"a result is stored with an end only": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		for _, u := range []durable.Update{
			{Result: []byte("too early")},
			{Status: durable.StatusRunning, Result: []byte("too early")},
			{Status: durable.StatusWaiting, Result: []byte("too early")},
		} {
			writeUpdate(t, s, l, u)
			assert.Empty(t, readData(t, s.Result, "r"))
		}
		u := endUpdate()
		u.Result = []byte("result\x00\xff")
		writeUpdate(t, s, l, u)
		assert.Equal(t, "result\x00\xff", readData(t, s.Result, "r"))
		assert.Equal(t, "input of r", readData(t, s.Input, "r"))
		endRun(t, s, beginRun(t, s, "no result"))
		assert.Empty(t, readData(t, s.Result, "no result"))
	},
	"blocked is kept": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		for _, u := range []durable.Update{
			{Status: durable.StatusRunning, Blocked: true}, {Status: durable.StatusRunning}, {Status: durable.StatusFailed, Blocked: true},
		} {
			writeUpdate(t, s, l, u)
			assert.Equal(t, u.Blocked, getRun(t, s, "r").Blocked)
		}
	},
}
