package durabletest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// ask replaces the waits of a run.
func (m model) ask(r *modelRun, u durable.Update) {
	old := r.waits
	m.dropWaits(r)
	r.anyWait = u.AnyWait
	for _, given := range u.Waits {
		w := modelWait{Wait: copyWait(given)}
		w.Run = r.ID
		for i := range w.Partial {
			w.Partial[i].Wait, w.Partial[i].Subject = w.ID, w.Subject
		}
		same := func(o modelWait) bool {
			return o.ID == w.ID || m.broken == "answer of old ID" && o.Subject == w.Subject
		}
		if i := slices.IndexFunc(old, same); i >= 0 {
			m.keepRecorded(&w, old[i])
		}
		r.waits = append(r.waits, w)
	}
	if m.broken == "call order" {
		slices.SortFunc(r.waits, func(a, b modelWait) int { return cmp.Compare(a.ID, b.ID) })
	}
}

// keepRecorded sets in w what is kept of the same wait from before: answers, the token and the claim.
func (m model) keepRecorded(w *modelWait, old modelWait) {
	if m.broken != "forgets claims" {
		w.checker, w.until = old.checker, old.until
	}
	if w.TokenHash == [32]byte{} && m.broken != "forgets tokens" {
		w.TokenHash = old.TokenHash
	}
	if len(old.Answers()) == 0 {
		return
	}
	if m.broken != "forgets partial answers" {
		w.Partial = old.Partial
	}
	if old.Answer != nil && m.broken != "forgets answers" {
		w.Answer = old.Answer
	}
}

// copyWait returns a wait that shares no data with another.
func copyWait(w durable.Wait) durable.Wait {
	w.Data = bytes.Clone(w.Data)
	w.Partial = slices.Clone(w.Partial)
	for i := range w.Partial {
		w.Partial[i].Data = bytes.Clone(w.Partial[i].Data)
	}
	if w.Answer != nil {
		a := *w.Answer
		a.Data = bytes.Clone(a.Data)
		w.Answer = &a
	}
	return w
}

// Waits implements durable.Store.
func (m model) Waits(ctx context.Context, id agent.RunID) ([]durable.Wait, error) {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return nil, err
	}
	var all []durable.Wait
	for _, w := range r.waits {
		all = append(all, copyWait(w.Wait))
	}
	return all, nil
}

// WaitByToken implements durable.Store.
func (m model) WaitByToken(ctx context.Context, tokenHash [32]byte) (durable.Wait, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return durable.Wait{}, err
	}
	for _, r := range m.runs {
		for _, w := range r.waits {
			if w.TokenHash == tokenHash && (tokenHash != [32]byte{} || m.broken == "no token") {
				return copyWait(w.Wait), nil
			}
		}
		for _, k := range r.tokens {
			if k.token != string(tokenHash[:]) {
				continue
			}
			i := slices.IndexFunc(r.waits, func(w modelWait) bool { return w.ID == k.wait })
			if i < 0 {
				return durable.Wait{Run: r.ID, ID: k.wait, Subject: k.subject}, durable.ErrTokenSpent
			}
			w := copyWait(r.waits[i].Wait)
			w.TokenHash = tokenHash
			return w, nil
		}
	}
	return durable.Wait{}, durable.ErrNotFound
}

// dropWaits removes the waits of a run, and keeps their tokens.
func (m model) dropWaits(r *modelRun) {
	for _, w := range r.waits {
		if w.TokenHash != [32]byte{} && m.broken != "forgets spent tokens" {
			r.tokens = append(r.tokens, modelToken{string(w.TokenHash[:]), w.ID, w.Subject})
		}
	}
	r.waits = nil
}

// AddToken implements durable.Store.
func (m model) AddToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.waits, func(w modelWait) bool {
		return (w.ID == wait || m.broken == "added token ID") && (w.Answer == nil || m.broken == "added token answered")
	})
	switch {
	case i < 0:
		return durable.ErrNotFound
	case m.broken == "added token replaces":
		r.waits[i].TokenHash, r.tokens = tokenHash, nil
	default:
		r.tokens = append(r.tokens, modelToken{string(tokenHash[:]), wait, r.waits[i].Subject})
	}
	return nil
}

// OpenWaits implements durable.Store.
func (m model) OpenWaits(ctx context.Context, f durable.WaitFilter) ([]durable.Wait, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	passed := func(t time.Time) bool { return !t.IsZero() && !t.After(m.at) }
	var all []durable.Wait
	for _, r := range m.runs {
		waits := r.Status == durable.StatusWaiting || r.Status == durable.StatusReady && passed(r.AnswerBy) && m.broken != "open overdue"
		for _, w := range r.waits {
			checks := map[string]bool{
				"open running": waits, "open answered": w.Answer == nil,
				"open kinds":   len(f.Kinds) == 0 || slices.Contains(f.Kinds, w.Kind),
				"open run":     f.Run == "" || f.Run == r.ID,
				"open expired": !f.Expired || passed(w.Deadline),
				"open page":    f.After == nil || compareWaits(*f.After, w.Wait) < 0,
			}
			if !slices.ContainsFunc(mapKeys(checks), func(name string) bool { return !checks[name] && m.broken != name }) {
				all = append(all, copyWait(w.Wait))
			}
		}
	}
	if m.broken != "open order" {
		slices.SortFunc(all, compareWaits)
	}
	if limit := cmp.Or(f.Limit, durable.DefaultLimit); m.broken != "open limit" {
		all = all[:min(limit, len(all))]
	}
	return all, nil
}

