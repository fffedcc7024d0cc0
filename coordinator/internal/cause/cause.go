// Package cause gives a client the error of a handler in its own process, so that the error keeps its type: packages api and client, which do
// not import each other, share it.
package cause

import "context"

type key struct{}

// Into returns a context for a request, and where its error will be.
func Into(ctx context.Context) (context.Context, *error) {
	err := new(error)
	return context.WithValue(ctx, key{}, err), err
}

// Set records the error of a request. It does nothing for a request from another process.
func Set(ctx context.Context, err error) {
	if at, ok := ctx.Value(key{}).(*error); ok {
		*at = err
	}
}
