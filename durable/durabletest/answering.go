package durabletest

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var answering = map[string]part{
	"is kept": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		a := newAnswer("d")
		a.Ends, a.Data, a.At = true, []byte("no\x00"), testTime().AddDate(-20, 0, 0)
		answerAll(t, s, "r", a)
		got := readWaits(t, s, "r")
		assert.Nil(t, got[0].Answer)
		require.NotNil(t, got[1].Answer)
		assert.Equal(t, []any{"d", "subject of d", true, "no\x00"},
			[]any{got[1].Answer.Wait, got[1].Answer.Subject, got[1].Answer.Ends, string(got[1].Answer.Data)})
		assert.WithinDuration(t, getRun(t, s, "r").Created, got[1].Answer.At, time.Minute, "the store says when")
	},
	"with no data": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"))
		answerAll(t, s, "r", durable.Answer{Wait: "c"})
		require.NotNil(t, readWaits(t, s, "r")[0].Answer)
		assert.Empty(t, readWaits(t, s, "r")[0].Answer.Data)
	},
	"is given once": play(
		suspendOn(newWait("c"), newWait("d")), answerWaits(newAnswer("c")), refuseAnswers(durable.ErrAnswered, newAnswer("c")),
		refuseAnswers(durable.ErrAnswered, newEnding("c")), refuseAnswers(durable.ErrAnswered, newPartial("c", "ann")),
	),
	"fits the question": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"))
		suspendRun(t, s, "other", newWait("d"))
		for _, wait := range []string{"subject of c", "C", "", "d"} {
			refusesAnswers(t, s, durable.ErrNotFound, durable.Answer{Wait: wait, Subject: "subject of c"})
		}
	},
	"all or none": func(t *testing.T, s durable.Store) {
		play(
			suspendOn(newWait("c"), newWait("d"), newWait("e")), refuseAnswers(durable.ErrNotFound, newAnswer("c"), newAnswer("x")),
			answerWaits(newAnswer("d")), refuseAnswers(durable.ErrAnswered, newAnswer("c"), newAnswer("d"), newAnswer("e")),
			refuseAnswers(durable.ErrAnswered, newAnswer("c"), newAnswer("c")), answerWaits(newAnswer("e"), newAnswer("c")),
		)(t, s)
		for _, q := range readWaits(t, s, "r") {
			require.NotNil(t, q.Answer, q.ID)
			assert.Equal(t, []string{q.ID, q.Subject}, []string{q.Answer.Wait, q.Answer.Subject})
		}
	},
	"an answered question goes first": play(
		suspendOn(newWait("c"), newWait("d")), answerWaits(newAnswer("d")), refuseAnswers(durable.ErrAnswered, newAnswer("x"), newAnswer("d")),
		refuseAnswers(durable.ErrAnswered, newAnswer("d"), newAnswer("x")), refuseAnswers(durable.ErrNotFound, newAnswer("c"), newAnswer("x")),
	),
	"only a waiting run is answered": play(
		begin, refuseAnswers(durable.ErrNotFound, newAnswer("c")), askWaits(newWait("c")), goOn, refuseAnswers(durable.ErrNotFound, newAnswer("c")),
		finishRun, refuseAnswers(durable.ErrNotFound, newAnswer("c")),
	),
	"a question that is asked no longer": play(
		begin, askWaits(newWait("c")), askWaits(newWait("d")), refuseAnswers(durable.ErrNotFound, newAnswer("c")), answerWaits(newAnswer("d")),
	),
	"after the run became ready": play(
		suspendOn(newWait("c"), newWait("d")), answerWaits(newEnding("c")), isReady,
		refuseAnswers(durable.ErrAnswered, newAnswer("c")), refuseAnswers(durable.ErrNotFound, newAnswer("d")),
		acquire, refuseAnswers(durable.ErrAnswered, newAnswer("c")), refuseAnswers(durable.ErrNotFound, newAnswer("d")),
	),
	"a run that a process holds can be answered": play(begin, askWaits(newWait("c")), answerWaits(newAnswer("c")), writeEntry),
}