// SetToken implements durable.Store.
func (m model) SetToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.waits, func(w modelWait) bool {
		return (w.ID == wait || m.broken == "token ID") && (w.Answer == nil || m.broken == "token answered")
	})
	switch {
	case i < 0:
		return durable.ErrNotFound
	case r.waits[i].TokenHash != [32]byte{} && m.broken != "token twice":
		return durable.ErrExists
	}
	r.waits[i].TokenHash = tokenHash
	return nil
}

// ClaimChecks implements durable.Store.
func (m model) ClaimChecks(
	ctx context.Context, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) ([]durable.Wait, error) {
	done, err := m.lock(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	var own, free []*modelWait
	for _, r := range m.runs {
		for i := range r.waits {
			w := &r.waits[i]
			checks := map[string]bool{
				"check kinds": slices.Contains(kinds, w.Kind), "check answered": w.Answer == nil,
				"check running": r.Status == durable.StatusWaiting, "check paused": !r.Paused,
				"check hosts": w.Host == "" || slices.Contains(hosts, w.Host),
			}
			switch {
			case slices.ContainsFunc(mapKeys(checks), func(name string) bool { return !checks[name] && m.broken != name }):
			case w.checker == owner:
				own = append(own, w)
			case w.checker == "", !w.until.After(m.at) && m.broken != "check expired", m.broken == "check twice":
				free = append(free, w)
			}
		}
	}
	byAge := func(a, b *modelWait) int { return compareWaits(a.Wait, b.Wait) }
	slices.SortFunc(own, byAge)
	slices.SortFunc(free, byAge)
	if m.broken == "check newest" {
		slices.Reverse(free)
	}
	if m.broken == "check own" {
		own = nil
	}
	claimed := slices.Concat(own, free)
	if m.broken != "check limit" {
		claimed = claimed[:min(max(limit, 0), len(claimed))]
	}
	slices.SortFunc(claimed, byAge)
	var all []durable.Wait
	for _, w := range claimed {
		if w.checker != owner || w.until.Before(m.at.Add(ttl/2)) && m.broken != "check renew" {
			w.checker, w.until = owner, m.at.Add(ttl)
		}
		all = append(all, copyWait(w.Wait))
	}
	return all, nil
}

// Answer implements durable.Store.
func (m model) Answer(ctx context.Context, id agent.RunID, form durable.AnswerFunc) error {
	r, done, err := m.find(ctx, id)
	defer done()
	if err != nil {
		return err
	}
	var stored []durable.Wait
	for _, w := range r.waits {
		stored = append(stored, copyWait(w.Wait))
	}
	answers, err := form(stored, m.at)
	if err != nil && m.broken != "answer refused" {
		return err
	}
	all := slices.Clone(r.waits)
	if m.broken == "answer half" {
		all = r.waits
	}
	find := func(a durable.Answer) int {
		return slices.IndexFunc(all, func(w modelWait) bool { return w.ID == a.Wait || m.broken == "answer ID" && w.Subject == a.Subject })
	}
	isAnswered := func(a durable.Answer) bool {
		i := find(a)
		return i >= 0 && all[i].Answer != nil && m.broken != "answer twice"
	}
	missing := func(a durable.Answer) bool { return find(a) < 0 }
	switch {
	case slices.ContainsFunc(answers, isAnswered) && (r.Status == durable.StatusWaiting || m.broken != "answered is forgotten") && m.broken != "answered later":
		return durable.ErrAnswered
	case r.Status != durable.StatusWaiting && m.broken != "answer running", slices.ContainsFunc(answers, missing) && m.broken != "answer half":
		return durable.ErrNotFound
	}
	var records []durable.AuditRecord
	for _, a := range answers {
		i := find(a)
		switch {
		case i < 0:
			return durable.ErrNotFound
		case isAnswered(a): // the same wait twice
			return durable.ErrAnswered
		}
		if m.broken != "answer at" {
			a.At = m.at
		}
		if m.broken == "answer by" {
			a.By = ""
		}
		a.Data, a.Subject = bytes.Clone(a.Data), all[i].Subject
		if a.More && m.broken != "answer more" {
			all[i].Partial = append(slices.Clip(all[i].Partial), a)
		} else {
			all[i].Answer = &a
		}
		records = append(records, m.recordOf(all[i].Wait, a))
	}
	r.waits, r.Updated = all, m.at
	m.addRecords(records...)
	r.setAnswerBy()
	if m.broken != "answer wakes" {
		m.wake(r)
	}
	return nil
}
