package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// OperatorStore is the part of a coordinator's store that operators need, over HTTP: a durable.Store that reads runs and what they wait
// for, and that steers and answers them, under the name of the token. All other methods return an error. It is safe for concurrent use.
type OperatorStore struct {
	*Store
}

var (
	_ durable.Store   = (*OperatorStore)(nil)
	_ durable.Decider = (*OperatorStore)(nil)
)

// OperatorStore returns the store of an operator. The token needs the role operator or admin.
func (c *Client) OperatorStore() *OperatorStore {
	return &OperatorStore{c.Store("operator", StoreOptions{})}
}

// request calls a method of the store at the coordinator and reads its result into out, which may be nil.
func (s *OperatorStore) request(ctx context.Context, method string, out any, args ...any) error {
	if args == nil {
		args = []any{}
	}
	var answer struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := s.c.call(ctx, http.MethodPost, "/store/"+method, nil, nil, args, &answer); err != nil || out == nil {
		return err
	}
	if len(answer.Results) != 1 {
		return fmt.Errorf("the coordinator returned %d results of %s: use equal releases", len(answer.Results), method)
	}
	return json.Unmarshal(answer.Results[0], out)
}

// Run returns a run.
func (s *OperatorStore) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.request(ctx, "Run", &r, id)
	return r, err
}

// List returns runs: see durable.Catalogue.
func (s *OperatorStore) List(ctx context.Context, f durable.Filter) (all []durable.Run, err error) {
	err = s.request(ctx, "List", &all, f)
	return all, err
}

// Input returns the input of a run.
func (s *OperatorStore) Input(ctx context.Context, id agent.RunID) (data []byte, err error) {
	err = s.request(ctx, "Input", &data, id)
	return data, err
}

// SubmittedInput returns the first input of a run.
func (s *OperatorStore) SubmittedInput(ctx context.Context, id agent.RunID) (data []byte, err error) {
	err = s.request(ctx, "SubmittedInput", &data, id)
	return data, err
}

// Entries returns the journal of a run after an entry.
func (s *OperatorStore) Entries(ctx context.Context, id agent.RunID, after int64) (all []durable.Entry, err error) {
	err = s.request(ctx, "Entries", &all, id, after)
	return all, err
}

// Waits returns what a run waits for.
func (s *OperatorStore) Waits(ctx context.Context, id agent.RunID) (all []durable.Wait, err error) {
	err = s.request(ctx, "Waits", &all, id)
	return all, err
}

// Result returns the data that a run ended with.
func (s *OperatorStore) Result(ctx context.Context, id agent.RunID) (data []byte, err error) {
	err = s.request(ctx, "Result", &data, id)
	return data, err
}

// Events returns events of a run after the one with a number.
func (s *OperatorStore) Events(ctx context.Context, id agent.RunID, after int64, limit int) (all []durable.Event, err error) {
	err = s.request(ctx, "Events", &all, id, after, limit)
	return all, err
}

// OpenWaits returns what runs wait for: see durable.Inbox.
func (s *OperatorStore) OpenWaits(ctx context.Context, f durable.WaitFilter) (all []durable.Wait, err error) {
	err = s.request(ctx, "OpenWaits", &all, f)
	return all, err
}

// AuditRecords returns records of the audit log.
func (s *OperatorStore) AuditRecords(ctx context.Context, f durable.AuditFilter) (all []durable.AuditRecord, err error) {
	err = s.request(ctx, "AuditRecords", &all, f)
	return all, err
}

// Waivers returns waivers.
func (s *OperatorStore) Waivers(ctx context.Context, all bool) (list []durable.Waiver, err error) {
	err = s.request(ctx, "Waivers", &list, all)
	return list, err
}

// Queues returns the needs of all runs.
func (s *OperatorStore) Queues(ctx context.Context) (all []durable.Needs, err error) {
	err = s.request(ctx, "Queues", &all)
	return all, err
}

// QueueServices returns how queues are served.
func (s *OperatorStore) QueueServices(ctx context.Context, keys ...durable.Key) (all map[durable.Key]durable.Service, err error) {
	err = s.request(ctx, "QueueServices", &all, keys)
	return all, err
}

// Signal sends a signal to a run.
func (s *OperatorStore) Signal(ctx context.Context, id agent.RunID, signal durable.Signal) error {
	return s.request(ctx, "Signal", nil, id, signal)
}

// DenyTools returns the switch that denies every tool.
func (s *OperatorStore) DenyTools(ctx context.Context) (deny durable.Switch, err error) {
	err = s.request(ctx, "DenyTools", &deny)
	return deny, err
}

// SetDenyTools sets the switch that denies every tool.
func (s *OperatorStore) SetDenyTools(ctx context.Context, deny durable.Switch) error {
	return s.request(ctx, "SetDenyTools", nil, deny)
}

// KeyID returns the empty string: the coordinator encrypts and decrypts.
func (*OperatorStore) KeyID(context.Context) (string, error) { return "", nil }

// Changes returns a channel that is closed when ctx is done or the store is closed: callers look for themselves now and then.
func (s *OperatorStore) Changes(ctx context.Context) <-chan struct{} {
	out := make(chan struct{})
	s.watching.Go(func() {
		defer close(out)
		select {
		case <-ctx.Done():
		case <-s.closed.Done():
		}
	})
	return out
}

// Decide records an answer at the coordinator: see durable.Decide. The name of the token is its author, and it names the questions that
// it covers. The error for what is not open any more is a *durable.NotOpenError without details.
func (s *OperatorStore) Decide(ctx context.Context, w durable.Wait, a agent.Approval) (decided durable.Wait, err error) {
	in := wire.StoreAnswer{Run: w.Run, Wait: w.ID, Answer: a}
	err = s.c.call(ctx, http.MethodPost, "/store-answers", nil, nil, in, &decided)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusConflict {
		for _, why := range []error{durable.ErrAnswered, durable.ErrChanged, durable.ErrExpired} {
			if slices.ContainsFunc(refused.Errors, func(f FieldError) bool { return f.Message == why.Error() }) {
				return decided, &durable.NotOpenError{Run: w.Run, Wait: w.ID, Err: why}
			}
		}
	}
	return decided, err
}
