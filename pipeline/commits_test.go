package pipeline_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// countingStore counts commits.
type countingStore struct {
	durable.Store

	commits atomic.Int64
}

func (s *countingStore) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	s.commits.Add(1)
	return s.Store.Commit(ctx, l, c)
}

// An iteration costs few commits, and an awaited action at most three more.
func TestCommits(t *testing.T) {
	commits := func(iterations int, hooks string) int64 {
		b := newBench(t)
		counted := &countingStore{Store: b.store}
		b.store = counted
		s := b.run(fmt.Sprintf("name: p\nstages: [{name: a, command: {argv: ['true']}, termination: {type: fixed, iterations: %d}}]\n%s", iterations, hooks))
		require.Equal(t, pipeline.Completed, s.Reason, s.Error)
		return counted.commits.Load()
	}
	const more = 10
	perIteration := func(hooks string) float64 { return float64(commits(5+more, hooks)-commits(5, hooks)) / more }
	plain := perIteration("")
	assert.LessOrEqual(t, plain, 12.0)
	action := perIteration("hooks: {on_iteration_complete: {type: shell, command: 'true', await: true}}")
	assert.LessOrEqual(t, action-plain, 3.0)
	t.Logf("%.1f commits for an iteration, %.1f more for an awaited action", plain, action-plain)
}
