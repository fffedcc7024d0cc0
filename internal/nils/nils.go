// Package nils detects nil pointers and funcs inside interfaces, which a comparison with nil misses.
package nils

import "reflect"

// Is reports whether v is nil or holds a nil pointer, func or channel. It returns false for nil maps and slices.
func Is(v any) bool {
	if v == nil {
		return true
	}
	switch of := reflect.ValueOf(v); of.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Chan:
		return of.IsNil()
	}
	return false
}
