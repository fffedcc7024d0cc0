package jsonschema

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compiledAtStart tells whether a metaschema was compiled before anything asked for a compiler.
var compiledAtStart bool

func TestMain(m *testing.M) {
	compiledAtStart = Draft2020.sch != nil
	os.Exit(m.Run())
}

func TestTheFirstCompilerCompilesTheDrafts(t *testing.T) {
	assert.False(t, compiledAtStart, "the metaschemas are compiled when the program starts: lazy.patch is not applied")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c := NewCompiler()
			if assert.NoError(t, c.AddResource("mem:///wrong", map[string]any{"type": 1})) {
				_, err := c.Compile("mem:///wrong")
				assert.ErrorContains(t, err, "is not valid against metaschema")
			}
		})
	}
	all.Wait()
	for _, d := range []*Draft{Draft4, Draft6, Draft7, Draft2019, Draft2020} {
		require.NotNil(t, d.sch, d.String())
		for name, vocabulary := range d.allVocabs {
			assert.NotNil(t, vocabulary, name)
		}
	}
}
