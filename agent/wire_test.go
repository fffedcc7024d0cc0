package agent_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// A message is encoded only once, also if many states and steps show it.
func TestWireFormEncodesAMessageOnce(t *testing.T) {
	encoded := 0
	form := agent.NewWireForm(func(m agent.Message) ([]byte, error) {
		encoded++
		return []byte(`"` + m.Text() + `"`), nil
	})
	s := agent.NewState(agent.UserText("a"), agent.UserText("b"))
	for _, want := range []string{`"a","b"`, `"a","b","c"`, `"a","b","c","d"`} {
		got, err := form.AppendMessages([]byte("["), s)
		require.NoError(t, err)
		assert.Equal(t, "["+want, string(got))
		s = s.With(agent.UserText(string(rune('a' + s.MessageCount()))))
	}
	assert.Equal(t, 4, encoded)

	changed := s.Message(0).WithSource("hook") // another message, though it says the same
	text, err := form.Of(changed)
	require.NoError(t, err)
	assert.Equal(t, `"a"`, text)
	assert.Equal(t, 5, encoded)
	got, err := form.AppendMessages(nil, s.WithView(s.Message(1)))
	require.NoError(t, err)
	assert.Equal(t, `"b"`, string(got), "a view is what is shown")
	assert.Equal(t, 5, encoded)
}

// Two forms do not mix, and the empty message, which all states share, caches no
// encoding.
func TestWireFormsDoNotMix(t *testing.T) {
	a := agent.NewWireForm(func(m agent.Message) ([]byte, error) { return []byte("a:" + m.Text()), nil })
	b := agent.NewWireForm(func(m agent.Message) ([]byte, error) { return []byte("b:" + m.Text()), nil })
	for _, m := range []agent.Message{agent.UserText("x"), {}} {
		for range 2 {
			for form, want := range map[*agent.WireForm]string{a: "a:" + m.Text(), b: "b:" + m.Text()} {
				got, err := form.Of(m)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
		}
	}
}

func TestWireFormSaysWhatCannotBeEncoded(t *testing.T) {
	broken := errors.New("no such role")
	tries := 0
	form := agent.NewWireForm(func(agent.Message) ([]byte, error) {
		if tries++; tries == 1 {
			return nil, broken
		}
		return []byte("ok"), nil
	})
	s := agent.NewState(agent.UserText("x"))
	_, err := form.AppendMessages(nil, s)
	require.ErrorIs(t, err, broken)
	got, err := form.AppendMessages(nil, s)
	require.NoError(t, err, "an error is not remembered")
	assert.Equal(t, "ok", string(got))
}

func TestWireFormServesSeveralAtOnce(t *testing.T) {
	var encoded atomic.Int32
	form := agent.NewWireForm(func(m agent.Message) ([]byte, error) {
		encoded.Add(1)
		return []byte(m.Text()), nil
	})
	s := agent.NewState(agent.UserText("a"), agent.UserText("b"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := form.AppendMessages(nil, s)
			if assert.NoError(t, err) {
				assert.Equal(t, "a,b", string(got))
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, encoded.Load(), int32(16))
}
