package agent

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// A slab gives each value to one caller only, and gives zero values, also to concurrent
// callers.
func TestRoomGivesEveryValueOnce(t *testing.T) {
	const takers, each = 8, 500
	var r slab[[3]*int]
	taken := make([][]*[3]*int, takers)
	var all sync.WaitGroup
	for i := range takers {
		all.Go(func() {
			for range each {
				v := r.take()
				assert.Zero(t, *v)
				v[0] = new(int)
				taken[i] = append(taken[i], v)
			}
		})
	}
	all.Wait()
	seen := map[*[3]*int]bool{}
	for _, mine := range taken {
		for _, v := range mine {
			assert.False(t, seen[v], "given twice")
			seen[v] = true
		}
	}
	assert.Len(t, seen, takers*each)
}

// A slab of a short run is small; a slab of a long run wastes less than one block.
func TestRoomGrowsWithTheRun(t *testing.T) {
	var r slab[stepBody]
	var sizes []int
	for range 100 {
		r.take()
		if size := len(r.block.Load().values); len(sizes) == 0 || sizes[len(sizes)-1] != size {
			sizes = append(sizes, size)
		}
	}
	assert.Equal(t, []int{2, 8, 18}, sizes)
	assert.LessOrEqual(t, 18*unsafe.Sizeof(ToolResult{}), uintptr(4<<10), "a block is no large object")
}
