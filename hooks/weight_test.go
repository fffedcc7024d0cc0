package hooks_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/hooks"
)

// A package compiles all methods of every generic type again that it can reach through fields. Compiled has one for each context.
func TestCompiledHidesItsPoints(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		isOurs := strings.HasSuffix(of.PkgPath(), "/grapnel/hooks")
		assert.False(t, isOurs && strings.Contains(of.Name(), "["), "%s is generic", of)
		switch of.Kind() {
		case reflect.Struct:
			for f := range of.Fields() {
				walk(f.Type)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(of.Elem())
		case reflect.Map:
			walk(of.Key())
			walk(of.Elem())
		}
	}
	walk(reflect.TypeFor[hooks.Compiled]())
	assert.Contains(t, seen, reflect.TypeFor[hooks.Hook](), "fields were looked at")
}
