package memory

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

// cloneRun returns a run that shares no memory with another.
func cloneRun(r store.Run) store.Run {
	r.Demands, r.Labels = maps.Clone(r.Demands), maps.Clone(r.Labels)
	r.Appended, r.Decisions = bytes.Clone(r.Appended), slices.Clone(r.Decisions)
	return r
}

// Runs implements store.Rows.
func (v view) Runs(ids ...agent.RunID) (map[agent.RunID]store.Run, error) {
	return cloneEach(v.byID, ids), nil
}

// RunsByKey implements store.Rows.
func (v view) RunsByKey(keys ...string) (map[string]store.Run, error) {
	return cloneEach(v.byKey, keys), nil
}

// cloneEach returns clones of the runs that have some keys.
func cloneEach[K comparable](runs map[K]*run, keys []K) map[K]store.Run {
	all := map[K]store.Run{}
	for _, key := range keys {
		if r := runs[key]; r != nil {
			all[key] = cloneRun(r.Run)
		}
	}
	return all
}

// selectRuns returns the runs that a filter selects, newest first.
func (v view) selectRuns(f *durable.Filter) (all []*run, _ error) {
	if f.Before != "" && v.byID[f.Before] == nil {
		return nil, fmt.Errorf("run %q: %w", f.Before, durable.ErrNotFound)
	}
	after, sessions := f.Before == "", map[agent.SessionID]bool{}
	for _, r := range slices.Backward(v.runs) {
		isLast := true
		if f.LastTurn && r.Traits.Turn != "" {
			isLast = !sessions[r.Session]
			sessions[r.Session] = true
		}
		switch {
		case len(all) == f.Limit:
			return all, nil
		case after && isLast && matchesState(f, &r.Run.Run) && matchesJob(f, &r.Run.Run):
			all = append(all, r)
		case r.ID == f.Before:
			after = true
		}
	}
	return all, nil
}

// List implements store.Rows.
func (v view) List(f durable.Filter) ([]store.Run, error) {
	found, err := v.selectRuns(&f)
	var all []store.Run
	for _, r := range found {
		all = append(all, cloneRun(r.Run))
	}
	return all, err
}

// Count implements store.Rows.
func (v view) Count(f durable.Filter) (int, error) {
	found, err := v.selectRuns(&f)
	return len(found), err
}

// matchesJob reports whether a filter selects a run by what was submitted.
func matchesJob(f *durable.Filter, r *durable.Run) bool {
	label, has := r.Labels[f.Label.Name]
	return fits(f.Kind, r.Kind) && fits(f.Phase, r.Phase) && fits(f.Name, r.Name) && fits(f.Session, r.Session) && fits(f.Parent, r.Parent) &&
		fits(f.After, r.After) && fits(f.ParentSession, r.Traits.ParentSession) && fits(f.Turn, r.Traits.Turn) &&
		fits(f.RequestKey, r.Traits.RequestKey) && fits(f.RetryOf, r.Traits.RetryOf) && fits(f.By, r.By) &&
		(len(f.Sessions) == 0 || slices.Contains(f.Sessions, r.Session)) && (f.Label.Name == "" || has && label == f.Label.Value) &&
		(!f.HasTurn && !f.LastTurn || r.Traits.Turn != "") && (!f.HasHooks || r.Traits.HasHooks) && (!f.Top || r.Parent == "")
}

// fits reports whether a filter's text is empty or the run's.
func fits[T ~string](wanted, is T) bool { return wanted == "" || wanted == is }

// matchesState reports whether a filter selects a run by what has become of it, and when.
func matchesState(f *durable.Filter, r *durable.Run) bool {
	return (len(f.Status) == 0 || slices.Contains(f.Status, r.Status)) && (!f.Blocked || r.Blocked) &&
		(f.ChangedSince.IsZero() || !r.Updated.Before(f.ChangedSince)) &&
		(f.Since.IsZero() || !r.Created.Before(f.Since)) && (f.Until.IsZero() || r.Created.Before(f.Until)) &&
		(f.Decision == "" && f.Hook == "" || slices.ContainsFunc(r.Decisions, func(c durable.DecisionCount) bool {
			return (f.Decision == "" || f.Decision == c.Decision) && (f.Hook == "" || f.Hook == c.Hook)
		}))
}

// Queues implements store.Rows.
func (v view) Queues() (all []durable.Needs, _ error) {
	for _, q := range v.queues {
		needs := q.needs
		needs.Demands = maps.Clone(needs.Demands)
		all = append(all, needs)
	}
	return all, nil
}

