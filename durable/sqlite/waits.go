package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const waitColumns = `r.id, w.id, w.kind, w.subject, w.tool, w.asked, w.deadline, w.child, w.host, w.token, w.data,
	w.partial, w.answered, w.ends, w.who, w.answer`

const (
	// A run without waits gives one row of NULLs, which shows that the run exists.
	selectWaits   = `SELECT ` + waitColumns + ` FROM runs r LEFT JOIN waits w ON w.run = r.n WHERE r.id = ? ORDER BY w.place`
	selectByToken = `SELECT ` + waitColumns + ` FROM waits w JOIN runs r ON r.n = w.run WHERE w.token = ? LIMIT 1`
	// selectSpare finds a wait by a token of the table tokens. A wait that the run has no more gives one row of NULLs.
	selectSpare = `SELECT ` + waitColumns + ` FROM tokens s JOIN runs r ON r.n = s.run
		LEFT JOIN waits w ON w.run = s.run AND w.id = s.wait WHERE s.token = ? LIMIT 1`
	selectSpent = `SELECT r.id, s.wait, s.subject FROM tokens s JOIN runs r ON r.n = s.run WHERE s.token = ?`
	insertToken = `INSERT INTO tokens (token, run, wait, subject) SELECT ?1, run, id, subject FROM waits WHERE run = ?2 AND id = ?3 ON CONFLICT DO NOTHING`
	keepTokens  = `INSERT INTO tokens (token, run, wait, subject) SELECT token, run, id, subject FROM waits WHERE run = ? AND token IS NOT NULL
		ON CONFLICT DO NOTHING`
	keepTokensOf = `INSERT INTO tokens (token, run, wait, subject) SELECT token, run, id, subject FROM waits
		WHERE run = (SELECT n FROM runs WHERE id = ?) AND token IS NOT NULL ON CONFLICT DO NOTHING`
	selectKept  = `SELECT id, token, checker, checked_until, partial, answered, ends, who, answer FROM waits WHERE run = ?`
	deleteWaits = `DELETE FROM waits WHERE run = ?`
	removeWaits = `DELETE FROM waits WHERE run = (SELECT n FROM runs WHERE id = ?)`
	insertWait  = `INSERT INTO waits (run, place, id, kind, subject, tool, asked, deadline, child, host, token, data,
			checker, checked_until, partial, answered, ends, who, answer)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateAnyWait  = `UPDATE runs SET any_wait = ?2 WHERE n = ?1 AND any_wait <> ?2`
	updateAnswerBy = `UPDATE runs SET answer_by = (SELECT min(deadline) FROM waits WHERE run = runs.n AND answered IS NULL), updated = ?2 WHERE n = ?1`
	updateToken    = `UPDATE waits SET token = ?3 WHERE run = ?1 AND id = ?2 AND answered IS NULL AND token IS NULL`
	isOpen         = `SELECT EXISTS (SELECT 1 FROM waits WHERE run = ?1 AND id = ?2 AND answered IS NULL)`
)

// record is what a store knows of a wait, beside what the run has asked: its token, its claim and its answers.
type record struct {
	token   []byte
	checker string
	until   micros
	partial string
	decision
}

// decision has the columns of the answer that decides; at is NULL when there is none.
type decision struct {
	at   sql.NullInt64
	ends bool
	who  string
	data []byte
}

// partialAnswer is the stored form of an answer that did not decide.
type partialAnswer struct {
	At   int64  `json:"at"`
	More bool   `json:"more"`
	Ends bool   `json:"ends,omitempty"`
	By   string `json:"by,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// replaceWaits replaces the waits of a run, and keeps what is known of unchanged ones.
func replaceWaits(ctx context.Context, t tx, n int64, u durable.Update, now int64) error {
	kept := map[string]record{}
	rows, err := t.rows(ctx, selectKept, n)
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		var id string
		var k record
		err := rows.Scan(&id, &k.token, &k.checker, &k.until, &k.partial, &k.at, &k.ends, &k.who, &k.data)
		kept[id] = k
		return err
	})
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		if _, err := t.exec(ctx, keepTokens, n); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, deleteWaits, n); err != nil {
		return err
	}
	for place, w := range u.Waits {
		r, err := kept[w.ID].with(w)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, insertWait, n, place, w.ID, string(w.Kind), w.Subject, w.Tool, w.Asked.UnixMicro(), micros{w.Deadline},
			string(w.Child), w.Host, r.token, w.Data, r.checker, r.until, r.partial, r.at, r.ends, r.who, r.data); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, updateAnyWait, n, u.AnyWait); err != nil {
		return err
	}
	_, err = t.exec(ctx, updateAnswerBy, n, now)
	return err
}

// with returns the record with what a run gives with its wait. Recorded answers are kept, and a given token is the newer one.
func (k record) with(w durable.Wait) (_ record, err error) {
	if w.TokenHash != [32]byte{} {
		k.token = w.TokenHash[:]
	}
	if k.partial == "" && !k.at.Valid {
		k.partial, err = writePartial(w.Partial)
	}
	if a := w.Answer; a != nil && !k.at.Valid {
		k.decision = decision{sql.NullInt64{Int64: a.At.UnixMicro(), Valid: true}, a.Ends, a.By, a.Data}
	}
	return k, err
}

