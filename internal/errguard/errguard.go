// Package errguard keeps errors whose methods panic, such as nil pointers of an error type, from taking a run down.
package errguard

import (
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/nils"
)

// Check returns err, or an error that names its type when one of the methods Error, Unwrap, Is and As of err, or of an
// error that it wraps, panics. Nil stays nil.
func Check(err error) error {
	if err == nil { // apart, to be inlined
		return nil
	}
	return checkTree(err)
}

func checkTree(err error) (checked error) {
	defer func() {
		switch value := recover(); {
		case value == nil:
		case nils.Is(err):
			checked = fmt.Errorf("an error that is a nil %T", err)
		default:
			checked = fmt.Errorf("an error of type %T whose methods panic: %v", err, value)
		}
	}()
	_ = err.Error()
	var none *neverError
	errors.As(err, &none)
	errors.Is(err, none)
	return err
}

// neverError is the type of no error, so that the whole tree of an error is walked for it.
type neverError struct{}

func (*neverError) Error() string { return "" }
