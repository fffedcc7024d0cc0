package durable

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// RequirePlain returns a store without encryption that never returns encrypted data: reading what Encrypt has encrypted
// returns a *DecryptError with the key that is needed. So does writing data to a store in which Encrypt has written. A signal
// without a text, the switch and a deletion need no key.
func RequirePlain(s Store) Store {
	return plainStore{encrypted{Store: s, allowPlain: true, marks: new(keyMark)}}
}

// plainStore reads as an encrypted store without keys, and writes to the inner store.
type plainStore struct{ encrypted }

// refuse returns an error if the store has encrypted data.
func (x plainStore) refuse(ctx context.Context) error {
	return x.marks.runOnce(func() error {
		id, err := x.KeyID(ctx)
		if err == nil && id != "" {
			err = &DecryptError{Of: "the store", Key: id, Why: "its data is encrypted, and plain data must not be written to it: configure key " + id}
		}
		return err
	})
}

// Submit implements Store.
func (x plainStore) Submit(ctx context.Context, jobs ...Job) ([]Run, error) {
	if err := x.refuse(ctx); err != nil {
		return nil, err
	}
	return x.Store.Submit(ctx, jobs...)
}

// Begin implements Store.
func (x plainStore) Begin(ctx context.Context, j Job, owner string, ttl time.Duration) (Lease, error) {
	if err := x.refuse(ctx); err != nil {
		return Lease{}, err
	}
	return x.Store.Begin(ctx, j, owner, ttl)
}

// Commit implements Store.
func (x plainStore) Commit(ctx context.Context, l Lease, c Commit) error {
	if err := x.refuse(ctx); err != nil {
		return err
	}
	return x.Store.Commit(ctx, l, c)
}

// Signal implements Store.
func (x plainStore) Signal(ctx context.Context, id agent.RunID, s Signal) error {
	if s.hasText() {
		if err := x.refuse(ctx); err != nil {
			return err
		}
	}
	return x.Store.Signal(ctx, id, s)
}

// Answer implements Store.
func (x plainStore) Answer(ctx context.Context, id agent.RunID, form AnswerFunc) error {
	if err := x.refuse(ctx); err != nil {
		return err
	}
	return x.Store.Answer(ctx, id, form)
}

// PutDocument implements Store.
func (x plainStore) PutDocument(ctx context.Context, d Document) (Document, error) {
	if err := x.refuse(ctx); err != nil {
		return Document{}, err
	}
	return x.Store.PutDocument(ctx, d)
}

// AddWaiver implements Store.
func (x plainStore) AddWaiver(ctx context.Context, w Waiver) error {
	if err := x.refuse(ctx); err != nil {
		return err
	}
	return x.Store.AddWaiver(ctx, w)
}
