package api

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// Local does for pages in the process what the API does for clients. It checks no role, and adds to the audit log only what AddAuditEntry is given.
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

// AddAuditEntry adds an entry to the audit log, and sets its ID and time. What it is about must not be carried out when that fails.
func (l Local) AddAuditEntry(ctx context.Context, e wire.AuditEntry) error {
	if _, err := l.Store().PutDocument(ctx, newEntry(e)); err != nil {
		return fmt.Errorf("writing to the audit log: %w", err)
	}
	return nil
}
