package durabletest

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var asking = map[string]part{
	"come back in call order": func(t *testing.T, s durable.Store) {
		var want []durable.Wait
		for _, call := range []string{"m", "z", "a", "c10", "c9"} {
			q := newWait(call)
			q.Tool, q.Data = "tool "+call, []byte("data\x00"+call)
			q.Deadline = time.Now().Add(hour).Truncate(time.Microsecond)
			q.Child = agent.RunID("child of " + call)
			q.TokenHash = sha256.Sum256([]byte(call))
			q.Kind, q.Host = durable.WaitKind("kind of "+call), "host of "+call
			want = append(want, q)
		}
		want[1].Deadline = time.Time{}
		suspendRun(t, s, "r", want...)
		got := readWaits(t, s, "r")
		require.Len(t, got, len(want))
		for i := range want {
			want[i].Run = "r"
			sameWait(t, want[i], got[i])
		}
	},
	"none": func(t *testing.T, s durable.Store) {
		beginRun(t, s, "r")
		assert.Empty(t, readWaits(t, s, "r"))
	},
	"belong to the run they are of": func(t *testing.T, s durable.Store) {
		q := newWait("c")
		q.Run = "another"
		suspendRun(t, s, "r", q)
		beginRun(t, s, "another")
		assert.Equal(t, agent.RunID("r"), readWaits(t, s, "r")[0].Run)
		assert.Empty(t, readWaits(t, s, "another"))
	},
	"take the place of those before": func(t *testing.T, s durable.Store) {
		l := askRun(t, s, "r", newWait("c"), newWait("d"))
		writeUpdate(t, s, l, waitUpdate(1, newWait("e"), newWait("c")))
		assert.Equal(t, []string{"e", "c"}, calls(readWaits(t, s, "r")))
		writeUpdate(t, s, l, durable.Update{Waits: []durable.Wait{newWait("f")}})
		assert.Equal(t, []string{"f"}, calls(readWaits(t, s, "r")), "also where the status stays")
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{}})
		assert.Empty(t, readWaits(t, s, "r"))
	},
	"keep their answers": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		c, d := newWait("c"), newWait("d")
		c.Deadline, d.Deadline = testTime(), testTime().Add(hour)
		writeUpdate(t, s, l, waitUpdate(1, c, d))
		answerAll(t, s, "r", newEnding("c"))
		before := readWaits(t, s, "r")

		writeUpdate(t, s, l, waitUpdate(1, d, c, newWait("e")))
		after := readWaits(t, s, "r")
		require.Equal(t, []string{"d", "c", "e"}, calls(after))
		assert.Nil(t, after[0].Answer)
		assert.Nil(t, after[2].Answer)
		sameWait(t, before[0], after[1])
		assert.True(t, d.Deadline.Equal(getRun(t, s, "r").AnswerBy), "what is answered has no deadline any more")
		refusesAnswers(t, s, durable.ErrAnswered, newAnswer("c"))

		changed := c
		changed.ID = "c2"
		writeUpdate(t, s, l, waitUpdate(1, d, changed))
		assert.Nil(t, readWaits(t, s, "r")[1].Answer, "what is asked about the same call later is something else")
		refusesAnswers(t, s, durable.ErrNotFound, newAnswer("c"))
	},
	"may be given with their answers": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		c, d := newWait("c"), newWait("d")
		given := newAnswer("c")
		given.At, given.Ends = testTime(), true
		c.Answer = &given
		writeUpdate(t, s, l, waitUpdate(1, c, d))
		got := readWaits(t, s, "r")
		c.Run = "r"
		sameWait(t, c, got[0])
		assert.Nil(t, got[1].Answer)
		refusesAnswers(t, s, durable.ErrAnswered, newAnswer("c"))

		answerRun(t, s, "r", "d")
		other := newAnswer("d")
		other.Data, other.At = []byte("no"), testTime()
		d.Answer = &other
		writeUpdate(t, s, l, waitUpdate(1, c, d))
		assert.Equal(t, "yes", string(readWaits(t, s, "r")[1].Answer.Data), "what was recorded goes before what is given")
	},
	"the first deadline is the run's": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		c, d, e := newWait("c"), newWait("d"), newWait("e")
		c.Deadline, e.Deadline = testTime().Add(hour), testTime()
		writeUpdate(t, s, l, waitUpdate(1, c, d, e))
		assert.True(t, testTime().Equal(getRun(t, s, "r").AnswerBy), "deadline %v", getRun(t, s, "r").AnswerBy)
		writeUpdate(t, s, l, durable.Update{}, newEntry(1))
		assert.True(t, testTime().Equal(getRun(t, s, "r").AnswerBy), "deadline %v", getRun(t, s, "r").AnswerBy)
		writeUpdate(t, s, l, waitUpdate(1, c, d))
		assert.True(t, c.Deadline.Equal(getRun(t, s, "r").AnswerBy), "deadline %v", getRun(t, s, "r").AnswerBy)
		writeUpdate(t, s, l, waitUpdate(1, d))
		assert.True(t, getRun(t, s, "r").AnswerBy.IsZero())
		writeUpdate(t, s, l, waitUpdate(1, c))
		writeUpdate(t, s, l, durable.Update{Status: durable.StatusRunning, Waits: []durable.Wait{}})
		assert.True(t, getRun(t, s, "r").AnswerBy.IsZero())
	},
	"are found by token": func(t *testing.T, s durable.Store) {
		var tokens [3][32]byte
		for i := range tokens {
			tokens[i] = sha256.Sum256(fmt.Append(nil, "token ", i))
			q := newWait("c")
			q.TokenHash = tokens[i]
			suspendRun(t, s, agent.RunID(strconv.Itoa(i)), newWait("b"), q)
		}
		for i := range tokens {
			sameWait(t, readWaits(t, s, agent.RunID(strconv.Itoa(i)))[1], findByToken(t, s, tokens[i]))
		}
		answerRun(t, s, "1", "c")
		answered := findByToken(t, s, tokens[1])
		require.NotNil(t, answered.Answer)
		assert.Equal(t, "yes", string(answered.Answer.Data))
		endRun(t, s, acquireRun(t, s, "2", "one", durable.TakeFree))
		near := tokens[0]
		near[31]++
		for name, token := range map[string][32]byte{"none": {}, "near": near} {
			require.ErrorIs(t, second(s.WaitByToken(t.Context(), token)), durable.ErrNotFound, name)
		}
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), tokens[2])), durable.ErrTokenSpent, "of a run that ended")
	},
}

