package durabletest

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/durable"
)

// part is a test of one sentence of the contract; it gets an empty store of its own.
type part func(t *testing.T, s durable.Store)

// TestStore tests a store against the contract of durable.Store. Open returns an empty store, once for each part of the
// contract, and TestStore closes it.
func TestStore(t *testing.T, open func(t *testing.T) durable.Store) {
	for _, group := range []struct {
		name  string
		parts map[string]part
	}{
		{"submit", submitting},
		{"begin", beginning},
		{"once", repeating},
		{"acquire", acquiring},
		{"updated", updating},
		{"claim", claiming},
		{"commit", committing},
		{"follow-ups", following},
		{"pass", passing},
		{"after", starting},
		{"list", listing},
		{"rules", counted},
		{"ready", waking},
		{"reconcile", reconciling},
		{"waits", asking},
		{"answer", answering},
		{"answers that do not decide", counting},
		{"token", tokens},
		{"open waits", opening},
		{"watch", watching},
		{"audit log", recording},
		{"waivers", waiving},
		{"signal", signalling},
		{"pause", pausing},
		{"offers", offering},
		{"changes", changing},
		{"end", ending},
		{"documents", documenting},
		{"switch", switching},
		{"at once", racing()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for name, test := range group.parts {
				t.Run(name, func(t *testing.T) {
					s := open(t)
					t.Cleanup(func() { assert.NoError(t, s.Close(), "close the store") })
					test(t, s)
				})
			}
		})
	}
	t.Run("closed with the store", func(t *testing.T) { testClosedChanges(t, open(t)) })
}
