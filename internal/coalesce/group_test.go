package coalesce_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/coalesce"
)

// When a hundred calls arrive at once, the first runs, then a second one answers for all waiting callers.
func TestOneCallAnswersForMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := coalesce.NewGroup[int](1)
		var calls atomic.Int32
		for range 100 {
			go func() {
				value, err := g.Do(t.Context(), "key", func() (int, bool, error) {
					time.Sleep(time.Second)
					return int(calls.Add(1)), true, nil
				})
				assert.NoError(t, err)
				assert.LessOrEqual(t, value, 2)
			}()
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		assert.EqualValues(t, 2, calls.Load())
		_, _ = g.Do(t.Context(), "key", func() (int, bool, error) { calls.Add(1); return 0, true, nil })
		assert.EqualValues(t, 3, calls.Load(), "a later call is answered by none that began before it")
	})
}

// Private values, errors, and values of other keys answer for no other call.
func TestWhatAnswersForNoOther(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]bool{"not shared": false, "an error": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := coalesce.NewGroup[int](2)
				var calls atomic.Int32
				for i := range 10 {
					go func() {
						_, _ = g.Do(t.Context(), "key", func() (int, bool, error) {
							time.Sleep(time.Second)
							calls.Add(1)
							if share {
								return i, true, errors.New("failed")
							}
							return i, false, nil
						})
					}()
				}
				synctest.Wait()
				time.Sleep(time.Minute)
				assert.EqualValues(t, 10, calls.Load())
			})
		})
	}
	t.Run("another key", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := coalesce.NewGroup[int](1)
			for i := range 2000 {
				go func() {
					value, err := g.Do(t.Context(), fmt.Sprint(i), func() (int, bool, error) { return i, true, nil })
					assert.NoError(t, err)
					assert.Equal(t, i, value)
				}()
			}
			synctest.Wait()
		})
	})
}

// A waiting call whose context ends returns the cause.
func TestAWaitingCallEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := coalesce.NewGroup[int](1)
		held := make(chan struct{})
		go func() {
			_, _ = g.Do(t.Context(), "key", func() (int, bool, error) { <-held; return 0, true, nil })
		}()
		synctest.Wait()
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		_, err := g.Do(ctx, "key", func() (int, bool, error) { return 1, true, nil })
		assert.ErrorIs(t, err, enough)
		close(held)
	})
}
