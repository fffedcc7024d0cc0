package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	insertRun = `INSERT INTO runs (id, session, kind, name, version, parent, root, queue, status, priority, not_before, start_by,
			deadline, idempotency_key, attempts, created, updated, ready, offer_seq, owner, epoch, leased, expires, submitted_by, phase, demands)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)
		ON CONFLICT (id) DO NOTHING`
	selectByKey = `SELECT ` + runColumns + ` FROM runs WHERE idempotency_key = ? AND idempotency_key <> ''`
	selectQueue = `SELECT id FROM queues WHERE key = ?`
	insertQueue = `INSERT INTO queues (key, kind, name, demands) VALUES (?, ?, ?, ?)`
	insertInput = `INSERT INTO payloads (run, input) SELECT n, ?2 FROM runs WHERE id = ?1`
	insertLabel = `INSERT INTO labels (run, name, value, status) SELECT n, ?2, ?3, status FROM runs WHERE id = ?1`

	// insertAfter lets a run wait for another one.
	insertAfter = `INSERT INTO waits (run, place, id, kind, subject, tool, asked, child, host, checker, partial, ends, who)
		SELECT n, 0, ?2, ?3, ?4, '', ?5, ?6, '', '', '', 0, '' FROM runs WHERE id = ?1`

	// A run without an input or a result gives NULL, which shows that the run exists.
	selectInput     = `SELECT p.input FROM runs r LEFT JOIN payloads p ON p.run = r.n WHERE r.id = ?`
	selectSubmitted = `SELECT iif(p.replaced, p.submitted, p.input) FROM runs r LEFT JOIN payloads p ON p.run = r.n WHERE r.id = ?`
	selectResult    = `SELECT p.result FROM runs r LEFT JOIN payloads p ON p.run = r.n WHERE r.id = ?`
)

// Submit implements durable.Store.
func (s *Store) Submit(ctx context.Context, jobs ...durable.Job) (runs []durable.Run, err error) {
	if jobs, err = prepareJobs(jobs); err != nil || len(jobs) == 0 {
		return nil, err
	}
	err = s.write(ctx, "submitting jobs", func(ctx context.Context, t tx) error {
		runs = make([]durable.Run, len(jobs))
		now := s.clock()
		for i, j := range jobs {
			if runs[i], err = submitJob(ctx, t, j, now); err != nil {
				return err
			}
		}
		return nil
	})
	return ignoreNoRows(runs, err)
}

// Begin implements durable.Store.
func (s *Store) Begin(ctx context.Context, j durable.Job, owner string, ttl time.Duration) (l durable.Lease, err error) {
	if j, err = j.PrepareToBegin(); err != nil {
		return durable.Lease{}, err
	}
	err = s.write(ctx, "beginning a run", func(ctx context.Context, t tx) error {
		if _, known, err := findByKey(ctx, t, j.IdempotencyKey); err != nil || known {
			return errors.Join(err, exists(j.ID))
		}
		now := s.clock()
		r := newRun(j, now)
		r.Status, r.Ready, r.Attempts = durable.StatusRunning, time.Time{}, 1
		r.Owner, r.Epoch, r.Expires = owner, 1, fromMicros(now+ttl.Microseconds())
		l = r.Lease()
		return insert(ctx, t, r, j.Input)
	})
	return ignoreNoRows(l, err)
}

func prepareJobs(jobs []durable.Job) (prepared []durable.Job, err error) {
	for _, j := range jobs {
		if j, err = j.Prepare(); err != nil {
			return nil, err
		}
		prepared = append(prepared, j)
	}
	return prepared, nil
}

// submitJob stores a prepared job, or returns the run of the first job with its idempotency key.
func submitJob(ctx context.Context, t tx, j durable.Job, now int64) (durable.Run, error) {
	if r, known, err := findByKey(ctx, t, j.IdempotencyKey); err != nil || known {
		return r, err
	}
	r := newRun(j, now)
	follows := false
	if j.After != "" {
		after, err := readRun(ctx, t, j.After)
		if err != nil {
			return durable.Run{}, fmt.Errorf("run %q starts after another: %w", j.ID, err)
		}
		if follows = !after.status.Ended(); follows {
			r.Status, r.Ready = durable.StatusWaiting, time.Time{}
		}
	}
	if r.Status == durable.StatusReady {
		t.notify()
	}
	if err := insert(ctx, t, r, j.Input); err != nil || !follows {
		return r, err
	}
	w := durable.AfterWait(j.ID, j.After, r.Created)
	_, err := t.exec(ctx, insertAfter, string(j.ID), w.ID, string(w.Kind), w.Subject, micros{w.Asked}, string(w.Child))
	return r, err
}

