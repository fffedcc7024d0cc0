package durabletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestShared holds a store to what the contract says of restarts and of several
// processes. Place makes an empty place for data, and gives a func that opens
// another handle on it each time: a handle must know nothing of the others but by
// that place, as in different processes. TestShared closes the handles.
func TestShared(t *testing.T, place func(t *testing.T) (open func(t *testing.T) durable.Store)) {
	// handles opens two handles on one place, closed when the test ends.
	handles := func(t *testing.T) (durable.Store, durable.Store) {
		open := place(t)
		a, b := open(t), open(t)
		t.Cleanup(func() {
			assert.NoError(t, a.Close(), "close one handle")
			assert.NoError(t, b.Close(), "close the other")
		})
		return a, b
	}
	shared := func(test func(t *testing.T, a, b durable.Store)) func(t *testing.T) {
		return func(t *testing.T) {
			a, b := handles(t)
			test(t, a, b)
		}
	}

	t.Run("everything survives a restart", func(t *testing.T) { survives(t, place(t)) })
	t.Run("each sees what the other did", shared(seen))
	t.Run("one of many creates", shared(func(t *testing.T, a, b durable.Store) { oneCreates(t, a, b) }))
	t.Run("one of many claims", shared(func(t *testing.T, a, b durable.Store) { oneClaims(t, a, b) }))
	t.Run("one of many writes an entry", shared(func(t *testing.T, a, b durable.Store) { oneAppends(t, a, b) }))
	t.Run("one of many answers", shared(func(t *testing.T, a, b durable.Store) { oneAnswers(t, a, b) }))
	t.Run("who reads sees whole writes", shared(wholeWrites))
	t.Run("who was taken over writes no more", shared(fenced))
}

func survives(t *testing.T, open func(t *testing.T) durable.Store) {
	s := open(t)
	q := question("c")
	q.TokenHash, q.Deadline, q.Child = [32]byte{1, 2, 3}, moment(), "child"
	l := create(t, s, "parked")
	write(t, s, l, parked(2, q, question("d")), entries(1, 5)...)
	require.NoError(t, s.Answer(t.Context(), "parked", answer("d")))
	require.NoError(t, s.Cancel(t.Context(), "parked", "enough"))
	write(t, s, create(t, s, "ended"), ended(), entry(1))
	running := create(t, s, "running")
	on := durable.Switch{On: true, Reason: "fire", By: "ops", Since: moment()}
	require.NoError(t, s.SetDenyTools(t.Context(), on))
	all, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	asked := questions(t, s, "parked")
	require.NoError(t, s.Close())

	s = open(t)
	defer func() { assert.NoError(t, s.Close()) }()
	again, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Equal(t, all, again)
	sameEntries(t, entries(1, 5), journal(t, s, "parked"))
	for i, q := range questions(t, s, "parked") {
		sameQuestion(t, asked[i], q)
	}
	found, err := s.QuestionByToken(t.Context(), q.TokenHash)
	require.NoError(t, err)
	assert.Equal(t, "c", found.Call)
	sw, err := s.DenyTools(t.Context())
	require.NoError(t, err)
	assert.True(t, on.Since.Equal(sw.Since))
	assert.Equal(t, []any{on.On, on.Reason, on.By}, []any{sw.On, sw.Reason, sw.By})

	_, err = s.Claim(t.Context(), "running", "two", hour, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError), "a lease outlives a restart")
	write(t, s, running, durable.Update{}, entry(1))
	create(t, s, "new")
	assert.Equal(t, []agent.RunID{"new", "running", "ended", "parked"}, list(t, s, durable.Filter{}))
}

func seen(t *testing.T, a, b durable.Store) {
	l := create(t, a, "r")
	assert.Equal(t, run(t, a, "r"), run(t, b, "r"))
	_, err := b.Claim(t.Context(), "r", "two", hour, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError))
	write(t, a, l, parked(1, question("c")), entry(1))
	sameEntries(t, journal(t, a, "r"), journal(t, b, "r"))
	require.NoError(t, b.Answer(t.Context(), "r", answer("c")))
	require.ErrorIs(t, a.Answer(t.Context(), "r", answer("c")), durable.ErrAnswered)
	require.NoError(t, b.Cancel(t.Context(), "r", "enough"))
	assert.Equal(t, "enough", run(t, a, "r").CancelReason)

	taken := claim(t, b, "r", "two", durable.TakeOver)
	stale(t, a, l)
	write(t, a, taken, durable.Update{}, entry(2)) // a lease is good in any process
	require.NoError(t, b.SetDenyTools(t.Context(), durable.Switch{On: true}))
	sw, err := a.DenyTools(t.Context())
	require.NoError(t, err)
	assert.True(t, sw.On)
	release(t, a, taken)
	due(t, a, "r")
	require.NoError(t, b.Delete(t.Context(), "r"))
	_, err = a.Run(t.Context(), "r")
	require.ErrorIs(t, err, durable.ErrNotFound)
}