// Services implements store.Rows.
func (v view) Services(keys ...durable.Key) (map[durable.Key]durable.Service, error) {
	all := map[durable.Key]durable.Service{}
	for _, q := range v.queues {
		if slices.Contains(keys, q.key) {
			all[q.key] = durable.Service{LastPoll: q.polled}
		}
	}
	for _, r := range v.ready(keys) {
		key := r.Needs().Key()
		s := all[key]
		s.Backlog++
		if s.Oldest.IsZero() || r.Ready.Before(s.Oldest) {
			s.Oldest = r.Ready
		}
		all[key] = s
	}
	return all, nil
}

// ready returns the ready runs of queues, in the order of creation.
func (v view) ready(keys []durable.Key) (all []*run) {
	for _, r := range v.runs {
		if r.Status == durable.StatusReady && slices.Contains(keys, r.Needs().Key()) {
			all = append(all, r)
		}
	}
	return all
}

// LastPolls implements store.Rows.
func (v view) LastPolls(keys ...durable.Key) (map[durable.Key]time.Time, error) {
	all := map[durable.Key]time.Time{}
	for _, q := range v.queues {
		if slices.Contains(keys, q.key) {
			all[q.key] = q.polled
		}
	}
	return all, nil
}

// Due implements store.Rows.
func (v view) Due(now time.Time, limit int) (map[store.Cause][]agent.RunID, error) {
	all := map[store.Cause][]agent.RunID{}
	for _, r := range v.runs {
		for c := store.Expired; c <= store.Late; c++ {
			if len(all[c]) < limit && c.Is(r.Run, now) {
				all[c] = append(all[c], r.ID)
			}
		}
	}
	return all, nil
}

// Owed implements store.Rows.
func (v view) Owed(retry time.Duration, limit int) (all []durable.Offer, _ error) {
	var owed []*run
	for _, r := range v.runs {
		pause := max(retry, min(r.Offered.Sub(r.Ready), time.Hour))
		if r.Status == durable.StatusReady && (r.Offered.IsZero() || r.Offered.Before(v.now.Add(-pause))) {
			owed = append(owed, r)
		}
	}
	slices.SortStableFunc(owed, func(a, b *run) int { return a.Ready.Compare(b.Ready) })
	for _, r := range owed[:min(limit, len(owed))] {
		all = append(all, durable.Offer{OfferID: durable.OfferID{Run: r.ID, Seq: r.Offer}, Key: r.Needs().Key(), Priority: r.Priority})
	}
	return all, nil
}

// find returns a run; an empty one if there is none.
func (v view) find(id agent.RunID) *run {
	if r := v.byID[id]; r != nil {
		return r
	}
	return &run{}
}

// Payload implements store.Rows.
func (v view) Payload(id agent.RunID) (store.Payload, error) {
	p := v.find(id).payload
	return store.Payload{Input: bytes.Clone(p.Input), Submitted: bytes.Clone(p.Submitted), Result: bytes.Clone(p.Result)}, nil
}

// clones returns values with data of their own.
func clones[T any](all []T, data func(*T) *[]byte) []T {
	all = slices.Clone(all)
	for i := range all {
		d := data(&all[i])
		*d = bytes.Clone(*d)
	}
	return all
}

func entryData(e *durable.Entry) *[]byte   { return &e.Data }
func eventData(e *durable.Event) *[]byte   { return &e.Data }
func waiverData(w *durable.Waiver) *[]byte { return &w.Data }

// rowsAfter returns what follows the first n, which are numbered.
func rowsAfter[T any](all []T, n int64) []T { return all[min(max(n, 0), int64(len(all))):] }

// Entries implements store.Rows.
func (v view) Entries(id agent.RunID, last int64) ([]durable.Entry, error) {
	return clones(rowsAfter(v.find(id).entries, last), entryData), nil
}

// Events implements store.Rows.
func (v view) Events(id agent.RunID, last int64, limit int) ([]durable.Event, error) {
	all := rowsAfter(v.find(id).events, last)
	return clones(all[:min(limit, len(all))], eventData), nil
}

// CountEvents implements store.Rows.
func (v view) CountEvents(id agent.RunID) ([]durable.Event, error) {
	all := slices.DeleteFunc(slices.Clone(v.find(id).events), func(e durable.Event) bool { return e.Name != durable.EventCounts })
	return clones(all, eventData), nil
}

// RuleCounts implements store.Rows.
func (v view) RuleCounts(since int64) ([]durable.RuleCount, error) {
	sums := map[ruleKey]durable.RuleCount{}
	for key, c := range v.rules {
		if key.day >= since {
			key.day = 0
			sums[key] = c.Add(sums[key])
		}
	}
	return slices.Collect(maps.Values(sums)), nil
}

// Signals implements store.Rows.
func (v view) Signals(owner string) (all []store.Signalled, _ error) {
	for _, r := range v.runs {
		if r.Owner != owner {
			continue
		}
		added := slices.DeleteFunc(slices.Clone(r.signals), func(s durable.Signal) bool { return s.Seq <= r.Handled })
		all = append(all, store.Signalled{Run: r.ID, Paused: r.Paused, CancelReason: r.CancelReason, CancelCause: r.CancelCause, Added: added})
	}
	return all, nil
}