// counting tests answers that do not decide.
var counting = map[string]part{
	"leave the wait open": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWaitBy("c", later()))
		a := newAnswer("c")
		a.More, a.By, a.Data, a.At = true, "ann", []byte("yes\x00"), longAgo()
		answerAll(t, s, "r", a)
		requireStatus(t, s, durable.StatusWaiting, "r")
		assert.True(t, later().Equal(getRun(t, s, "r").AnswerBy))
		w := readWaits(t, s, "r")[0]
		assert.Nil(t, w.Answer)
		require.Len(t, w.Partial, 1)
		sameAnswer(t, a, w.Partial[0])
		assert.False(t, longAgo().Equal(w.Partial[0].At), "the store says when")

		decides := newAnswer("c")
		decides.By = "bob"
		answerAll(t, s, "r", decides)
		requireStatus(t, s, durable.StatusReady, "r")
		assert.True(t, getRun(t, s, "r").AnswerBy.IsZero())
		w = readWaits(t, s, "r")[0]
		require.NotNil(t, w.Answer)
		sameAnswer(t, decides, *w.Answer)
		require.Len(t, w.Partial, 1)
		sameAnswer(t, a, w.Partial[0])
	},
	"in order": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		for _, by := range []string{"ann", "bob", "cid"} {
			answerAll(t, s, "r", newPartial("c", by))
		}
		w := readWaits(t, s, "r")
		assert.Equal(t, []string{"ann", "bob", "cid"}, []string{w[0].Partial[0].By, w[0].Partial[1].By, w[0].Partial[2].By})
		assert.Empty(t, w[1].Partial)
	},
	"are formed from what is stored": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		answerAll(t, s, "r", newPartial("c", ""))
		answerRun(t, s, "r", "d")
		var seen []durable.Wait
		refused := errors.New("refused")
		err := s.Answer(t.Context(), "r", func(waits []durable.Wait, now time.Time) ([]durable.Answer, error) {
			seen = waits
			assert.False(t, now.Before(waits[0].Partial[0].At), "the store sets the time")
			assert.WithinDuration(t, waits[0].Partial[0].At, now, time.Minute)
			return []durable.Answer{newAnswer("c")}, refused
		})
		require.ErrorIs(t, err, refused, "what it refuses is refused")
		stored := readWaits(t, s, "r")
		require.Len(t, seen, 2)
		for i := range seen {
			sameWait(t, stored[i], seen[i])
		}
		assert.Nil(t, stored[0].Answer)
		assert.NotNil(t, seen[1].Answer)
		refusesAnswers(t, s, durable.ErrAnswered, newAnswer("c"), newAnswer("d"))
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answers()), "none is allowed")
		assert.Nil(t, readWaits(t, s, "r")[0].Answer)
		require.ErrorIs(t, s.Answer(t.Context(), "r", func([]durable.Wait, time.Time) ([]durable.Answer, error) {
			return []durable.Answer{newAnswer("x")}, nil
		}), durable.ErrNotFound)
	},
	"are kept with the same wait": func(t *testing.T, s durable.Store) {
		w := newWait("c")
		l := askRun(t, s, "r", w)
		a := newAnswer("c")
		a.More = true
		answerAll(t, s, "r", a)
		given := newAnswer("c")
		given.More, given.Data, given.At = true, []byte("given"), testTime()
		w.Partial = []durable.Answer{given, given}
		writeUpdate(t, s, l, waitUpdate(1, newWait("b"), w))
		kept := readWaits(t, s, "r")[1].Partial
		require.Len(t, kept, 1, "what was recorded goes before what is given")
		sameAnswer(t, a, kept[0])

		w.Answer = new(newAnswer("c"))
		w.Answer.At = testTime()
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Len(t, readWaits(t, s, "r")[0].Partial, 1)
		assert.NotNil(t, readWaits(t, s, "r")[0].Answer, "a given decision is stored where none was recorded")

		w.ID, w.Answer = "c2", nil
		writeUpdate(t, s, l, waitUpdate(1, w))
		stored := readWaits(t, s, "r")[0].Partial
		require.Len(t, stored, 2, "those to what was asked before are forgotten, those given are stored")
		given.Wait = w.ID
		sameAnswer(t, given, stored[1])
		assert.True(t, testTime().Equal(stored[1].At))
	},
}

// oneCounts lets several people answer at once, each as the next after those that are stored.
func oneCounts(t *testing.T, handles ...durable.Store) {
	t.Helper()
	suspendRun(t, handles[0], "r", newWait("c"))
	for seen := range 3 {
		won := race(t, errTooMany, func(i int) error {
			a := newAnswer("c")
			a.More, a.By = true, strconv.Itoa(i)
			return handles[i%len(handles)].Answer(t.Context(), "r", func(waits []durable.Wait, _ time.Time) ([]durable.Answer, error) {
				if len(waits[0].Partial) != seen {
					return nil, errTooMany
				}
				return []durable.Answer{a}, nil
			})
		})
		partial := readWaits(t, handles[0], "r")[0].Partial
		require.Len(t, partial, seen+1)
		assert.Equal(t, strconv.Itoa(won), partial[seen].By)
	}
}

var errTooMany = errors.New("another answer came first")

// findByToken returns the wait of a token, which must exist.
func findByToken(t *testing.T, s durable.Store, token [32]byte) durable.Wait {
	t.Helper()
	w := must(s.WaitByToken(t.Context(), token))(t)
	assert.Equal(t, token, w.TokenHash)
	return w
}

