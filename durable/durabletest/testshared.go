package durabletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// TestShared tests a store against the rules for restarts and for several processes. Place creates an empty storage
// location and returns a func that opens another handle on it at each call. Handles must share nothing except that
// location, as in different processes. TestShared closes the handles.
func TestShared(t *testing.T, place func(t *testing.T) (open func(t *testing.T) durable.Store)) {
	// handles opens two handles on one location and closes them when the test ends.
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

	t.Run("everything survives a restart", func(t *testing.T) { testSurvival(t, place(t)) })
	t.Run("each sees what the other did", shared(checkShared))
	t.Run("one of many creates", shared(func(t *testing.T, a, b durable.Store) { oneCreates(t, a, b) }))
	t.Run("one of many claims", shared(func(t *testing.T, a, b durable.Store) { oneClaims(t, a, b) }))
	t.Run("one of many writes an entry", shared(func(t *testing.T, a, b durable.Store) { oneAppends(t, a, b) }))
	t.Run("one of many answers", shared(func(t *testing.T, a, b durable.Store) { oneAnswers(t, a, b) }))
	t.Run("who reads sees whole writes", shared(wholeWrites))
	t.Run("who was taken over writes no more", shared(testFencing))
}

func testSurvival(t *testing.T, open func(t *testing.T) durable.Store) {
	s := open(t)
	q := newQuestion("c")
	q.TokenHash, q.Deadline, q.Child = [32]byte{1, 2, 3}, testTime(), "child"
	l := beginRun(t, s, "parked")
	writeUpdate(t, s, l, waitUpdate(2, q, newQuestion("d")), newEntries(1, 5)...)
	require.NoError(t, s.Answer(t.Context(), "parked", newAnswer("d")))
	require.NoError(t, s.Signal(t.Context(), "parked", cancelSignal("enough")))
	writeUpdate(t, s, beginRun(t, s, "ended"), endUpdate(), newEntry(1))
	running := beginRun(t, s, "running")
	on := durable.Switch{On: true, Reason: "fire", By: "ops", Since: testTime()}
	require.NoError(t, s.SetDenyTools(t.Context(), on))
	all, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	asked := readQuestions(t, s, "parked")
	require.NoError(t, s.Close())

	s = open(t)
	defer func() { assert.NoError(t, s.Close()) }()
	again, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	assert.Equal(t, all, again)
	sameEntries(t, newEntries(1, 5), readJournal(t, s, "parked"))
	for i, q := range readQuestions(t, s, "parked") {
		sameQuestion(t, asked[i], q)
	}
	found, err := s.QuestionByToken(t.Context(), q.TokenHash)
	require.NoError(t, err)
	assert.Equal(t, "c", found.Call)
	sw, err := s.DenyTools(t.Context())
	require.NoError(t, err)
	assert.True(t, on.Since.Equal(sw.Since))
	assert.Equal(t, []any{on.On, on.Reason, on.By}, []any{sw.On, sw.Reason, sw.By})

	_, err = s.Acquire(t.Context(), "running", "two", hour, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError), "a lease outlives a restart")
	writeUpdate(t, s, running, durable.Update{}, newEntry(1))
	beginRun(t, s, "new")
	assert.Equal(t, []agent.RunID{"new", "running", "ended", "parked"}, list(t, s, durable.Filter{}))
}

func checkShared(t *testing.T, a, b durable.Store) {
	l := beginRun(t, a, "r")
	assert.Equal(t, getRun(t, a, "r"), getRun(t, b, "r"))
	_, err := b.Acquire(t.Context(), "r", "two", hour, durable.TakeFree)
	require.ErrorAs(t, err, new(*durable.HeldError))
	writeUpdate(t, a, l, waitUpdate(1, newQuestion("c")), newEntry(1))
	sameEntries(t, readJournal(t, a, "r"), readJournal(t, b, "r"))
	require.NoError(t, b.Answer(t.Context(), "r", newAnswer("c")))
	require.ErrorIs(t, a.Answer(t.Context(), "r", newAnswer("c")), durable.ErrAnswered)
	require.NoError(t, b.Cancel(t.Context(), "r", "enough"))
	assert.Equal(t, "enough", getRun(t, a, "r").CancelReason)

	taken := acquireRun(t, b, "r", "two", durable.TakeOver)
	stale(t, a, l)
	writeUpdate(t, a, taken, durable.Update{}, newEntry(2)) // a lease is good in any process
	require.NoError(t, b.SetDenyTools(t.Context(), durable.Switch{On: true}))
	sw, err := a.DenyTools(t.Context())
	require.NoError(t, err)
	assert.True(t, sw.On)
	releaseRun(t, a, taken)
	due(t, a, "r")
	require.NoError(t, b.Delete(t.Context(), "r"))
	_, err = a.Run(t.Context(), "r")
	require.ErrorIs(t, err, durable.ErrNotFound)
}