func calls(all []durable.Wait) []string {
	return lo.Map(all, func(w durable.Wait, _ int) string { return w.ID })
}

// sameWait compares waits: a time is equal in any zone, no data is empty data.
func sameWait(t *testing.T, want, got durable.Wait) {
	t.Helper()
	assert.Equal(t, []any{want.Run, want.ID, want.Kind, want.Subject, want.Tool, want.Child, want.Host, want.TokenHash, string(want.Data)},
		[]any{got.Run, got.ID, got.Kind, got.Subject, got.Tool, got.Child, got.Host, got.TokenHash, string(got.Data)}, "wait")
	assert.True(t, want.Asked.Equal(got.Asked), "asked %v, want %v", got.Asked, want.Asked)
	assert.True(t, want.Deadline.Equal(got.Deadline), "deadline %v, want %v", got.Deadline, want.Deadline)
	require.Equal(t, want.Answer != nil, got.Answer != nil, "answer")
	require.Len(t, got.Answers(), len(want.Answers()), "answers")
	for i, a := range want.Answers() {
		sameAnswer(t, a, got.Answers()[i])
		assert.True(t, a.At.Equal(got.Answers()[i].At), "answered at %v, want %v", got.Answers()[i].At, a.At)
	}
}

// sameAnswer compares answers, except for the time, which the store sets.
func sameAnswer(t *testing.T, want, got durable.Answer) {
	t.Helper()
	assert.Equal(t, []any{want.Wait, want.Subject, want.More, want.Ends, want.By, string(want.Data)},
		[]any{got.Wait, got.Subject, got.More, got.Ends, got.By, string(got.Data)}, "answer")
}
