package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// OperatorStore is the part of a coordinator's store that operators need, over HTTP: it shows runs and what they wait for, and steers and
// answers them, under the name of the token. It is safe for concurrent use.
type OperatorStore struct{ c *Client }

var (
	_ durable.Lister      = (*OperatorStore)(nil)
	_ durable.AnswerStore = (*OperatorStore)(nil)
	_ durable.Decider     = (*OperatorStore)(nil)
)

// OperatorStore returns the store of an operator. The token needs the role operator or admin.
func (c *Client) OperatorStore() *OperatorStore {
	return &OperatorStore{c}
}

// get reads something of the store.
func (s *OperatorStore) get(ctx context.Context, path string, query url.Values, out any) error {
	return s.c.call(ctx, http.MethodGet, path, query, nil, nil, out)
}

// queryOf returns a query without empty values.
func queryOf(values map[string]string) url.Values {
	query := url.Values{}
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// numberText returns a number as queries have it; empty for zero.
func numberText[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// timeText returns a time as queries have it; empty for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// storedPath returns the path of a run as the store has it.
func storedPath(id agent.RunID, rest string) string {
	return strings.Replace(runPath(id, rest), "/", "/stored-", 1)
}

// Run returns a run.
func (s *OperatorStore) Run(ctx context.Context, id agent.RunID) (r durable.Run, err error) {
	err = s.get(ctx, storedPath(id, ""), nil, &r)
	return r, err
}

// List returns runs: see durable.Catalogue.
func (s *OperatorStore) List(ctx context.Context, f durable.Filter) ([]durable.Run, error) {
	query := queryOf(map[string]string{
		"kind": string(f.Kind), "phase": string(f.Phase), "name": f.Name, "session": string(f.Session), "parent": string(f.Parent),
		"label": f.Label.Name, "value": f.Label.Value, "since": timeText(f.Since), "until": timeText(f.Until), "before": string(f.Before),
		"limit": numberText(f.Limit), "decision": string(f.Decision), "hook": f.Hook, "by": f.By,
	})
	for _, status := range f.Status {
		query.Add("status", string(status))
	}
	for name, isSet := range map[string]bool{"blocked": f.Blocked, "top": f.Top} {
		if isSet {
			query.Set(name, "true")
		}
	}
	var out struct {
		Runs []durable.Run `json:"runs"`
	}
	err := s.get(ctx, "/stored-runs", query, &out)
	return out.Runs, err
}

// data reads what is opaque to the store.
func (s *OperatorStore) data(ctx context.Context, path string, query url.Values) ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := s.get(ctx, path, query, &out)
	return out.Data, err
}

// Input returns the input of a run.
func (s *OperatorStore) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.data(ctx, runPath(id, "input"), nil)
}

// SubmittedInput returns the first input of a run.
func (s *OperatorStore) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.data(ctx, runPath(id, "input"), url.Values{"submitted": {"true"}})
}

// Result returns the data that a run ended with.
func (s *OperatorStore) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.data(ctx, runPath(id, "result"), nil)
}

// Entries returns the journal of a run after an entry.
func (s *OperatorStore) Entries(ctx context.Context, id agent.RunID, after int64) ([]durable.Entry, error) {
	var out wire.Journal
	err := s.get(ctx, runPath(id, "entries"), queryOf(map[string]string{"after": numberText(after)}), &out)
	return out.Entries, err
}

// Waits returns what a run waits for.
func (s *OperatorStore) Waits(ctx context.Context, id agent.RunID) ([]durable.Wait, error) {
	var out wire.Journal
	err := s.get(ctx, runPath(id, "waits"), nil, &out)
	return out.Waits, err
}

// Events returns events of a run after the one with a number.
func (s *OperatorStore) Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]durable.Event, error) {
	var out struct {
		Events []durable.Event `json:"events"`
	}
	query := queryOf(map[string]string{"after": numberText(after), "limit": numberText(limit)})
	err := s.get(ctx, storedPath(id, "events"), query, &out)
	return out.Events, err
}

