// Package nils detects nil pointers and funcs inside interfaces, which a comparison with nil does not detect.
package nils

import "reflect"

// Is reports whether v is nil, or an interface that holds a nil pointer, func or channel. Nil maps and slices do not
// count as nil.
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
