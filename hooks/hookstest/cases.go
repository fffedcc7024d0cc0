package hookstest

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
)

// Case is a row of a test table: a moment and the expected result.
type Case struct {
	// At is the moment to fire.
	At Moment
	// Want is the expected decision. Empty means hooks.Pass: no opinion, or not called.
	Want hooks.Decision
	// Saying is text that the reason must contain. Empty accepts any reason.
	Saying string
	// Leaving is the expected Fired.Text. Empty accepts any text.
	Leaving string
	// Also, unless nil, makes further checks.
	Also func(t *testing.T, f Fired)
}

// Cases maps subtest names to their cases.
type Cases map[string]Case

// Test fires each case's moment for the hook.
func (cases Cases) Test(t *testing.T, hook hooks.Hook) {
	t.Helper()
	cases.TestSet(t, hooks.NewSet(hook))
}

// TestSet fires each case's moment for the set's hooks.
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

// check compares a fired moment with the case.
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
