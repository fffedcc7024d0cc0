package client

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The coordinator does the following, or only programs on its store may.

// Reconcile returns a Reconciled that is done.
func (*OperatorStore) Reconcile(context.Context) (durable.Reconciled, error) {
	return durable.Reconciled{Done: true}, nil
}

// RecordPoll returns nil: the coordinator records that it is asked.
func (*OperatorStore) RecordPoll(context.Context, ...durable.Key) error { return nil }

// Owed returns none.
func (*OperatorStore) Owed(context.Context, time.Duration, int) ([]durable.Offer, error) {
	return nil, nil
}

// RecordOffers returns nil.
func (*OperatorStore) RecordOffers(context.Context, ...durable.OfferID) error { return nil }

// Submit returns ErrUnavailable.
func (*OperatorStore) Submit(context.Context, ...durable.Job) ([]durable.Run, error) {
	return nil, ErrUnavailable
}

// Claim returns ErrUnavailable: see Scheduler.
func (*OperatorStore) Claim(context.Context, string, time.Duration, int, ...durable.Key) ([]durable.Run, error) {
	return nil, ErrUnavailable
}

// Delete returns ErrUnavailable.
func (*OperatorStore) Delete(context.Context, agent.RunID) error { return ErrUnavailable }

// Prune returns ErrUnavailable.
func (*OperatorStore) Prune(context.Context, time.Time) (int, error) { return 0, ErrUnavailable }

// WaitByToken returns ErrUnavailable.
func (*OperatorStore) WaitByToken(context.Context, [32]byte) (durable.Wait, error) {
	return durable.Wait{}, ErrUnavailable
}

// SetToken returns ErrUnavailable.
func (*OperatorStore) SetToken(context.Context, agent.RunID, string, [32]byte) error {
	return ErrUnavailable
}

// AddToken returns ErrUnavailable.
func (*OperatorStore) AddToken(context.Context, agent.RunID, string, [32]byte) error {
	return ErrUnavailable
}

// Answer returns ErrUnavailable.
func (*OperatorStore) Answer(context.Context, agent.RunID, durable.AnswerFunc) error {
	return ErrUnavailable
}

// ClaimChecks returns ErrUnavailable.
func (*OperatorStore) ClaimChecks(context.Context, string, time.Duration, int, []durable.WaitKind, ...string) ([]durable.Wait, error) {
	return nil, ErrUnavailable
}

// AddWaiver returns ErrUnavailable.
func (*OperatorStore) AddWaiver(context.Context, durable.Waiver) error { return ErrUnavailable }

// RevokeWaiver returns ErrUnavailable.
func (*OperatorStore) RevokeWaiver(context.Context, string, string) error { return ErrUnavailable }

// PutDocument returns ErrUnavailable.
func (*OperatorStore) PutDocument(context.Context, durable.Document) (durable.Document, error) {
	return durable.Document{}, ErrUnavailable
}

// ListDocuments returns ErrUnavailable.
func (*OperatorStore) ListDocuments(context.Context, string, string, int) ([]durable.Document, error) {
	return nil, ErrUnavailable
}

// DeleteDocument returns ErrUnavailable.
func (*OperatorStore) DeleteDocument(context.Context, string, string) error { return ErrUnavailable }
