package api

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// Local does for pages in the process what the API does for clients. It checks no role, and adds to the audit log only what WithAuditEntry is given.
type Local struct{ *coordinator.Coordinator }

// ListEvents returns at most limit events of a run after the one with a number: its own, its end, and later hooks' events.
func (l Local) ListEvents(ctx context.Context, id agent.RunID, after int64, limit int) ([]wire.EventView, error) {
	return (&api{Coordinator: l.Coordinator, store: l.Store()}).eventViews(ctx, id, after, limit)
}

// TokenByHash returns what is stored about a valid token, by the hexadecimal SHA-256 of the token. It returns
// durable.ErrNotFound for one that is unknown, was revoked or has expired.
func (l Local) TokenByHash(ctx context.Context, hash string) (wire.Token, error) {
	return findToken(ctx, l.Store(), hash)
}

// WithAuditEntry returns a context for changes with an entry of the audit log, whose ID and time it sets: the first change stores it in its
// transaction. Finish stores it with the outcome if no change has.
func (l Local) WithAuditEntry(ctx context.Context, e wire.AuditEntry) (changing context.Context, finish func(failed error) error) {
	var entry durable.Companion
	entry.Set(func(...durable.Run) durable.Document { return newEntry(e) })
	ctx = durable.WithCompanion(ctx, &entry)
	return ctx, func(err error) error {
		if durable.HasCompanion(ctx) { // no change has stored it
			e.Status = outcomeOf(err)
		}
		return recordNow(ctx, l.Store())
	}
}

// Audit returns a page of the audit log, newest first.
func (l Local) Audit(ctx context.Context, f wire.AuditFilter) (wire.AuditList, error) {
	return listAudit(ctx, l.Store(), f)
}
