package memory_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(*testing.T) durable.Store { return memory.New() }

func TestStore(t *testing.T) { durabletest.TestStore(t, open) }

func TestEncryptedIsAStore(t *testing.T) {
	durabletest.TestStore(t, func(t *testing.T) durable.Store {
		t.Helper()
		s, err := memory.NewEncrypted(durable.Encryption{Key: bytes.Repeat([]byte{1}, 32)})
		require.NoError(t, err)
		return s
	})
}

func TestRandom(t *testing.T) { durabletest.TestRandom(t, open) }

// A lease expires by the clock of a bubble.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		_, err := s.Begin(t.Context(), durable.Job{ID: "r", Name: "a"}, "one", time.Hour)
		require.NoError(t, err)
		done, err := s.Reconcile(t.Context())
		require.NoError(t, err)
		assert.Zero(t, done.Expired)
		time.Sleep(time.Hour)
		done, err = s.Reconcile(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, done.Expired)
	})
}

// A transaction that fails or panics leaves nothing behind, and the store goes on.
func TestAnAnswerThatPanics(t *testing.T) {
	s := memory.New()
	l, err := s.Begin(t.Context(), durable.Job{ID: "r", Name: "a"}, "one", time.Hour)
	require.NoError(t, err)
	before, err := s.Run(t.Context(), "r")
	require.NoError(t, err)
	assert.Panics(t, func() {
		_ = s.Answer(t.Context(), "r", func([]durable.Wait, time.Time) ([]durable.Answer, error) { panic("a bug") })
	})
	require.Error(t, s.Commit(t.Context(), l, durable.Commit{
		Entries: []durable.Entry{{Seq: 1}}, Jobs: []durable.Job{{ID: "new", Name: "a"}, {ID: "r", Name: "a"}},
		Document: &durable.Document{Kind: "k", Name: "n"},
	}))
	after, err := s.Run(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	_, err = s.Run(t.Context(), "new")
	require.ErrorIs(t, err, durable.ErrNotFound)
	require.NoError(t, s.Close())
	_, err = s.Run(t.Context(), "r")
	require.Error(t, err, "a closed store")
}
