// Package parking carries, in a context, the place where the gates of a firing wait: from the engine that fires a point
// around runs to the actions of its hooks. The two packages do not import each other.
package parking

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// Place is where gates wait without a process.
type Place interface {
	// Park returns the answer to a question, which id identifies in its run. Without an answer, it records the question and
	// ends the firing: it cancels its context and returns an error. When the run has the answer, the engine repeats the
	// firing. It returns ErrExpired when the time for an answer has passed.
	Park(ctx context.Context, id string, q agent.Question) (agent.Approval, error)
}

// ErrExpired is returned when the time for an answer has passed.
var ErrExpired = errors.New("the time for an answer has passed")

type placeKey struct{}

// Into returns ctx with a place.
func Into(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, placeKey{}, p) }

// From returns the place that Into stored. It returns nil where gates block.
func From(ctx context.Context) Place {
	p, _ := ctx.Value(placeKey{}).(Place)
	return p
}
