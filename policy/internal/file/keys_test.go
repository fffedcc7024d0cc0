package file

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Every field with a key can be read, and says in the schema what it accepts.
func TestKeysAreDescribedAndRead(t *testing.T) {
	root, ok := yamlfile.Parse("a.yaml", []byte("a: b")).Root()
	require.True(t, ok)
	structs := []any{Head{}, Common{}, Decides{}, Acts{}, Defaults{}, Waiver{}, Match{}}
	for _, o := range slices.Concat(decisionKeys, actionKeys) {
		structs = append(structs, o.keys)
	}
	keys := keysIn(structs...)
	require.Greater(t, len(keys), 60)
	for _, k := range keys {
		assert.NotEmpty(t, k.doc, k.name)
		assert.NotNil(t, k.valueForm(), k.name)
		assert.NotPanics(t, func() { k.read(root.Find("a"), reflect.New(k.of).Interface()) }, k.name)
	}
}
