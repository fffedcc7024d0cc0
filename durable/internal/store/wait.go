package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// answersIn returns the answers of a wait, to change them.
func answersIn(w *durable.Wait) (all []*durable.Answer) {
	for i := range w.Partial {
		all = append(all, &w.Partial[i])
	}
	if w.Answer != nil {
		all = append(all, w.Answer)
	}
	return all
}

// sealWait encrypts the data of a wait and its answers in place.
func (k *keyring) sealWait(w *durable.Wait) {
	w.Data = k.seal(w.Data, waitPlace(*w))
	for _, a := range answersIn(w) {
		a.Data = k.seal(a.Data, answerPlace(w.Run, *a))
	}
}

// openWait decrypts the data of a wait and its answers in place. It removes data that it cannot decrypt.
func (k *keyring) openWait(w *durable.Wait) error {
	var errs []error
	open := func(data []byte, p place) []byte {
		if w.IsAfter() && len(data) == 0 { // this package has made it
			return data
		}
		plain, err := k.open(data, p)
		errs = append(errs, err)
		return plain
	}
	w.Data = open(w.Data, waitPlace(*w))
	for _, a := range answersIn(w) {
		a.Data = open(a.Data, answerPlace(w.Run, *a))
	}
	return errors.Join(errs...)
}

// decryptWaits decrypts the data of waits and their answers in place. It removes data that it cannot decrypt.
func (k *keyring) decryptWaits(waits []durable.Wait, err error) ([]durable.Wait, error) {
	for i := range waits {
		err = cmp.Or(err, k.openWait(&waits[i]))
	}
	return waits, err
}

// withoutClaims returns waits without their claims.
func withoutClaims(waits []Wait) []durable.Wait {
	var all []durable.Wait
	for _, w := range waits {
		all = append(all, w.Wait)
	}
	return all
}

// Waits implements durable.Store.
func (s *Store) Waits(ctx context.Context, id agent.RunID) ([]durable.Wait, error) {
	waits, err := readRowsOf(ctx, s, "reading waits", id, func(rows Rows) ([]Wait, bool, error) {
		waits, err := rows.Waits(id)
		return waits, len(waits) == 0, err
	})
	return s.keys.decryptWaits(withoutClaims(waits), err)
}

// OpenWaits implements durable.Store.
func (s *Store) OpenWaits(ctx context.Context, f durable.WaitFilter) ([]durable.Wait, error) {
	f.Kinds, f.Limit = lo.Uniq(f.Kinds), limitOf(f.Limit)
	waits, err := readRows(ctx, s, "listing waits", func(rows Rows) ([]Wait, error) { return rows.OpenWaits(f) })
	return s.keys.decryptWaits(withoutClaims(waits), err)
}

// WaitByToken implements durable.Store.
func (s *Store) WaitByToken(ctx context.Context, hash [32]byte) (durable.Wait, error) {
	return readRows(ctx, s, "looking for a wait", func(rows Rows) (durable.Wait, error) {
		k, found, err := rows.Token(hash)
		if err != nil || !found {
			return durable.Wait{}, cmp.Or(err, fmt.Errorf("by its token: %w", durable.ErrNotFound))
		}
		waits, err := rows.Waits(k.Run)
		if err != nil {
			return durable.Wait{}, err
		}
		i := findWait(waits, k.Wait)
		if i < 0 {
			return durable.Wait{Run: k.Run, ID: k.Wait, Subject: k.Subject}, fmt.Errorf("by its token: %w", durable.ErrTokenSpent)
		}
		w := waits[i].Wait
		w.TokenHash = hash
		err = s.keys.openWait(&w)
		return unlessFailed(w, err)
	})
}

// findOpenWait returns the waits of a run, which it locks, and the place of an open one.
func (t tx) findOpenWait(id agent.RunID, wait string) (waits []Wait, place int, err error) {
	if _, err := t.lock(id); err != nil {
		return nil, 0, err
	}
	if waits, err = t.waitsOf(id); err != nil {
		return nil, 0, err
	}
	if place = findWait(waits, wait); place < 0 || waits[place].Answer != nil {
		err = fmt.Errorf("the token of wait %q of run %q: %w", wait, id, durable.ErrNotFound)
	}
	return waits, place, err
}

// AddToken implements durable.Store.
func (s *Store) AddToken(ctx context.Context, id agent.RunID, wait string, hash [32]byte) error {
	return s.write(ctx, "adding a token to a wait", func(t tx) error {
		waits, place, err := t.findOpenWait(id, wait)
		if err != nil {
			return err
		}
		if _, known, err := t.Token(hash); err != nil || known {
			return err
		}
		return t.PutToken(hash, Token{id, wait, waits[place].Subject})
	})
}