// OpenWaits returns what runs wait for: see durable.Inbox.
func (s *OperatorStore) OpenWaits(ctx context.Context, f durable.WaitFilter) ([]durable.Wait, error) {
	query := queryOf(map[string]string{"run": string(f.Run), "limit": numberText(f.Limit)})
	for _, kind := range f.Kinds {
		query.Add("kind", string(kind))
	}
	if f.Expired {
		query.Set("expired", "true")
	}
	if f.After != nil {
		query.Set("after_asked", timeText(f.After.Asked))
		query.Set("after_run", string(f.After.Run))
		query.Set("after_wait", f.After.ID)
	}
	var out wire.Journal
	err := s.get(ctx, "/waits", query, &out)
	return out.Waits, err
}

// AuditRecords returns records of the audit log.
func (s *OperatorStore) AuditRecords(ctx context.Context, f durable.AuditFilter) ([]durable.AuditRecord, error) {
	var out struct {
		Decisions []durable.AuditRecord `json:"decisions"`
	}
	err := s.get(ctx, "/decisions", queryOf(map[string]string{
		"kind": string(f.Kind), "run": string(f.Run), "subject": f.Subject, "before": numberText(f.Before), "limit": numberText(f.Limit),
	}), &out)
	return out.Decisions, err
}

// Waivers returns waivers.
func (s *OperatorStore) Waivers(ctx context.Context, all bool) ([]durable.Waiver, error) {
	var out wire.Waivers
	err := s.get(ctx, "/waivers", url.Values{"all": {strconv.FormatBool(all)}}, &out)
	return out.Waivers, err
}

// NewWaiver makes a waiver. The name of the token is its author.
func (s *OperatorStore) NewWaiver(ctx context.Context, r wire.WaiverRequest) (w durable.Waiver, err error) {
	err = s.c.call(ctx, http.MethodPost, "/waivers", nil, nil, r, &w)
	return w, err
}

// RevokeWaiver revokes a waiver. The name of the token is recorded.
func (s *OperatorStore) RevokeWaiver(ctx context.Context, id, _ string) error {
	return s.c.call(ctx, http.MethodDelete, "/waivers/"+url.PathEscape(id), nil, nil, nil, nil)
}

// QueueServices returns how queues are served.
func (s *OperatorStore) QueueServices(ctx context.Context, keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	var out struct {
		Queues []wire.Queue `json:"queues"`
	}
	err := s.get(ctx, "/queues", nil, &out)
	all := map[durable.Key]durable.Service{}
	for _, q := range out.Queues {
		if key := q.Key(); slices.Contains(keys, key) {
			all[key] = durable.Service{LastPoll: q.LastPoll, Backlog: q.Backlog, Oldest: q.Oldest}
		}
	}
	return all, err
}

// Signal sends a signal to a run.
func (s *OperatorStore) Signal(ctx context.Context, id agent.RunID, signal durable.Signal) error {
	return s.c.call(ctx, http.MethodPost, runPath(id, "signals"), nil, nil, map[string]string{"kind": string(signal.Kind), "text": signal.Text}, nil)
}

// DenyTools returns the switch that denies every tool.
func (s *OperatorStore) DenyTools(ctx context.Context) (deny durable.Switch, err error) {
	err = s.get(ctx, "/deny-tools", nil, &deny)
	return deny, err
}

// SetDenyTools sets the switch that denies every tool.
func (s *OperatorStore) SetDenyTools(ctx context.Context, deny durable.Switch) error {
	return s.c.call(ctx, http.MethodPut, "/deny-tools", nil, nil, map[string]any{"on": deny.On, "reason": deny.Reason}, nil)
}

// Decide records an answer at the coordinator: see durable.Decide. The name of the token is its author, and it names the questions that
// it covers. The error for what is not open any more is a *durable.NotOpenError without details.
func (s *OperatorStore) Decide(ctx context.Context, w durable.Wait, a agent.Approval) (decided durable.Wait, err error) {
	err = s.c.call(ctx, http.MethodPost, runPath(w.Run, "questions/"+url.PathEscape(w.ID)+"/answers"), nil, nil, a, &decided)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusConflict {
		for _, why := range []error{durable.ErrAnswered, durable.ErrChanged, durable.ErrExpired} {
			if slices.ContainsFunc(refused.Errors, func(f FieldError) bool { return f.Message == why.Error() }) {
				return decided, &durable.NotOpenError{Run: w.Run, Wait: w.ID, Err: why}
			}
		}
	}
	return decided, err
}
