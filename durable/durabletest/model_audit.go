package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/grapnel-go/grapnel/durable"
)

func mapKeys[V any](m map[string]V) []string { return slices.Collect(maps.Keys(m)) }

// recordOf returns the audit record of an answer.
func (m model) recordOf(w durable.Wait, a durable.Answer) durable.AuditRecord {
	subject := cmp.Or(w.Tool, w.Subject, w.ID)
	if m.broken == "audit subject" {
		subject = w.Tool
	}
	return durable.AuditRecord{Kind: durable.AuditAnswer, Run: w.Run, Subject: subject, By: a.By, Answer: &a}
}

func (m model) addRecords(records ...durable.AuditRecord) {
	for _, r := range records {
		if m.broken == "audit "+string(r.Kind) {
			continue
		}
		r.At = cmp.Or(r.At, m.at)
		if r.Answer != nil {
			a := *r.Answer
			a.At, a.By, a.Data = r.At, r.By, bytes.Clone(a.Data)
			r.Answer = &a
		}
		if n := len(m.records); n > 0 {
			r.Seq = m.records[n-1].Seq
		}
		r.Seq++
		m.records = append(m.records, r)
	}
}

// forgetAnswers removes the data of the records of a run.
func (m model) forgetAnswers(run *modelRun) {
	if m.broken == "delete records" {
		m.records = slices.DeleteFunc(m.records, func(r durable.AuditRecord) bool { return r.Run == run.ID })
	}
	for i, r := range m.records {
		if r.Run == run.ID && r.Answer != nil && m.broken != "delete keeps answers" {
			a := *r.Answer
			a.Data = nil
			m.records[i].Answer = &a
		}
	}
}

// AuditRecords implements durable.Store.
func (m model) AuditRecords(ctx context.Context, f durable.AuditFilter) ([]durable.AuditRecord, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.AuditRecord
	for _, r := range slices.Backward(m.records) {
		checks := map[string]bool{
			"audit by kind":    f.Kind == "" || f.Kind == r.Kind,
			"audit by run":     f.Run == "" || f.Run == r.Run,
			"audit by subject": f.Subject == "" || f.Subject == r.Subject,
			"audit page":       f.Before == 0 || r.Seq < f.Before,
			"audit limit":      len(all) < cmp.Or(f.Limit, durable.DefaultLimit),
		}
		if slices.ContainsFunc(mapKeys(checks), func(name string) bool { return !checks[name] && m.broken != name }) {
			continue
		}
		if r.Answer != nil {
			a := *r.Answer
			a.Data = bytes.Clone(a.Data)
			r.Answer = &a
		}
		all = append(all, r)
	}
	if m.broken == "audit order" {
		slices.Reverse(all)
	}
	return all, nil
}

// AddWaiver implements durable.Store.
func (m model) AddWaiver(ctx context.Context, w durable.Waiver) error {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(m.waivers, func(old durable.Waiver) bool { return old.ID == w.ID }) && m.broken != "waiver twice" {
		return durable.ErrExists
	}
	w.Data = bytes.Clone(w.Data)
	m.waivers = append(m.waivers, w)
	m.addRecords(durable.AuditRecord{Kind: durable.AuditWaiver, Subject: w.ID, By: w.By})
	return nil
}

// RevokeWaiver implements durable.Store.
func (m model) RevokeWaiver(ctx context.Context, id, by string) error {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.waivers, func(w durable.Waiver) bool { return w.ID == id })
	switch {
	case i < 0:
		return durable.ErrNotFound
	case !m.waivers[i].Revoked.IsZero() && m.broken != "revoke twice":
		return nil
	}
	m.waivers[i].Revoked, m.waivers[i].RevokedBy = m.at, by
	m.addRecords(durable.AuditRecord{Kind: durable.AuditWaiverRevoked, Subject: id, By: by})
	return nil
}

// Waivers implements durable.Store.
func (m model) Waivers(ctx context.Context, all bool) ([]durable.Waiver, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var waivers []durable.Waiver
	for _, w := range m.waivers {
		if all || (w.Revoked.IsZero() || m.broken == "revoked waiver") && (w.Expires.After(m.at) || m.broken == "expired waiver") {
			w.Data = bytes.Clone(w.Data)
			waivers = append(waivers, w)
		}
	}
	if m.broken != "waiver order" {
		slices.SortStableFunc(waivers, func(a, b durable.Waiver) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	}
	return waivers, nil
}
