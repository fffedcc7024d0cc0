package durabletest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var appending = map[string]part{
	"entries come back in order": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		assert.Empty(t, journal(t, s, "r"))
		all := []durable.Entry{
			{Seq: 1, Kind: "reply", At: moment(), Data: []byte(`{"a":1}`)},
			{Seq: 2, Kind: "call", Key: "c1", At: moment().Add(hour), Data: nil},
			{Seq: 3, Kind: "", Key: "", At: moment().Add(-hour), Data: []byte{}},
		}
		write(t, s, l, durable.Update{}, all[0])
		write(t, s, l, durable.Update{}, all[1:]...)
		write(t, s, l, durable.Update{}, entries(4, 30)...)
		sameEntries(t, append(all, entries(4, 30)...), journal(t, s, "r"))
		assert.Equal(t, int64(30), run(t, s, "r").Entries)
	},
	"entries behind a number": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, durable.Update{}, entries(1, 10)...)
		write(t, s, create(t, s, "other"), durable.Update{}, entries(1, 20)...)
		for after, want := range map[int64][]durable.Entry{
			0: entries(1, 10), 1: entries(2, 10), 9: entries(10, 10), 10: nil, 1000: nil,
		} {
			got, err := s.Entries(t.Context(), "r", after)
			require.NoError(t, err)
			sameEntries(t, want, got)
		}
	},
	"a number that is not the next is refused": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, durable.Update{}, entries(1, 3)...)
		for name, c := range map[string]struct {
			entries   []durable.Entry
			got, want int64
		}{
			"again":        {entries(3, 3), 3, 4},
			"first":        {entries(1, 1), 1, 4},
			"zero":         {entries(0, 0), 0, 4},
			"below zero":   {entries(-1, -1), -1, 4},
			"a gap":        {entries(5, 5), 5, 4},
			"a gap inside": {[]durable.Entry{entry(4), entry(6)}, 6, 5},
			"twice":        {[]durable.Entry{entry(4), entry(4)}, 4, 5},
			"backwards":    {[]durable.Entry{entry(4), entry(5), entry(4)}, 4, 6},
		} {
			err := s.Append(t.Context(), l, parked(2, question("c")), c.entries...)
			var wrong *durable.SeqError
			require.ErrorAs(t, err, &wrong, name)
			assert.Equal(t, &durable.SeqError{Run: "r", Got: c.got, Want: c.want}, wrong, name)
		}
		r := run(t, s, "r")
		assert.Equal(t, []any{agent.StatusRunning, 0, int64(3)}, []any{r.Status, r.Steps, r.Entries}, "nothing of it was done")
		sameEntries(t, entries(1, 3), journal(t, s, "r"))
		assert.Empty(t, questions(t, s, "r"))
	},
	"an update is kept": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		before := run(t, s, "r")
		write(t, s, l, durable.Update{Status: agent.StatusParked, Reason: "because", Steps: 4}, entry(1))
		r := run(t, s, "r")
		assert.Equal(t, []any{agent.StatusParked, agent.StopReason("because"), 4, int64(1)}, []any{r.Status, r.Reason, r.Steps, r.Entries})
		assert.Equal(t, []any{"one", int64(1)}, []any{r.Owner, r.Epoch}, "who parks a run holds it still")
		assert.True(t, before.Created.Equal(r.Created), "created")
		assert.False(t, r.Updated.Before(before.Updated), "updated %v, before that %v", r.Updated, before.Updated)
		write(t, s, l, durable.Update{Status: agent.StatusRunning})
		r = run(t, s, "r")
		assert.Equal(t, []any{agent.StatusRunning, agent.StopReason(""), 0}, []any{r.Status, r.Reason, r.Steps})
	},
	"an empty status leaves things as they are": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, durable.Update{Status: agent.StatusParked, Reason: "because", Steps: 4, Questions: []durable.Question{question("c")}})
		write(t, s, l, durable.Update{Reason: "other", Steps: 9}, entry(1))
		r := run(t, s, "r")
		assert.Equal(t, []any{agent.StatusParked, agent.StopReason("because"), 4, int64(1)}, []any{r.Status, r.Reason, r.Steps, r.Entries})
		assert.Len(t, questions(t, s, "r"), 1, "nil leaves the questions")
	},
	"a status that ends the run releases it": func(t *testing.T, s durable.Store) {
		for _, status := range []agent.Status{
			agent.StatusDone, agent.StatusStopped, agent.StatusFailed, agent.StatusDenied, agent.StatusCancelled, agent.StatusInterrupted,
		} {
			id := agent.RunID(status)
			l := create(t, s, id)
			write(t, s, l, parked(1, question("c")), entry(1))
			write(t, s, l, durable.Update{Status: status, Reason: "over", Steps: 2, Questions: []durable.Question{question("d")}}, entry(2))
			r := run(t, s, id)
			assert.Equal(t, []any{status, agent.StopReason("over"), 2, int64(2), "", int64(1)},
				[]any{r.Status, r.Reason, r.Steps, r.Entries, r.Owner, r.Epoch})
			assert.True(t, r.Deadline.IsZero(), "deadline")
			assert.Empty(t, questions(t, s, id))
			stale(t, s, l)
		}
	},
	"data is any bytes": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for i, data := range [][]byte{all, {0}, {0, 0, 0}, {0xff, 0xfe}, []byte("\x00text\x00"), []byte("it's")} {
			e := entry(int64(i + 1))
			e.Data = data
			write(t, s, l, durable.Update{}, e)
			got := journal(t, s, "r")
			assert.Equal(t, data, got[i].Data)
		}
	},
	"data may be large": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		e := entry(1)
		e.Data = bytes.Repeat([]byte("grapnel\x00"), 1<<17)
		second := entry(2)
		second.Data = bytes.Repeat([]byte{0xff}, 1<<20)
		write(t, s, l, durable.Update{}, e, second)
		sameEntries(t, []durable.Entry{e, second}, journal(t, s, "r"))
	},
	"many entries at once": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, durable.Update{}, entries(1, 5000)...)
		sameEntries(t, entries(1, 5000), journal(t, s, "r"))
	},
	"what was given may be changed afterwards": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		e, q, a := entry(1), question("c"), answer("c")
		write(t, s, l, parked(1, q), e)
		require.NoError(t, s.Answer(t.Context(), "r", a))
		e.Data[0], q.Data[0], a.Data[0] = '!', '!', '!'
		got := journal(t, s, "r")
		assert.Equal(t, "data", string(got[0].Data))
		asked := questions(t, s, "r")
		assert.Equal(t, "may I?", string(asked[0].Data))
		assert.Equal(t, "yes", string(asked[0].Answer.Data))
		got[0].Data[0], asked[0].Data[0], asked[0].Answer.Data[0] = '?', '?', '?'
		assert.Equal(t, "data", string(journal(t, s, "r")[0].Data))
		assert.Equal(t, "may I?", string(questions(t, s, "r")[0].Data))
		assert.Equal(t, "yes", string(questions(t, s, "r")[0].Answer.Data))
	},
}
