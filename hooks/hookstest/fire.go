package hookstest

import (
	"testing"

	"github.com/grapnel-go/grapnel/hooks"
)

// Fire fires a moment for one hook. A moment that cannot be fired ends the test.
func Fire(t testing.TB, hook hooks.Hook, at Moment) Fired {
	t.Helper()
	return FireSet(t, hooks.NewSet(hook), at)
}

// FireSet fires a moment for the set's hooks at its point, in their order. A moment that cannot be fired ends the test.
func FireSet(t testing.TB, set hooks.Set, at Moment) Fired {
	t.Helper()
	fired, err := at.Fire(t.Context(), set).Get()
	if err != nil {
		t.Fatal(err)
	}
	return fired
}