// tokens tests tokens that are set later.
var tokens = map[string]part{
	"is set once": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		first, other := [32]byte{1}, [32]byte{2}
		require.NoError(t, s.SetToken(t.Context(), "r", "d", first))
		require.ErrorIs(t, s.SetToken(t.Context(), "r", "d", other), durable.ErrExists)
		require.ErrorIs(t, s.SetToken(t.Context(), "r", "d", first), durable.ErrExists)
		assert.Equal(t, "d", findByToken(t, s, first).ID)
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), other)), durable.ErrNotFound)
		assert.Equal(t, [32]byte{}, readWaits(t, s, "r")[0].TokenHash)
	},
	"fits an open wait": func(t *testing.T, s durable.Store) {
		token := [32]byte{3}
		suspendRun(t, s, "r", newWait("c"), newWait("d"))
		answerRun(t, s, "r", "d")
		for name, err := range map[string]error{
			"the subject": s.SetToken(t.Context(), "r", "subject of c", token), "no ID": s.SetToken(t.Context(), "r", "", token),
			"decided": s.SetToken(t.Context(), "r", "d", token),
		} {
			require.ErrorIs(t, err, durable.ErrNotFound, name)
		}
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), token)), durable.ErrNotFound)
	},
	"stays with the same wait": func(t *testing.T, s durable.Store) {
		w := newWait("c")
		l := askRun(t, s, "r", w)
		token := [32]byte{3}
		require.NoError(t, s.SetToken(t.Context(), "r", "c", token))
		writeUpdate(t, s, l, waitUpdate(1, newWait("b"), w))
		assert.Equal(t, token, readWaits(t, s, "r")[1].TokenHash)
		w.TokenHash = [32]byte{4}
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, w.TokenHash, readWaits(t, s, "r")[0].TokenHash, "a given token is newer")
		assert.Equal(t, "c", findByToken(t, s, token).ID, "a link that was sent before stays valid")
		w.ID, w.TokenHash = "c2", [32]byte{}
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, [32]byte{}, readWaits(t, s, "r")[0].TokenHash)
		spent, err := s.WaitByToken(t.Context(), token)
		require.ErrorIs(t, err, durable.ErrTokenSpent, "what is asked now is something else")
		assert.Equal(t, durable.Wait{Run: "r", ID: "c", Subject: "subject of c"}, spent, "what it was for")
		w.TokenHash = token
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, "c2", findByToken(t, s, token).ID, "it is given to what is asked now")
	},
	"one more": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		c, d := newWait("c"), newWait("d")
		c.TokenHash = [32]byte{1}
		writeUpdate(t, s, l, waitUpdate(1, c, d))
		more, other := [32]byte{5}, [32]byte{2}
		for range 2 {
			require.NoError(t, s.AddToken(t.Context(), "r", "c", more))
		}
		require.NoError(t, s.AddToken(t.Context(), "r", "c", other))
		for _, token := range [][32]byte{c.TokenHash, more, other} {
			assert.Equal(t, "c", findByToken(t, s, token).ID)
		}
		assert.Equal(t, c.TokenHash, readWaits(t, s, "r")[0].TokenHash)
		writeUpdate(t, s, l, waitUpdate(1, d, c))
		assert.Equal(t, "c", findByToken(t, s, more).ID, "it stays with the same wait")
		answerRun(t, s, "r", "c")
		assert.NotNil(t, findByToken(t, s, more).Answer)
		fresh := [32]byte{6}
		for name, err := range map[string]error{
			"decided":     s.AddToken(t.Context(), "r", "c", fresh),
			"the subject": s.AddToken(t.Context(), "r", "subject of c", fresh),
			"no such":     s.AddToken(t.Context(), "r", "e", fresh),
			"no run":      s.AddToken(t.Context(), "another", "c", fresh),
		} {
			require.ErrorIs(t, err, durable.ErrNotFound, name)
		}
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), fresh)), durable.ErrNotFound)
	},
	"is spent when the run goes on, until the run is deleted": func(t *testing.T, s durable.Store) {
		all := map[string][32]byte{}
		for _, id := range []string{"answered", "replaced", "ended"} {
			token, more := sha256.Sum256([]byte(id)), sha256.Sum256([]byte("more "+id))
			all[id], all["more of "+id] = token, more
			w := newWait("c")
			w.TokenHash = token
			suspendRun(t, s, agent.RunID(id), w)
			require.NoError(t, s.AddToken(t.Context(), agent.RunID(id), "c", more))
		}
		answerRun(t, s, "answered", "c")
		next := map[string]durable.Update{
			"answered": {Status: durable.StatusRunning, Waits: []durable.Wait{}}, "replaced": waitUpdate(1, newWait("d")), "ended": endUpdate(),
		}
		for id, u := range next {
			writeUpdate(t, s, acquireRun(t, s, agent.RunID(id), "one", durable.TakeOver), u)
		}
		for name, token := range all {
			require.ErrorIs(t, second(s.WaitByToken(t.Context(), token)), durable.ErrTokenSpent, name)
		}
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), [32]byte{})), durable.ErrNotFound)
		require.NoError(t, s.Delete(t.Context(), "ended"))
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), all["ended"])), durable.ErrNotFound)
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), all["more of ended"])), durable.ErrNotFound)
	},
}
