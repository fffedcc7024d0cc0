package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// waitSpot returns the spot of a wait.
func waitSpot(run agent.RunID, w Wait) spot {
	return spotOf(fmt.Sprintf("wait %q of run %q", w.ID, run), "wait", string(run), w.ID, w.Subject, w.Tool)
}

// answerSpot returns the spot of an answer. That of an answer that did not decide differs from that of one that did.
func answerSpot(run agent.RunID, a Answer) spot {
	parts := []string{string(run), a.Wait, a.Subject, strconv.FormatBool(a.Ends)}
	if a.More {
		parts = append(parts, "more")
	}
	return spotOf(fmt.Sprintf("an answer to wait %q of run %q", a.Wait, run), "answer", parts...)
}

func waiverSpot(w Waiver) spot {
	return spotOf(fmt.Sprintf("waiver %q", w.ID), "waiver", w.ID, w.By, strconv.FormatInt(w.Expires.UnixMicro(), 10))
}

// sealWait returns a wait with encrypted data and answers.
func (x encrypted) sealWait(run agent.RunID, w Wait) Wait {
	w.Data = x.sealData(w.Data, waitSpot(run, w))
	seal := func(a Answer) Answer {
		a.Wait, a.Subject = w.ID, w.Subject
		a.Data = x.sealData(a.Data, answerSpot(run, a))
		return a
	}
	w.Partial = slices.Clone(w.Partial)
	for i, a := range w.Partial {
		w.Partial[i] = seal(a)
	}
	if w.Answer != nil {
		w.Answer = new(seal(*w.Answer))
	}
	return w
}

// decryptWait returns a wait with decrypted data and answers.
func (x encrypted) decryptWait(w Wait) (Wait, error) {
	var errs []error
	open := func(data []byte, p spot) []byte {
		plain, err := x.decrypt(data, p)
		errs = append(errs, err)
		return plain
	}
	byStore := func(data []byte) bool { return w.IsAfter() && len(data) == 0 } // the store has no key
	if !byStore(w.Data) {
		w.Data = open(w.Data, waitSpot(w.Run, w))
	}
	w.Partial = slices.Clone(w.Partial)
	for i, a := range w.Partial {
		w.Partial[i].Data = open(a.Data, answerSpot(w.Run, a))
	}
	if w.Answer != nil && !byStore(w.Answer.Data) {
		a := *w.Answer
		a.Data = open(a.Data, answerSpot(w.Run, a))
		w.Answer = &a
	}
	if err := errors.Join(errs...); err != nil {
		return Wait{}, err
	}
	return w, nil
}

// decryptWaits returns waits with decrypted data and answers.
func (x encrypted) decryptWaits(waits []Wait, err error) ([]Wait, error) {
	if err != nil {
		return nil, err
	}
	for i, w := range waits {
		if waits[i], err = x.decryptWait(w); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

// Waits implements Store.
func (x encrypted) Waits(ctx context.Context, id agent.RunID) ([]Wait, error) {
	return x.decryptWaits(x.Store.Waits(ctx, id))
}

// OpenWaits implements Store.
func (x encrypted) OpenWaits(ctx context.Context, f WaitFilter) ([]Wait, error) {
	return x.decryptWaits(x.Store.OpenWaits(ctx, f))
}

// ClaimChecks implements Store.
func (x encrypted) ClaimChecks(
	ctx context.Context, owner string, ttl time.Duration, limit int, kinds []WaitKind, hosts ...string,
) ([]Wait, error) {
	return x.decryptWaits(x.Store.ClaimChecks(ctx, owner, ttl, limit, kinds, hosts...))
}

// WaitByToken implements Store.
func (x encrypted) WaitByToken(ctx context.Context, tokenHash [32]byte) (Wait, error) {
	w, err := x.Store.WaitByToken(ctx, tokenHash)
	if err != nil {
		return w, err
	}
	return x.decryptWait(w)
}

// Answer implements Store.
func (x encrypted) Answer(ctx context.Context, id agent.RunID, form AnswerFunc) error {
	if err := x.recordKey(ctx); err != nil {
		return err
	}
	return x.Store.Answer(ctx, id, func(waits []Wait, now time.Time) ([]Answer, error) {
		plain, err := x.decryptWaits(slices.Clone(waits), nil)
		if err != nil {
			return nil, err
		}
		answers, err := form(plain, now)
		if err != nil {
			return nil, err
		}
		sealed := slices.Clone(answers)
		for i := range sealed {
			a := &sealed[i]
			if w, ok := lo.Find(waits, func(w Wait) bool { return w.ID == a.Wait }); ok {
				a.Subject = w.Subject
			}
			a.Data = x.sealData(a.Data, answerSpot(id, *a))
		}
		return sealed, nil
	})
}

// AuditRecords implements Store. The data of an answer whose run was deleted is empty.
func (x encrypted) AuditRecords(ctx context.Context, f AuditFilter) ([]AuditRecord, error) {
	records, err := x.Store.AuditRecords(ctx, f)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		if r.Answer == nil || len(r.Answer.Data) == 0 {
			continue
		}
		a := *r.Answer
		if a.Data, err = x.decrypt(a.Data, answerSpot(r.Run, a)); err != nil {
			return nil, err
		}
		records[i].Answer = &a
	}
	return records, nil
}

// AddWaiver implements Store.
func (x encrypted) AddWaiver(ctx context.Context, w Waiver) error {
	if err := x.recordKey(ctx); err != nil {
		return err
	}
	w.Data = x.sealData(w.Data, waiverSpot(w))
	return x.Store.AddWaiver(ctx, w)
}

// Waivers implements Store.
func (x encrypted) Waivers(ctx context.Context, all bool) ([]Waiver, error) {
	waivers, err := x.Store.Waivers(ctx, all)
	if err != nil {
		return nil, err
	}
	for i, w := range waivers {
		if waivers[i].Data, err = x.decrypt(w.Data, waiverSpot(w)); err != nil {
			return nil, err
		}
	}
	return waivers, nil
}
