package firing

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/durable"
)

// The journal keeps in memory only the names that repeated firings may need.
func TestForget(t *testing.T) {
	j := NewJournal(nil, "run", 5, []durable.Entry{
		{Seq: 1, Kind: durable.EntryOnce, Key: "old"}, {Seq: 2, Kind: durable.EntryDone, Key: "old"},
		{Seq: 3, Kind: durable.EntryOnce, Key: "open"}, {Seq: 4, Kind: durable.EntryOnce, Key: "new"}, {Seq: 5, Kind: durable.EntryDone, Key: "new"},
	}, nil)
	names := func() []string { return slices.Collect(maps.Keys(j.names)) }
	j.Forget(2)
	assert.ElementsMatch(t, []string{"open", "new"}, names())
	j.Forget(4)
	assert.Equal(t, []string{"new"}, names())
	j.Forget(8)
	assert.Empty(t, names())
}
