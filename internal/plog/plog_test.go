package plog_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/grapnel-go/grapnel/internal/plog"
)

func values[T any](l plog.Log[T]) []T {
	out := []T{}
	for _, v := range l.All() {
		out = append(out, v)
	}
	return out
}

func TestZeroLogIsEmpty(t *testing.T) {
	var l plog.Log[string]
	assert.Equal(t, 0, l.Len())
	assert.Empty(t, values(l))
	_, ok := l.Last()
	assert.False(t, ok)
	assert.Panics(t, func() { l.At(0) })
	assert.Equal(t, []string{"a"}, values(l.Append("a")))
}

func TestAppendLeavesTheReceiverAlone(t *testing.T) {
	a := plog.Of(1, 2)
	b := a.Append(3)
	c := a.Append(4) // the slot is taken: a fork
	d := b.Append(5)
	assert.Equal(t, []int{1, 2}, values(a))
	assert.Equal(t, []int{1, 2, 3}, values(b))
	assert.Equal(t, []int{1, 2, 4}, values(c))
	assert.Equal(t, []int{1, 2, 3, 5}, values(d))
	assert.Panics(t, func() { a.At(2) }, "b's element is not a's")
}

func TestTruncateThenAppendForks(t *testing.T) {
	a := plog.Of(1, 2, 3)
	b := a.Truncate(1).Append(9)
	assert.Equal(t, []int{1, 2, 3}, values(a))
	assert.Equal(t, []int{1, 9}, values(b))
	assert.Panics(t, func() { a.Truncate(4) })
	assert.Panics(t, func() { a.Truncate(-1) })
}

// Any interleaving of appends, forks and truncations reads like slices that are copied every time.
func TestForksEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logs := []plog.Log[int]{{}}
		model := [][]int{{}}
		steps := rapid.IntRange(1, 80).Draw(t, "steps")
		for range steps {
			at := rapid.IntRange(0, len(logs)-1).Draw(t, "at")
			if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
				n := rapid.IntRange(0, logs[at].Len()).Draw(t, "truncate")
				logs = append(logs, logs[at].Truncate(n))
				model = append(model, slices.Clone(model[at][:n]))
				continue
			}
			items := rapid.SliceOfN(rapid.Int(), 0, 70).Draw(t, "items")
			logs = append(logs, logs[at].Append(items...))
			model = append(model, append(slices.Clone(model[at]), items...))
		}
		for i := range logs {
			require.Equal(t, model[i], values(logs[i]))
			backward := []int{}
			for _, v := range logs[i].Backward() {
				backward = append(backward, v)
			}
			slices.Reverse(backward)
			require.Equal(t, model[i], backward)
			if last, ok := logs[i].Last(); ok {
				require.Equal(t, model[i][len(model[i])-1], last)
				require.Equal(t, last, logs[i].At(logs[i].Len()-1))
			}
		}
	})
}

// Many goroutines extend one log at once, and each reads exactly its own elements. Run it with the race detector.
func TestConcurrentForks(t *testing.T) {
	base := plog.Of(1, 2, 3)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			l := base
			for i := range 200 {
				l = l.Append(g*1000 + i)
			}
			assert.Equal(t, 203, l.Len())
			for i, v := range l.From(3) {
				assert.Equal(t, g*1000+i-3, v)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, []int{1, 2, 3}, values(base))
}

func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	var l plog.Log[*int]
	v := new(int)
	for b.Loop() {
		l = l.Append(v)
	}
}
