package otelsetup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLinesOfTheTreeWrapAtWords(t *testing.T) {
	var b strings.Builder
	(&Tree{Width: 20}).writeWrapped(&b, "tool bash  3ms  denied by a rule", 3, "│    ")
	assert.Equal(t, "tool bash  3ms \n│    denied by a\n│    rule\n", b.String())
	b.Reset()
	(&Tree{}).writeWrapped(&b, "tool bash  3ms  denied by a rule", 3, "│    ")
	assert.Equal(t, "tool bash  3ms  denied by a rule\n", b.String())
}
