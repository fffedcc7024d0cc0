package runctx

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// Place is where gates wait without a process. The engine that fires a point around runs sets it.
type Place interface {
	// Park returns the answer to a question, which id identifies within its run. Without an answer, it records the
	// question and ends the firing: it cancels the firing's context and returns an error. When the run has the
	// answer, the engine repeats the firing. Park returns ErrExpired when the time for an answer has passed.
	Park(ctx context.Context, id string, q agent.Question) (agent.Approval, error)
}

// ErrExpired is returned when the time for an answer has passed.
var ErrExpired = errors.New("the time for an answer has passed")

type placeKey struct{}

// WithPlace returns ctx with a place.
func WithPlace(ctx context.Context, p Place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// PlaceOf returns the place in ctx, or nil where gates block.
func PlaceOf(ctx context.Context) Place {
	p, _ := ctx.Value(placeKey{}).(Place)
	return p
}
