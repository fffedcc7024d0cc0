package errguard_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/errguard"
)

// broken panics in one of its methods.
type broken struct{ method string }

func (b broken) do(method string) {
	if b.method == method {
		panic("no " + method)
	}
}

func (b broken) Error() string { b.do("Error"); return "broken" }
func (b broken) Unwrap() error { b.do("Unwrap"); return nil }
func (b broken) Is(error) bool { b.do("Is"); return false }
func (b broken) As(any) bool   { b.do("As"); return false }

func TestCheck(t *testing.T) {
	require.NoError(t, errguard.Check(nil))
	var missing *os.PathError
	fine := errors.Join(fmt.Errorf("outer: %w", errors.New("inner")), broken{})
	assert.Equal(t, fine, errguard.Check(fine))
	require.EqualError(t, errguard.Check(missing), "an error that is a nil *fs.PathError")
	for _, method := range []string{"Error", "Unwrap", "Is", "As"} {
		require.ErrorContains(t, errguard.Check(broken{method}), "whose methods panic: no "+method)
	}
	for _, method := range []string{"Unwrap", "Is", "As"} {
		require.ErrorContains(t, errguard.Check(fmt.Errorf("outer: %w", broken{method})), "whose methods panic: no "+method)
	}
}
