package api

import (
	"context"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// Reader reads for pages in the process what the API reads for clients. It checks no role.
type Reader struct{ *coordinator.Coordinator }

// ListEvents returns at most limit events of a run after the one with a number: its own, its end, and later hooks' events.
func (r Reader) ListEvents(ctx context.Context, id agent.RunID, after int64, limit int) ([]wire.EventView, error) {
	return (&api{Coordinator: r.Coordinator, store: r.Store()}).eventViews(ctx, id, after, limit)
}

// TokenByHash returns what is stored about a valid token, by the hexadecimal SHA-256 of the token. It returns
// durable.ErrNotFound for one that is unknown, was revoked or has expired.
func (r Reader) TokenByHash(ctx context.Context, hash string) (wire.Token, error) {
	return findToken(ctx, r.Store(), hash)
}
