package durable

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// RequirePlain returns a store without encryption that never returns encrypted data: reading what Encrypt has encrypted
// returns a *DecryptError with the key that is needed. It does not change what is written.
func RequirePlain(s Store) Store { return plainStore{encrypted{Store: s, allowPlain: true}} }

// plainStore reads as an encrypted store without keys, and writes to the inner store.
type plainStore struct{ encrypted }

// Submit implements Store.
func (x plainStore) Submit(ctx context.Context, jobs ...Job) ([]Run, error) {
	return x.Store.Submit(ctx, jobs...)
}

// Begin implements Store.
func (x plainStore) Begin(ctx context.Context, j Job, owner string, ttl time.Duration) (Lease, error) {
	return x.Store.Begin(ctx, j, owner, ttl)
}

// Commit implements Store.
func (x plainStore) Commit(ctx context.Context, l Lease, c Commit) error {
	return x.Store.Commit(ctx, l, c)
}

// Signal implements Store.
func (x plainStore) Signal(ctx context.Context, id agent.RunID, s Signal) error {
	return x.Store.Signal(ctx, id, s)
}

// Answer implements Store.
func (x plainStore) Answer(ctx context.Context, id agent.RunID, answers ...Answer) error {
	return x.Store.Answer(ctx, id, answers...)
}

// AddWaiver implements Store.
func (x plainStore) AddWaiver(ctx context.Context, w Waiver) error {
	return x.Store.AddWaiver(ctx, w)
}
