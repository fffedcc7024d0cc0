package lazy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/lazy"
)

func TestRegexpCompilesOnce(t *testing.T) {
	digits := lazy.Regexp(`^[0-9]+$`)
	assert.True(t, digits().MatchString("42"))
	assert.False(t, digits().MatchString("x"))
	first := digits()
	assert.Same(t, first, digits())
}

func TestRegexpCompilesWhenUsed(t *testing.T) {
	wrong := lazy.Regexp(`(`)
	assert.Panics(t, func() { wrong() })
}
