package bash

import (
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unclosed quote is reported, and the line is judged as if the quote were closed at its end; no other mistake is
// repaired.
func TestOpenQuotes(t *testing.T) {
	for line, want := range map[string][]string{
		`echo "find . -delete`:          {"echo"},
		"git log; rm 'x":                {"git", "rm"},
		"rm x\necho 'open":              {"rm", "echo"},
		`echo "a $(rm x) b`:             {"echo", "rm"},
		"bash -c 'rm x":                 {"bash", "rm"},
		`echo 'a' "it's`:                {"echo"},
		"x=$'open":                      nil,
		"echo $(echo 'a":                nil,
		"ls ) 'x":                       nil,
		"ls &&& rm 'x":                  nil,
		"if true; then echo 'x":         nil,
		"echo `rm 'x":                   nil,
		"cat <<EOF\n'open":              nil,
		`echo "${x:-'}`:                 nil,
		"ls; " + `case x in "a) rm y`:   nil,
		`echo "closed" 'too' `:          {"echo"},
		"echo 'one' && rm \"two\" 'and": {"echo", "rm"},
	} {
		a := Analyse(line, Options{})
		if want == nil {
			assert.False(t, a.OpenQuote, line)
			continue
		}
		names := lo.Map(a.Commands, func(c Command, _ int) string { return c.Name })
		assert.ElementsMatch(t, want, names, line)
		if a.OpenQuote {
			require.NotNil(t, a.Unparseable, line)
			assert.False(t, a.Clear(), line)
		} else {
			assert.True(t, a.Clear(), line)
		}
	}
}