// findByKey returns the run with an idempotency key, and whether there is one.
func findByKey(ctx context.Context, t tx, key string) (r durable.Run, known bool, err error) {
	if key == "" {
		return durable.Run{}, false, nil
	}
	r, err = scanRun(t.one(ctx, selectByKey, key).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return durable.Run{}, false, nil
	}
	return r, err == nil, err
}

// newRun returns the run of a job as the store returns it later.
func newRun(j durable.Job, now int64) durable.Run {
	r := durable.Run{
		ID: j.ID, Session: j.Session, Kind: j.Kind, Name: j.Name, Version: j.Version, Parent: j.Parent, Root: j.Root,
		Phase: j.Phase, Status: durable.StatusReady, Priority: j.Priority, IdempotencyKey: j.IdempotencyKey, By: j.By,
		Created: fromMicros(now), Updated: fromMicros(now), Ready: fromMicros(now),
		NotBefore: wholeMicros(j.NotBefore), StartBy: wholeMicros(j.StartBy), Deadline: wholeMicros(j.Deadline),
	}
	if len(j.Demands) > 0 {
		r.Demands = maps.Clone(j.Demands)
	}
	if len(j.Labels) > 0 {
		r.Labels = maps.Clone(j.Labels)
	}
	if r.NotBefore.After(r.Created) {
		r.Status, r.Ready = durable.StatusPending, time.Time{}
	}
	return r
}

// insert stores a new run with its queue, input and labels.
func insert(ctx context.Context, t tx, r durable.Run, input []byte) error {
	queue, err := queueOf(ctx, t, r.Needs())
	if err != nil {
		return err
	}
	var leased micros
	offers := 0
	if r.Owner != "" {
		leased.Time = r.Created
	}
	if r.Status == durable.StatusReady {
		offers = 1
	}
	demands := ""
	if r.Phase != "" {
		if demands, err = namesText(r.Demands); err != nil {
			return err
		}
	}
	made, err := t.exec(ctx, insertRun, string(r.ID), string(r.Session), string(r.Kind), r.Name, r.Version, string(r.Parent), string(r.Root),
		queue, string(r.Status), r.Priority, micros{r.NotBefore}, micros{r.StartBy}, micros{r.Deadline}, r.IdempotencyKey, r.Attempts,
		micros{r.Created}, micros{r.Ready}, offers, r.Owner, r.Epoch, leased, micros{r.Expires}, r.By, string(r.Phase), demands)
	if err != nil {
		return err
	}
	if made == 0 {
		return exists(r.ID)
	}
	if len(input) > 0 {
		if _, err := t.exec(ctx, insertInput, string(r.ID), input); err != nil {
			return err
		}
	}
	for name, value := range r.Labels {
		if _, err := t.exec(ctx, insertLabel, string(r.ID), name, value); err != nil {
			return err
		}
	}
	return nil
}

// queueOf returns the number of the queue of runs with the given needs, and adds the queue if it is new.
func queueOf(ctx context.Context, t tx, needs durable.Needs) (queue int64, err error) {
	key := needs.Key()
	err = t.one(ctx, selectQueue, key[:]).Scan(&queue)
	if !errors.Is(err, sql.ErrNoRows) {
		return queue, err
	}
	demands, err := namesText(needs.Demands)
	if err != nil {
		return 0, err
	}
	if _, err := t.exec(ctx, insertQueue, key[:], string(needs.Kind), needs.Name, demands); err != nil {
		return 0, err
	}
	return queue, t.one(ctx, selectQueue, key[:]).Scan(&queue)
}

// namesText returns the stored form of labels or demands; empty for none.
func namesText(names map[string]string) (string, error) {
	if len(names) == 0 {
		return "", nil
	}
	text, err := json.Marshal(names)
	return string(text), err
}

// Input implements durable.Store.
func (s *Store) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.payload(ctx, "reading the input of a run", selectInput, id)
}

// SubmittedInput implements durable.Store.
func (s *Store) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.payload(ctx, "reading the submitted input of a run", selectSubmitted, id)
}

// Result implements durable.Store.
func (s *Store) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	return s.payload(ctx, "reading the result of a run", selectResult, id)
}

func (s *Store) payload(ctx context.Context, doing, query string, id agent.RunID) (data []byte, err error) {
	err = s.read(ctx, doing, func() error {
		err := s.statements[query].QueryRowContext(ctx, id).Scan(&data)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(id)
		}
		return err
	})
	return ignoreNoRows(data, err)
}

func exists(id agent.RunID) error { return fmt.Errorf("run %q: %w", id, durable.ErrExists) }
