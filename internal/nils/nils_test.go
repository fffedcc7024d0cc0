package nils_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/nils"
)

func TestIs(t *testing.T) {
	var err *testError
	var f func()
	var c chan int
	for _, v := range []any{nil, err, error(err), f, c} {
		assert.True(t, nils.Is(v), "%T", v)
	}
	for _, v := range []any{&testError{}, errors.New("x"), func() {}, map[string]int(nil), []int(nil), 0, ""} {
		assert.False(t, nils.Is(v), "%T", v)
	}
}

type testError struct{}

func (*testError) Error() string { return "" }
