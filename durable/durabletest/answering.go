package durabletest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var answering = map[string]part{
	"is kept": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"), question("d"))
		a := answer("d")
		a.Ends, a.Data, a.At = true, []byte("no\x00"), moment().AddDate(-20, 0, 0)
		require.NoError(t, s.Answer(t.Context(), "r", a))
		got := questions(t, s, "r")
		assert.Nil(t, got[0].Answer)
		require.NotNil(t, got[1].Answer)
		assert.Equal(t, []any{"d", "hash of d", true, "no\x00"},
			[]any{got[1].Answer.Call, got[1].Answer.Hash, got[1].Answer.Ends, string(got[1].Answer.Data)})
		assert.WithinDuration(t, run(t, s, "r").Created, got[1].Answer.At, time.Minute, "the store says when")
		assert.Equal(t, agent.StatusParked, run(t, s, "r").Status)
	},
	"with no data": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"))
		require.NoError(t, s.Answer(t.Context(), "r", durable.Answer{Call: "c", Hash: "hash of c"}))
		require.NotNil(t, questions(t, s, "r")[0].Answer)
		assert.Empty(t, questions(t, s, "r")[0].Answer.Data)
	},
	"is given once": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"), question("d"))
		require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
		other := answer("c")
		other.Data, other.Ends = []byte("no"), true
		require.ErrorIs(t, s.Answer(t.Context(), "r", other), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", answer("c")), durable.ErrAnswered, "the same again, too")
		a := questions(t, s, "r")[0].Answer
		assert.Equal(t, []any{"yes", false}, []any{string(a.Data), a.Ends})
	},
	"fits the question": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"))
		park(t, s, "other", question("d"))
		for name, a := range map[string]durable.Answer{
			"wrong hash":     {Call: "c", Hash: "hash of d"},
			"no hash":        {Call: "c"},
			"wrong call":     {Call: "C", Hash: "hash of c"},
			"no call":        {Hash: "hash of c"},
			"of another run": answer("d"),
		} {
			require.ErrorIs(t, s.Answer(t.Context(), "r", a), durable.ErrNotFound, name)
		}
		assert.Nil(t, questions(t, s, "r")[0].Answer)
	},
	"all or none": func(t *testing.T, s durable.Store) {
		park(t, s, "r", question("c"), question("d"), question("e"))
		require.ErrorIs(t, s.Answer(t.Context(), "r", answer("c"), answer("x")), durable.ErrNotFound)
		require.NoError(t, s.Answer(t.Context(), "r", answer("d")))
		require.ErrorIs(t, s.Answer(t.Context(), "r", answer("c"), answer("d"), answer("e")), durable.ErrAnswered)
		require.ErrorIs(t, s.Answer(t.Context(), "r", answer("c"), answer("c")), durable.ErrAnswered, "twice in one")
		got := questions(t, s, "r")
		assert.Equal(t, []bool{false, true, false}, []bool{got[0].Answer != nil, got[1].Answer != nil, got[2].Answer != nil})
		require.NoError(t, s.Answer(t.Context(), "r", answer("e"), answer("c")))
		for _, q := range questions(t, s, "r") {
			require.NotNil(t, q.Answer, q.Call)
			assert.Equal(t, []string{q.Call, q.Hash}, []string{q.Answer.Call, q.Answer.Hash})
		}
	},
	"only a parked run is answered": func(t *testing.T, s durable.Store) {
		create(t, s, "running")
		require.ErrorIs(t, s.Answer(t.Context(), "running", answer("c")), durable.ErrNotFound)
		park(t, s, "went on", question("c"))
		write(t, s, claim(t, s, "went on", "one", durable.TakeFree), durable.Update{Status: agent.StatusRunning})
		require.ErrorIs(t, s.Answer(t.Context(), "went on", answer("c")), durable.ErrNotFound)
		write(t, s, create(t, s, "ended"), ended())
		require.ErrorIs(t, s.Answer(t.Context(), "ended", answer("c")), durable.ErrNotFound)
	},
	"a question that is asked no longer": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, parked(1, question("c")))
		write(t, s, l, parked(1, question("d")))
		require.ErrorIs(t, s.Answer(t.Context(), "r", answer("c")), durable.ErrNotFound)
		require.NoError(t, s.Answer(t.Context(), "r", answer("d")))
	},
	"a run that somebody holds can be answered": func(t *testing.T, s durable.Store) {
		l := create(t, s, "r")
		write(t, s, l, parked(1, question("c")))
		require.NoError(t, s.Answer(t.Context(), "r", answer("c")))
		write(t, s, l, durable.Update{}, entry(1))
	},
}