// Waits implements store.Rows.
func (v view) Waits(id agent.RunID) ([]store.Wait, error) {
	return store.CloneWaits(v.find(id).waits), nil
}

func byAge(a, b store.Wait) int { return store.CompareWaits(a.Wait, b.Wait) }

// OpenWaits implements store.Rows.
func (v view) OpenWaits(f durable.WaitFilter) (all []store.Wait, _ error) {
	for _, r := range v.runs {
		if r.Status != durable.StatusWaiting && (r.Status != durable.StatusReady || !r.IsOverdue(v.now)) || f.Run != "" && f.Run != r.ID {
			continue
		}
		for _, w := range store.CloneWaits(r.waits) {
			if w.Answer == nil && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, w.Kind)) &&
				(!f.Expired || store.HasPassed(w.Deadline, v.now)) && (f.After == nil || store.CompareWaits(*f.After, w.Wait) < 0) {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, byAge)
	return all[:min(f.Limit, len(all))], nil
}

// Checks implements store.Rows.
func (v view) Checks(owner string, kinds []durable.WaitKind, hosts []string, limit int) ([]store.Wait, error) {
	var own, free []store.Wait
	for _, r := range v.runs {
		if r.Status != durable.StatusWaiting || r.Paused {
			continue
		}
		for _, w := range store.CloneWaits(r.waits) {
			switch {
			case w.Answer != nil, !slices.Contains(kinds, w.Kind), !slices.Contains(hosts, w.Host):
			case w.Checker == owner:
				own = append(own, w)
			case w.Checker == "", !w.CheckedUntil.After(v.now):
				free = append(free, w)
			}
		}
	}
	slices.SortFunc(own, byAge)
	slices.SortFunc(free, byAge)
	all := slices.Concat(own, free)
	return all[:min(limit, len(all))], nil
}

// Token implements store.Rows.
func (v view) Token(hash [32]byte) (store.Token, bool, error) {
	k, found := v.tokens[hash]
	return k, found, nil
}

// Audit implements store.Rows.
func (v view) Audit(f durable.AuditFilter) (all []durable.AuditRecord, _ error) {
	for _, r := range slices.Backward(v.records) {
		if len(all) < f.Limit && (f.Kind == "" || f.Kind == r.Kind) && (f.Run == "" || f.Run == r.Run) &&
			(f.Subject == "" || f.Subject == r.Subject) && (f.Before == 0 || r.Seq < f.Before) {
			all = append(all, store.CloneRecord(r))
		}
	}
	return all, nil
}

// Waivers implements store.Rows.
func (v view) Waivers() ([]durable.Waiver, error) { return clones(v.waivers, waiverData), nil }

func cloneDocument(d durable.Document) durable.Document {
	d.Data = bytes.Clone(d.Data)
	return d
}

// Document implements store.Rows.
func (v view) Document(kind, name string, version int64) (_ store.Version, found bool, _ error) {
	d := v.documents[documentID{kind, name}]
	if d != nil && version == 0 {
		version = int64(len(d.versions))
	}
	if d == nil || version < 1 || version > int64(len(d.versions)) {
		return store.Version{}, false, nil
	}
	return store.Version{Document: cloneDocument(d.versions[version-1]), Newest: d.newest()}, true, nil
}

// Documents implements store.Rows.
func (v view) Documents(kind, after string, limit int) ([]durable.Document, error) {
	all := v.documentsOf(kind, func(name string) bool { return name > after })
	return all[:min(limit, len(all))], nil
}

// DocumentsBefore implements store.Rows.
func (v view) DocumentsBefore(kind, before string, limit int) ([]durable.Document, error) {
	all := v.documentsOf(kind, func(name string) bool { return before == "" || name < before })
	slices.Reverse(all)
	return all[:min(limit, len(all))], nil
}

// documentsOf returns the documents of a kind with some names, in their order.
func (v view) documentsOf(kind string, with func(name string) bool) (all []durable.Document) {
	for id, d := range v.documents {
		if id.kind == kind && with(id.name) && !d.deleted {
			all = append(all, cloneDocument(d.versions[len(d.versions)-1]))
		}
	}
	slices.SortFunc(all, func(a, b durable.Document) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Settings implements store.Rows.
func (v view) Settings(prefix string) (all [][]byte, _ error) {
	for _, name := range slices.Sorted(maps.Keys(v.settings)) {
		if value := v.settings[name]; value != nil && strings.HasPrefix(name, prefix) {
			all = append(all, bytes.Clone(value))
		}
	}
	return all, nil
}

// Setting implements store.Rows.
func (v view) Setting(name string) ([]byte, error) { return bytes.Clone(v.settings[name]), nil }
