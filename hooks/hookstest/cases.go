package hookstest

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
)

// Case is a line of a table: a moment, and what is to come of it.
type Case struct {
	// At is the moment that is fired.
	At Moment
	// Want is the decision. Empty stands for hooks.Pass: no opinion, or not called.
	Want hooks.Decision
	// Saying is a part of the reason; empty stands for any.
	Saying string
	// Leaving is the Text that the point leaves; empty stands for any.
	Leaving string
	// Also, unless nil, looks at the rest.
	Also func(t *testing.T, f Fired)
}

// Cases is a table of cases by name, each of which becomes a subtest.
type Cases map[string]Case

// Test fires the moment of each case for the hook.
func (cases Cases) Test(t *testing.T, hook hooks.Hook) {
	t.Helper()
	cases.TestSet(t, hooks.NewSet(hook))
}

// TestSet fires the moment of each case for the hooks of the set.
func (cases Cases) TestSet(t *testing.T, set hooks.Set) {
	t.Helper()
	if len(cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			f := FireSet(t, set, c.At)
			c.check(t, f)
			if c.Also != nil {
				c.Also(t, f)
			}
		})
	}
}

// check compares.
func (c Case) check(t assert.TestingT, f Fired) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	want := c.Want
	if want == "" {
		want = hooks.Pass
	}
	assert.Equal(t, string(want), string(f.Decision), "%s: %s", f.Point, f)
	if c.Saying != "" {
		assert.Contains(t, f.Reason, c.Saying, "%s: %s", f.Point, f)
	}
	if c.Leaving != "" {
		assert.Equal(t, c.Leaving, f.Text(), "%s: %s", f.Point, f)
	}
}
