// Package nils finds nil pointers and funcs that stand in an interface, which a comparison with nil does not.
package nils

import "reflect"

// Is reports whether v is nil, or an interface that holds a nil pointer, func or channel. A nil map or slice is a
// value like any other.
func Is(v any) bool {
	if v == nil {
		return true
	}
	switch of := reflect.ValueOf(v); of.Kind() { //nolint:exhaustive // the others are never nil, or good for something
	case reflect.Pointer, reflect.Func, reflect.Chan:
		return of.IsNil()
	}
	return false
}
