// Package errguard protects runs against errors whose methods panic, such as nil pointers of an error type.
package errguard

import (
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/nils"
)

// Check returns err if the methods Error, Unwrap, Is and As of all errors in its tree do not panic. Otherwise it
// returns an error that names the faulty error's type. Check(nil) is nil.
func Check(err error) error {
	if err == nil { // a separate function allows Check to be inlined
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

// neverError is a type that no error has. errors.As with this target walks the whole error tree.
type neverError struct{}

func (*neverError) Error() string { return "" }
