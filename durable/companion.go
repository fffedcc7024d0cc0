package durable

import (
	"context"
	"sync/atomic"
)

// Companion is a document that a Store stores in one transaction with the next change that it makes for a context: either both are
// stored or neither. It tells who has asked for the change, for example. Renew and RecordPoll store none, and neither does a Claim
// that finds no run. It is safe for concurrent use.
type Companion struct{ document atomic.Pointer[NewDocument] }

// NewDocument returns a document, which must be a new one. Claimed are the runs of a Claim.
type NewDocument func(claimed ...Run) Document

// Set sets the document. The store calls document when it makes the change. Nil means none.
func (c *Companion) Set(document NewDocument) {
	if document == nil {
		c.document.Store(nil)
		return
	}
	c.document.Store(&document)
}

type companionKey struct{}

// WithCompanion returns a context for changes with a companion; nil for none.
func WithCompanion(ctx context.Context, c *Companion) context.Context {
	return context.WithValue(ctx, companionKey{}, c)
}

// HasCompanion reports whether a context has a companion that no change has stored.
func HasCompanion(ctx context.Context) bool {
	c, _ := ctx.Value(companionKey{}).(*Companion)
	return c != nil && c.document.Load() != nil
}

// TakeCompanion returns the document that a Store must store with the next change for a context, nil for none, and a function that the
// Store calls with whether it has done so: if not, a later change does.
func TakeCompanion(ctx context.Context) (document NewDocument, over func(stored bool)) {
	c, _ := ctx.Value(companionKey{}).(*Companion)
	if c == nil {
		return nil, func(bool) {}
	}
	taken := c.document.Swap(nil)
	if taken == nil {
		return nil, func(bool) {}
	}
	return *taken, func(stored bool) {
		if !stored {
			c.document.Store(taken)
		}
	}
}
