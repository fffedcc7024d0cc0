package store_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// Calls that wait run together, in their order. One whose context ends leaves the queue, unless it runs.
func TestQueue(t *testing.T) {
	q := store.NewQueue[int](1)
	refused := errors.New("refused")
	var ran [][]int
	run := func() error {
		var group []int
		for w := q.Next(); w != nil; w = q.Next() {
			group = append(group, w.Call)
			if w.Call == 2 {
				w.Err = refused
			}
			w.Finish(nil)
		}
		ran = append(ran, group)
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make([]error, 5)
	var callers sync.WaitGroup
	q.RunAlone(func() {
		for i := range errs {
			of := t.Context()
			if i == 1 {
				of = ctx
			}
			callers.Go(func() { errs[i] = q.Do(of, i, run) })
			for q.Len() <= i {
				runtime.Gosched()
			}
		}
		cancel()
		for q.Len() == len(errs) {
			runtime.Gosched()
		}
	})
	callers.Wait()
	require.ErrorIs(t, errs[1], context.Canceled)
	require.ErrorIs(t, errs[2], refused)
	require.NoError(t, errors.Join(errs[0], errs[3], errs[4]))
	assert.Equal(t, [][]int{{0, 2, 3, 4}}, ran)
	require.ErrorIs(t, q.Do(t.Context(), 5, func() error { return refused }), refused, "what cannot be run")
	assert.Nil(t, q.Next())
}
