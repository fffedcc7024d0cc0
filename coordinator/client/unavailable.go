package client

import (
	"context"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// The coordinator does what follows for all runners: it reconciles its store and delivers runs.

// Reconcile returns a Reconciled that is done.
func (*Store) Reconcile(context.Context) (durable.Reconciled, error) {
	return durable.Reconciled{Done: true}, nil
}

// Queues returns none.
func (*Store) Queues(context.Context) ([]durable.Needs, error) { return nil, nil }

// RecordPoll returns nil: the coordinator records that it is asked.
func (*Store) RecordPoll(context.Context, ...durable.Key) error { return nil }

// QueueServices returns none.
func (*Store) QueueServices(context.Context, ...durable.Key) (map[durable.Key]durable.Service, error) {
	return nil, nil //nolint:nilnil // an empty map
}

// Owed returns none.
func (*Store) Owed(context.Context, time.Duration, int) ([]durable.Offer, error) { return nil, nil }

// RecordOffers returns nil.
func (*Store) RecordOffers(context.Context, ...durable.OfferID) error { return nil }

// OpenWaits returns none.
func (*Store) OpenWaits(context.Context, durable.WaitFilter) ([]durable.Wait, error) { return nil, nil }

// What follows is not for runners.

// Submit returns ErrUnavailable.
func (*Store) Submit(context.Context, ...durable.Job) ([]durable.Run, error) {
	return nil, ErrUnavailable
}

// Begin returns ErrUnavailable.
func (*Store) Begin(context.Context, durable.Job, string, time.Duration) (durable.Lease, error) {
	return durable.Lease{}, ErrUnavailable
}

// Acquire returns ErrUnavailable.
func (*Store) Acquire(context.Context, agent.RunID, string, time.Duration, durable.Take) (durable.Lease, error) {
	return durable.Lease{}, ErrUnavailable
}

// Claim returns ErrUnavailable: see Scheduler.
func (*Store) Claim(context.Context, string, time.Duration, int, ...durable.Key) ([]durable.Run, error) {
	return nil, ErrUnavailable
}

// List returns ErrUnavailable.
func (*Store) List(context.Context, durable.Filter) ([]durable.Run, error) {
	return nil, ErrUnavailable
}

// SubmittedInput returns ErrUnavailable.
func (*Store) SubmittedInput(context.Context, agent.RunID) ([]byte, error) {
	return nil, ErrUnavailable
}

// Result returns ErrUnavailable.
func (*Store) Result(context.Context, agent.RunID) ([]byte, error) { return nil, ErrUnavailable }

// Events returns ErrUnavailable.
func (*Store) Events(context.Context, agent.RunID, int64, int) ([]durable.Event, error) {
	return nil, ErrUnavailable
}

// Signal returns ErrUnavailable.
func (*Store) Signal(context.Context, agent.RunID, durable.Signal) error { return ErrUnavailable }

// SetDenyTools returns ErrUnavailable.
func (*Store) SetDenyTools(context.Context, durable.Switch) error { return ErrUnavailable }

// Delete returns ErrUnavailable.
func (*Store) Delete(context.Context, agent.RunID) error { return ErrUnavailable }

// Prune returns ErrUnavailable.
func (*Store) Prune(context.Context, time.Time) (int, error) { return 0, ErrUnavailable }

// WaitByToken returns ErrUnavailable.
func (*Store) WaitByToken(context.Context, [32]byte) (durable.Wait, error) {
	return durable.Wait{}, ErrUnavailable
}

// SetToken returns ErrUnavailable.
func (*Store) SetToken(context.Context, agent.RunID, string, [32]byte) error {
	return ErrUnavailable
}

// AddToken returns ErrUnavailable.
func (*Store) AddToken(context.Context, agent.RunID, string, [32]byte) error {
	return ErrUnavailable
}

// Answer returns ErrUnavailable.
func (*Store) Answer(context.Context, agent.RunID, durable.AnswerFunc) error { return ErrUnavailable }

// ClaimChecks returns ErrUnavailable.
func (*Store) ClaimChecks(context.Context, string, time.Duration, int, []durable.WaitKind, ...string) ([]durable.Wait, error) {
	return nil, ErrUnavailable
}

// AuditRecords returns ErrUnavailable.
func (*Store) AuditRecords(context.Context, durable.AuditFilter) ([]durable.AuditRecord, error) {
	return nil, ErrUnavailable
}

// AddWaiver returns ErrUnavailable.
func (*Store) AddWaiver(context.Context, durable.Waiver) error { return ErrUnavailable }

// RevokeWaiver returns ErrUnavailable.
func (*Store) RevokeWaiver(context.Context, string, string) error { return ErrUnavailable }

// Waivers returns ErrUnavailable.
func (*Store) Waivers(context.Context, bool) ([]durable.Waiver, error) { return nil, ErrUnavailable }

// PutDocument returns ErrUnavailable.
func (*Store) PutDocument(context.Context, durable.Document) (durable.Document, error) {
	return durable.Document{}, ErrUnavailable
}

// ListDocuments returns ErrUnavailable.
func (*Store) ListDocuments(context.Context, string, string, int) ([]durable.Document, error) {
	return nil, ErrUnavailable
}

// DeleteDocument returns ErrUnavailable.
func (*Store) DeleteDocument(context.Context, string, string) error { return ErrUnavailable }
