package durable

import (
	"context"
	"sync/atomic"
)

// Companion is a document that a Store stores in one transaction with the next change that it makes for a context: either both are
// stored or neither. It tells who has asked for the change, for example. Claim, Renew and RecordPoll store none. It is safe for concurrent use.
type Companion struct {
	newDocument atomic.Pointer[func() Document]
}

// Set sets the document, which must be a new one. The store calls newDocument when it makes the change.
func (c *Companion) Set(newDocument func() Document) { c.newDocument.Store(&newDocument) }

type companionKey struct{}

// WithCompanion returns a context for changes with a companion.
func WithCompanion(ctx context.Context, c *Companion) context.Context {
	return context.WithValue(ctx, companionKey{}, c)
}

// HasCompanion reports whether a context has a companion that no change has stored.
func HasCompanion(ctx context.Context) bool {
	c, _ := ctx.Value(companionKey{}).(*Companion)
	return c != nil && c.newDocument.Load() != nil
}

// TakeCompanion returns the document that a Store must store with the next change for a context, nil for none, and a function that the
// Store calls with the error of the change: a later change stores the document of one that failed.
func TakeCompanion(ctx context.Context) (d *Document, over func(err error)) {
	c, _ := ctx.Value(companionKey{}).(*Companion)
	if c == nil {
		return nil, func(error) {}
	}
	newDocument := c.newDocument.Swap(nil)
	if newDocument == nil {
		return nil, func(error) {}
	}
	made := (*newDocument)()
	return &made, func(err error) {
		if err != nil {
			c.Set(func() Document { return made })
		}
	}
}
