package bash_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy/bash"
)

// Hosts beyond the limit are not dropped silently.
func TestTooManyBareHosts(t *testing.T) {
	t.Parallel()
	few := bash.Analyse("unknown-tool good.example evil.example", bash.Options{})
	assert.True(t, few.Clear())
	assert.Len(t, few.Hosts, 2)
	many := bash.Analyse("unknown-tool "+strings.Repeat("good.example ", 20_000)+"evil.example", bash.Options{})
	assert.False(t, many.Clear())
}