func writePartial(answers []durable.Answer) (string, error) {
	if len(answers) == 0 {
		return "", nil
	}
	text, err := json.Marshal(lo.Map(answers, func(a durable.Answer, _ int) partialAnswer {
		return partialAnswer{a.At.UnixMicro(), a.More, a.Ends, a.By, a.Data}
	}))
	return string(text), err
}

func readPartial(w durable.Wait, text string) ([]durable.Answer, error) {
	if text == "" {
		return nil, nil
	}
	var stored []partialAnswer
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("the answers to wait %q: %w", w.ID, err)
	}
	return lo.Map(stored, func(p partialAnswer, _ int) durable.Answer {
		return durable.Answer{Wait: w.ID, Subject: w.Subject, More: p.More, Ends: p.Ends, By: p.By, At: fromMicros(p.At), Data: p.Data}
	}), nil
}

// Waits implements durable.Store.
func (s *Store) Waits(ctx context.Context, id agent.RunID) (all []durable.Wait, err error) {
	err = s.read(ctx, "reading waits", func() error {
		all, err = scanWaits(s.statements[selectWaits].QueryContext(ctx, id))
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(all, err)
}

// scanWaits reads rows with waitColumns. It returns sql.ErrNoRows when there is no row: a run without waits has one.
func scanWaits(rows *sql.Rows, err error) (all []durable.Wait, _ error) {
	there := false
	err = scanRows(rows, err, func(rows *sql.Rows) error {
		there = true
		w, found, err := scanWait(rows.Scan)
		if found {
			all = append(all, w)
		}
		return err
	})
	if err == nil && !there {
		err = sql.ErrNoRows
	}
	return all, err
}

// WaitByToken implements durable.Store.
func (s *Store) WaitByToken(ctx context.Context, tokenHash [32]byte) (w durable.Wait, err error) {
	err = s.read(ctx, "looking for a wait", func() error {
		w, _, err = scanWait(s.statements[selectByToken].QueryRowContext(ctx, tokenHash[:]).Scan)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var found bool
		w, found, err = scanWait(s.statements[selectSpare].QueryRowContext(ctx, tokenHash[:]).Scan)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("by its token: %w", durable.ErrNotFound)
		case err == nil && !found:
			if err := s.statements[selectSpent].QueryRowContext(ctx, tokenHash[:]).Scan(&w.Run, &w.ID, &w.Subject); err != nil {
				return err
			}
			return fmt.Errorf("by its token: %w", durable.ErrTokenSpent)
		}
		w.TokenHash = tokenHash
		return err
	})
	if errors.Is(err, durable.ErrTokenSpent) {
		return w, err
	}
	return ignoreNoRows(w, err)
}

// AddToken implements durable.Store.
func (s *Store) AddToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error {
	return s.write(ctx, "adding a token to a wait", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		var open bool
		if err := t.one(ctx, isOpen, h.n, wait).Scan(&open); err != nil {
			return err
		}
		if !open {
			return fmt.Errorf("the token of wait %q of run %q: %w", wait, id, durable.ErrNotFound)
		}
		_, err = t.exec(ctx, insertToken, tokenHash[:], h.n, wait)
		return err
	})
}

// SetToken implements durable.Store.
func (s *Store) SetToken(ctx context.Context, id agent.RunID, wait string, tokenHash [32]byte) error {
	return s.write(ctx, "setting the token of a wait", func(ctx context.Context, t tx) error {
		h, err := readRun(ctx, t, id)
		if err != nil {
			return err
		}
		if done, err := t.exec(ctx, updateToken, h.n, wait, tokenHash[:]); err != nil || done > 0 {
			return err
		}
		var open bool
		if err := t.one(ctx, isOpen, h.n, wait).Scan(&open); err != nil {
			return err
		}
		return fmt.Errorf("the token of wait %q of run %q: %w", wait, id, lo.Ternary(open, durable.ErrExists, durable.ErrNotFound))
	})
}

// scanWait reads a row of waitColumns, and then more columns; found reports whether it contains a wait.
func scanWait(scan func(...any) error, more ...any) (w durable.Wait, found bool, err error) {
	var id, kind, subject, tool, child, host, partial, who sql.NullString
	var asked, deadline micros
	var at sql.NullInt64
	var ends sql.NullBool
	var token, answer []byte
	err = scan(append([]any{
		&w.Run, &id, &kind, &subject, &tool, &asked, &deadline, &child, &host, &token, &w.Data, &partial, &at, &ends, &who, &answer,
	}, more...)...)
	if err != nil || !id.Valid {
		return durable.Wait{}, false, err
	}
	w.ID, w.Kind, w.Subject, w.Tool, w.Host = id.String, durable.WaitKind(kind.String), subject.String, tool.String, host.String
	w.Asked, w.Deadline, w.Child = asked.Time, deadline.Time, agent.RunID(child.String)
	copy(w.TokenHash[:], token)
	if w.Partial, err = readPartial(w, partial.String); err != nil {
		return durable.Wait{}, false, err
	}
	if at.Valid {
		w.Answer = &durable.Answer{Wait: w.ID, Subject: w.Subject, Ends: ends.Bool, By: who.String, At: fromMicros(at.Int64), Data: answer}
	}
	return w, true, nil
}
