package durabletest

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var asking = map[string]part{
	"come back in call order": func(t *testing.T, s durable.Store) {
		var want []durable.Question
		for _, call := range []string{"m", "z", "a", "c10", "c9"} {
			q := question(call)
			q.Tool, q.Data = "tool "+call, []byte("data\x00"+call)
			q.Deadline = time.Now().Add(hour).Truncate(time.Microsecond)
			q.Child = agent.RunID("child of " + call)
			q.TokenHash = sha256.Sum256([]byte(call))
			want = append(want, q)
		}
		want[1].Deadline = time.Time{}
		park(t, s, "r", want...)
		got := questions(t, s, "r")
		require.Len(t, got, len(want))
		for i := range want {
			want[i].Run = "r"
			sameQuestion(t, want[i], got[i])
		}
	},
	"none": func(t *testing.T, s durable.Store) {
		create(t, s, "r")
		assert.Empty(t, questions(t, s, "r"))
	},
	"belong to the run they are of": func(t *testing.T, s durable.Store) {
		q := question("c")
		q.Run = "another"
		park(t, s, "r", q)
		create(t, s, "another")
		assert.Equal(t, agent.RunID("r"), questions(t, s, "r")[0].Run)
		assert.Empty(t, questions(t, s, "another"))
	},
	"take the place of those before": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, parked(1, question("c"), question("d")))
		write(t, s, l, parked(1, question("e"), question("c")))
		assert.Equal(t, []string{"e", "c"}, calls(questions(t, s, "r")))
		write(t, s, l, durable.Update{Questions: []durable.Question{question("f")}})
		assert.Equal(t, []string{"f"}, calls(questions(t, s, "r")), "also where the status stays")
		write(t, s, l, durable.Update{Status: agent.StatusParked, Questions: []durable.Question{}})
		assert.Empty(t, questions(t, s, "r"))
	},
	"keep their answers": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		c, d := question("c"), question("d")
		c.Deadline, d.Deadline = moment(), moment().Add(hour)
		write(t, s, l, parked(1, c, d))
		a := answer("c")
		a.Ends = true
		require.NoError(t, s.Answer(t.Context(), "r", a))
		before := questions(t, s, "r")

		write(t, s, l, parked(1, d, c, question("e")))
		after := questions(t, s, "r")
		require.Equal(t, []string{"d", "c", "e"}, calls(after))
		assert.Nil(t, after[0].Answer)
		assert.Nil(t, after[2].Answer)
		sameQuestion(t, before[0], after[1])
		assert.True(t, d.Deadline.Equal(run(t, s, "r").Deadline), "what is answered has no deadline any more")
		assert.ErrorIs(t, s.Answer(t.Context(), "r", answer("c")), durable.ErrAnswered)

		changed := c
		changed.Hash = "another hash"
		write(t, s, l, parked(1, d, changed))
		assert.Nil(t, questions(t, s, "r")[1].Answer, "an answer to other arguments is none")
	},
	"may be given with their answers": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		c, d := question("c"), question("d")
		given := answer("c")
		given.At, given.Ends = moment(), true
		c.Answer = &given
		write(t, s, l, parked(1, c, d))
		got := questions(t, s, "r")
		c.Run = "r"
		sameQuestion(t, c, got[0])
		assert.Nil(t, got[1].Answer)
		require.ErrorIs(t, s.Answer(t.Context(), "r", answer("c")), durable.ErrAnswered)

		require.NoError(t, s.Answer(t.Context(), "r", answer("d")))
		other := answer("d")
		other.Data, other.At = []byte("no"), moment()
		d.Answer = &other
		write(t, s, l, parked(1, c, d))
		assert.Equal(t, "yes", string(questions(t, s, "r")[1].Answer.Data), "what was recorded goes before what is given")
	},
	"the first deadline is the run's": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		c, d, e := question("c"), question("d"), question("e")
		c.Deadline, e.Deadline = moment().Add(hour), moment()
		write(t, s, l, parked(1, c, d, e))
		assert.True(t, moment().Equal(run(t, s, "r").Deadline), "deadline %v", run(t, s, "r").Deadline)
		write(t, s, l, durable.Update{}, entry(1))
		assert.True(t, moment().Equal(run(t, s, "r").Deadline), "deadline %v", run(t, s, "r").Deadline)
		write(t, s, l, parked(1, c, d))
		assert.True(t, c.Deadline.Equal(run(t, s, "r").Deadline), "deadline %v", run(t, s, "r").Deadline)
		write(t, s, l, parked(1, d))
		assert.True(t, run(t, s, "r").Deadline.IsZero())
		write(t, s, l, parked(1, c))
		write(t, s, l, durable.Update{Status: agent.StatusRunning, Questions: []durable.Question{}})
		assert.True(t, run(t, s, "r").Deadline.IsZero())
	},
	"are found by token": func(t *testing.T, s durable.Store) {
		var tokens [3][32]byte
		for i := range tokens {
			tokens[i] = sha256.Sum256(fmt.Append(nil, "token ", i))
			q := question("c")
			q.TokenHash = tokens[i]
			park(t, s, agent.RunID(strconv.Itoa(i)), question("b"), q)
		}
		for i := range tokens {
			q, err := s.QuestionByToken(t.Context(), tokens[i])
			require.NoError(t, err)
			sameQuestion(t, questions(t, s, agent.RunID(strconv.Itoa(i)))[1], q)
		}
		require.NoError(t, s.Answer(t.Context(), "1", answer("c")))
		q, err := s.QuestionByToken(t.Context(), tokens[1])
		require.NoError(t, err)
		require.NotNil(t, q.Answer, "an answered one, too")
		assert.Equal(t, "yes", string(q.Answer.Data))

		write(t, s, claim(t, s, "2", "one", durable.TakeFree), ended())
		near := tokens[0]
		near[31]++
		for name, token := range map[string][32]byte{"none": {}, "near": near, "of a run that ended": tokens[2]} {
			_, err := s.QuestionByToken(t.Context(), token)
			require.ErrorIs(t, err, durable.ErrNotFound, name)
		}
	},
}

func calls(all []durable.Question) []string {
	names := []string{}
	for _, q := range all {
		names = append(names, q.Call)
	}
	return names
}

// sameQuestion compares questions: a time is equal in any zone, no data is empty data.
func sameQuestion(t *testing.T, want, got durable.Question) {
	t.Helper()
	assert.Equal(t, []any{want.Run, want.Call, want.Hash, want.Tool, want.Child, want.TokenHash, string(want.Data)},
		[]any{got.Run, got.Call, got.Hash, got.Tool, got.Child, got.TokenHash, string(got.Data)}, "question")
	assert.True(t, want.Asked.Equal(got.Asked), "asked %v, want %v", got.Asked, want.Asked)
	assert.True(t, want.Deadline.Equal(got.Deadline), "deadline %v, want %v", got.Deadline, want.Deadline)
	if want.Answer == nil {
		assert.Nil(t, got.Answer, "answer")
		return
	}
	require.NotNil(t, got.Answer, "answer")
	assert.Equal(t, []any{want.Answer.Call, want.Answer.Hash, want.Answer.Ends, string(want.Answer.Data)},
		[]any{got.Answer.Call, got.Answer.Hash, got.Answer.Ends, string(got.Answer.Data)}, "answer")
	assert.True(t, want.Answer.At.Equal(got.Answer.At), "answered at %v, want %v", got.Answer.At, want.Answer.At)
}
