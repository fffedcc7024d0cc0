package registry_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Whatever the bytes, there is a file or a list of problems at places that are in it.
func FuzzParse(f *testing.F) {
	f.Add("f.yaml", clerk)
	f.Add("f.json", `{"name": "x", "tools": ["pay"], "hooks": [{"log": {"file": ["a"]}}]}`)
	f.Add("f.yaml", "name: x\na: &a [b, b, b]\nc: &c [*a, *a, *a]\nd: [*c, *c, *c]\n")
	f.Add("f.yaml", "a: *b\n? [x]\n: !!x y\n<<: {}\n")
	f.Add("f.yaml", "name: a\nguards:\n  steps: \"viele 日本\x1b[2J\"\n")
	known := newWorld()
	f.Fuzz(func(t *testing.T, name, text string) {
		file, err := known.Parse(name, []byte(text))
		if err == nil {
			require.NotNil(t, file)
			return
		}
		wrong, ok := errors.AsType[*yamlfile.Error](err)
		require.True(t, ok)
		require.NotEmpty(t, wrong.Problems)
		for _, p := range wrong.Problems {
			assert.LessOrEqual(t, p.Line, len(text)+1)
			assert.GreaterOrEqual(t, p.Column, 0)
			assert.NotContains(t, p.String(), "\x1b")
		}
	})
}