// SetToken implements durable.Store.
func (s *Store) SetToken(ctx context.Context, id agent.RunID, wait string, hash [32]byte) error {
	return s.write(ctx, "setting the token of a wait", func(t tx) error {
		waits, place, err := t.findOpenWait(id, wait)
		switch {
		case err != nil:
			return err
		case waits[place].TokenHash != [32]byte{}:
			return fmt.Errorf("the token of wait %q of run %q: %w", wait, id, durable.ErrExists)
		}
		waits[place].TokenHash = hash
		if err := t.PutToken(hash, Token{id, wait, waits[place].Subject}); err != nil {
			return err
		}
		return t.replaceWaits(id, waits)
	})
}

// Answer implements durable.Store.
func (s *Store) Answer(ctx context.Context, id agent.RunID, form durable.AnswerFunc) error {
	if err := s.CheckKey(ctx); err != nil {
		return err
	}
	return s.change(ctx, "answering", id, func(t tx, r *Run) error {
		waits, err := t.waitsOf(id)
		if err != nil {
			return err
		}
		plain, err := t.keys.decryptWaits(withoutClaims(CloneWaits(waits)), nil)
		if err != nil {
			return err
		}
		answers, err := form(plain, t.Now()) // which may change them
		if err != nil {
			return err
		}
		if err := checkAnswers(*r, waits, answers); err != nil {
			return err
		}
		for _, a := range answers {
			w := &waits[findWait(waits, a.Wait)]
			if w.Answer != nil { // by an answer before
				return fmt.Errorf("run %q, wait %q: %w", id, a.Wait, durable.ErrAnswered)
			}
			a.At, a.Subject = t.Now(), w.Subject
			a.Data = t.keys.seal(a.Data, answerPlace(id, a))
			if a.More {
				w.Partial = append(w.Partial, a)
			} else {
				w.Answer = &a
			}
			subject := cmp.Or(w.Tool, w.Subject, w.ID)
			if err := t.record(durable.AuditRecord{Kind: durable.AuditAnswer, Run: id, Subject: subject, By: a.By, Answer: &a}); err != nil {
				return err
			}
		}
		r.Updated = t.Now()
		r.setAnswerBy(waits)
		if err := t.replaceWaits(id, waits); err != nil {
			return err
		}
		return t.wake(r)
	})
}

// checkAnswers returns why a run does not accept answers: durable.ErrAnswered goes first.
func checkAnswers(r Run, waits []Wait, answers []durable.Answer) error {
	missing := ""
	for _, a := range answers {
		switch i := findWait(waits, a.Wait); {
		case i < 0:
			missing = a.Wait
		case waits[i].Answer != nil:
			return fmt.Errorf("run %q, wait %q: %w", r.ID, a.Wait, durable.ErrAnswered)
		}
	}
	switch {
	case r.Status != durable.StatusWaiting:
		return fmt.Errorf("run %q is %s: %w", r.ID, r.Status, durable.ErrNotFound)
	case slices.ContainsFunc(answers, func(a durable.Answer) bool { return findWait(waits, a.Wait) < 0 }):
		return fmt.Errorf("run %q, wait %q: %w", r.ID, missing, durable.ErrNotFound)
	}
	return nil
}

// CompareWaits orders waits by age, then by run and ID.
func CompareWaits(a, b durable.Wait) int {
	return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.Run, b.Run), cmp.Compare(a.ID, b.ID))
}

// ClaimChecks implements durable.Store.
func (s *Store) ClaimChecks(
	ctx context.Context, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) (all []durable.Wait, err error) {
	if limit <= 0 || len(kinds) == 0 {
		return nil, ctx.Err()
	}
	kinds, hosts = lo.Uniq(kinds), lo.Uniq(append([]string{""}, hosts...))
	var found, claims []Wait
	look := func(rows Rows) (err error) {
		found, err = rows.Checks(owner, kinds, hosts, limit)
		claims = lo.Filter(found, func(w Wait, _ int) bool { // a claim is new, or has less than half of its time left
			return w.Checker != owner || w.CheckedUntil.Before(rows.Now().Add(ttl/2))
		})
		return err
	}
	err = s.db.Read(ctx, "looking for waits to watch", look)
	if err == nil && len(claims) > 0 {
		err = s.write(ctx, "claiming waits to watch", func(t tx) error {
			if err := look(t); err != nil || len(claims) == 0 {
				return err
			}
			for i := range claims {
				claims[i].Checker, claims[i].CheckedUntil = owner, t.Now().Add(ttl)
			}
			return t.PutChecker(claims...)
		})
	}
	all, err = s.keys.decryptWaits(withoutClaims(found), err)
	slices.SortFunc(all, CompareWaits)
	return unlessFailed(all, err)
}
