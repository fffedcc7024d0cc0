package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
)

var answering = map[string]part{
	"is kept": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		a := newAnswer("d")
		a.Ends, a.Data, a.At = true, []byte("no\x00"), testTime().AddDate(-20, 0, 0)
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(a)))
		got := readWaits(t, s, "r")
		assert.Nil(t, got[0].Answer)
		require.NotNil(t, got[1].Answer)
		assert.Equal(t, []any{"d", "subject of d", true, "no\x00"},
			[]any{got[1].Answer.Wait, got[1].Answer.Subject, got[1].Answer.Ends, string(got[1].Answer.Data)})
		assert.WithinDuration(t, getRun(t, s, "r").Created, got[1].Answer.At, time.Minute, "the store says when")
	},
	"with no data": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"))
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(durable.Answer{Wait: "c"})))
		require.NotNil(t, readWaits(t, s, "r")[0].Answer)
		assert.Empty(t, readWaits(t, s, "r")[0].Answer.Data)
	},
	"is given once": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))))
		other := newAnswer("c")
		other.Data, other.Ends = []byte("no"), true
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(other)), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))), durable.ErrAnswered, "the same again, too")
		a := readWaits(t, s, "r")[0].Answer
		assert.Equal(t, []any{"yes", false}, []any{string(a.Data), a.Ends})
	},
	"fits the question": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"))
		suspendRun(t, s, "other", newWait("d"))
		for name, a := range map[string]durable.Answer{
			"the subject":    {Wait: "subject of c", Subject: "subject of c"},
			"wrong ID":       {Wait: "C", Subject: "subject of c"},
			"no ID":          {Subject: "subject of c"},
			"of another run": newAnswer("d"),
		} {
			require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(a)), durable.ErrNotFound, name)
		}
		assert.Nil(t, readWaits(t, s, "r")[0].Answer)
	},
	"all or none": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"), newWait("e"))
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"), newAnswer("x"))), durable.ErrNotFound)
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("d"))))
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"), newAnswer("d"), newAnswer("e"))), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"), newAnswer("c"))), durable.ErrAnswered, "twice in one")
		got := readWaits(t, s, "r")
		assert.Equal(t, []bool{false, true, false}, []bool{got[0].Answer != nil, got[1].Answer != nil, got[2].Answer != nil})
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("e"), newAnswer("c"))))
		for _, q := range readWaits(t, s, "r") {
			require.NotNil(t, q.Answer, q.ID)
			assert.Equal(t, []string{q.ID, q.Subject}, []string{q.Answer.Wait, q.Answer.Subject})
		}
	},
	"an answered question goes first": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		answerRun(t, s, "r", "d")
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("x"), newAnswer("d"))), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("d"), newAnswer("x"))), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"), newAnswer("x"))), durable.ErrNotFound)
		assert.Nil(t, readWaits(t, s, "r")[0].Answer)
	},
	"only a waiting run is answered": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "running")
		require.ErrorIs(t, s.Answer(t.Context(), "running", durable.Answers(newAnswer("c"))), durable.ErrNotFound)
		suspendRun(t, s, "went on", newWait("c"))
		writeUpdate(t, s, acquireRun(t, s, "went on", "one", durable.TakeFree), durable.Update{Status: durable.StatusRunning})
		require.ErrorIs(t, s.Answer(t.Context(), "went on", durable.Answers(newAnswer("c"))), durable.ErrNotFound)
		writeUpdate(t, s, beginRun(t, s, "ended"), endUpdate())
		require.ErrorIs(t, s.Answer(t.Context(), "ended", durable.Answers(newAnswer("c"))), durable.ErrNotFound)
	},
	"a question that is asked no longer": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		writeUpdate(t, s, l, waitUpdate(1, newWait("d")))
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))), durable.ErrNotFound)
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("d"))))
	},
	"after the run became ready": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		a := newAnswer("c")
		a.Ends = true
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(a)))
		requireStatus(t, s, durable.StatusReady, "r")
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))), durable.ErrAnswered, "the answer stays known")
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("d"))), durable.ErrNotFound, "the run does not wait")
		acquireRun(t, s, "r", "two", durable.TakeFree)
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("d"))), durable.ErrNotFound)
		assert.Nil(t, readWaits(t, s, "r")[1].Answer)
	},
	"a run that a process holds can be answered": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		writeUpdate(t, s, l, waitUpdate(1, newWait("c")))
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(newAnswer("c"))))
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
	},
}
