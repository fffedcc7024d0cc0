package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Submit stores jobs as runs: see durable.Store. If the reply of the database was lost, a repeated call returns the stored runs
// of jobs with an idempotency key, and ErrExists for other jobs with an ID.
func (s *Store) Submit(ctx context.Context, jobs ...durable.Job) (runs []durable.Run, err error) {
	err = s.call(ctx, "submit jobs", func(ctx context.Context) error {
		prepared, err := prepare(jobs)
		if err != nil || len(jobs) == 0 {
			return err
		}
		stored, err := s.insert(ctx, prepared, start{})
		if err != nil {
			return err
		}
		first, err := s.firstRuns(ctx, prepared, stored)
		if err != nil {
			return err
		}
		runs = lo.Map(prepared, func(j durable.Job, _ int) durable.Run {
			return stored[lo.CoalesceOrEmpty(first[j.IdempotencyKey], j.ID)]
		})
		return nil
	})
	return runs, err
}

// Begin stores a job as a leased run: see durable.Store. If the reply of the database was lost, a repeated call with the same ID
// returns ErrExists once the run exists; its owner then acquires it.
func (s *Store) Begin(ctx context.Context, j durable.Job, owner string, ttl time.Duration) (l durable.Lease, err error) {
	err = s.call(ctx, fmt.Sprintf("begin run %s", j.ID), func(ctx context.Context) error {
		j, err := j.PrepareToBegin()
		if err != nil {
			return err
		}
		stored, err := s.insert(ctx, []durable.Job{j}, start{running: true, owner: owner, ttl: ttl})
		if err != nil {
			return err
		}
		r, ok := stored[j.ID]
		if !ok {
			return durable.ErrExists
		}
		l = r.Lease()
		return nil
	})
	return l, err
}

// prepare fills in the defaults of jobs.
func prepare(jobs []durable.Job) (prepared []durable.Job, err error) {
	for _, j := range jobs {
		j, err := j.Prepare()
		if err != nil {
			return nil, err
		}
		prepared = append(prepared, j)
	}
	return prepared, nil
}

// insert stores prepared jobs and returns the new runs by ID: none for a job whose idempotency key is known.
func (s *Store) insert(ctx context.Context, jobs []durable.Job, at start) (map[agent.RunID]durable.Run, error) {
	var (
		b pgx.Batch
		f = following{jobs: jobs}
	)
	lockChildren(&b, afters(jobs), &f.locked)
	s.queues.add(&b, jobs)
	query, args := insertQuery(jobs, at)
	b.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		f.added, err = scanInserted(rows)
		return err
	})
	if err := f.send(ctx, s, &b); err != nil {
		return nil, s.queues.explain(err)
	}
	s.queues.remember(jobs)
	return f.added, nil
}

// scanInserted reads the rows of insertQuery.
func scanInserted(rows pgx.Rows) (map[agent.RunID]durable.Run, error) {
	stored := map[agent.RunID]durable.Run{}
	for rows.Next() {
		r, err := scanRun(rows, new(*string))
		if err != nil {
			return nil, err
		}
		stored[r.ID] = r
	}
	return stored, rows.Err()
}

// firstRuns adds the runs of known idempotency keys to the stored runs, and returns the ID of the run of each key.
func (s *Store) firstRuns(ctx context.Context, jobs []durable.Job, stored map[agent.RunID]durable.Run) (map[string]agent.RunID, error) {
	first := map[string]agent.RunID{}
	var known []text
	for _, j := range jobs {
		if r, isNew := stored[j.ID]; isNew && j.IdempotencyKey != "" && r.IdempotencyKey == j.IdempotencyKey {
			first[j.IdempotencyKey] = j.ID
		}
	}
	for _, j := range jobs {
		if _, found := first[j.IdempotencyKey]; !found && j.IdempotencyKey != "" {
			known = append(known, text(j.IdempotencyKey))
		}
	}
	if len(known) == 0 {
		return first, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT `+runColumns+` FROM runs r WHERE r.idempotency_key = ANY ($1)`, known)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, collectRun)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		stored[r.ID], first[r.IdempotencyKey] = r, r.ID
	}
	for _, key := range known {
		if _, found := first[string(key)]; !found {
			return nil, fmt.Errorf("the first run with the idempotency key %q was deleted at the same time: submit again", key)
		}
	}
	return first, nil
}

// start says how new runs start: waiting for a worker, or with a lease.
type start struct {
	running bool
	owner   string
	ttl     time.Duration
	// commit, unless nil, is the Commit that submits the jobs.
	commit *committing
}

// insertQuery returns the statement that stores prepared jobs. It returns the new runs, with a text to ignore. Of jobs with
// the same idempotency key it stores the first.
func insertQuery(jobs []durable.Job, at start) (query string, args []any) {
	keys := map[string]bool{}
	jobs = lo.Filter(jobs, func(j durable.Job, _ int) bool {
		known := j.IdempotencyKey != "" && keys[j.IdempotencyKey]
		keys[j.IdempotencyKey] = true
		return !known
	})
	from := ""
	if at.commit != nil {
		from, args = `JOIN runs r ON `+fits, at.commit.fit()
	} else {
		args = make([]any, 0, 24)
	}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	list := func(f func(j durable.Job) string) string {
		return arg(lo.Map(jobs, func(j durable.Job, _ int) text { return text(f(j)) })) + "::text[]"
	}
	times := func(f func(j durable.Job) time.Time) string {
		return arg(lo.Map(jobs, func(j durable.Job, _ int) *time.Time { return orNull(f(j)) })) + "::timestamptz[]"
	}
	unnest := `unnest(` +
		list(func(j durable.Job) string { return string(j.ID) }) + `, ` +
		list(func(j durable.Job) string { return string(j.Session) }) + `, ` +
		list(func(j durable.Job) string { return string(j.Kind) }) + `, ` +
		list(func(j durable.Job) string { return j.Name }) + `, ` +
		list(func(j durable.Job) string { return j.Version }) + `, ` +
		list(func(j durable.Job) string { return string(j.Parent) }) + `, ` +
		list(func(j durable.Job) string { return string(j.Root) }) + `, ` +
		arg(lo.Map(jobs, func(j durable.Job, _ int) string { return pairsText(j.Labels) })) + `::text[], ` +
		arg(lo.Map(jobs, func(j durable.Job, _ int) int16 { return int16(j.Priority) })) + `::smallint[], ` +
		times(func(j durable.Job) time.Time { return j.NotBefore }) + `, ` +
		times(func(j durable.Job) time.Time { return j.StartBy }) + `, ` +
		times(func(j durable.Job) time.Time { return j.Deadline }) + `, ` +
		list(func(j durable.Job) string { return j.IdempotencyKey }) + `, ` +
		list(func(j durable.Job) string { return j.By }) + `, ` +
		list(func(j durable.Job) string { return string(j.Phase) }) + `, ` +
		list(func(j durable.Job) string { return lo.Ternary(j.Phase != "", pairsText(j.Demands), "") }) + `, ` +
		list(func(j durable.Job) string { return string(j.After) }) + `, ` +
		arg(lo.Map(jobs, func(j durable.Job, _ int) []byte { return queueKey(j) })) + `::bytea[], ` +
		arg(lo.Map(jobs, func(j durable.Job, _ int) []byte { return orNil(j.Input) })) + `::bytea[])`
	status, owner, expires, attempt := `CASE WHEN j.not_before > clock_timestamp() THEN 'pending' ELSE 'ready' END`, `''`, `NULL`, `0`
	if follows(jobs) {
		from += ` LEFT JOIN runs p ON p.id = j.after`
		ended := `p.ended IS NOT NULL`
		if at.commit != nil && at.commit.ends() {
			ended += ` OR j.after = $1`
		}
		status = `CASE WHEN j.after <> '' AND NOT (` + ended + `) THEN 'waiting' ELSE ` + status + ` END`
	}
	if at.running {
		status, owner, expires, attempt = `'running'`, arg(text(at.owner)), `clock_timestamp() + `+arg(at.ttl)+`::interval`, `1`
	}
	//nolint:unqueryvet // the rows of j are passed on
	query = `WITH j AS (
			SELECT j.*, ` + status + ` AS status FROM ` + unnest + ` WITH ORDINALITY
				j (id, session, kind, name, version, parent, root, labels, priority, not_before, start_by, deadline, idempotency_key,
					submitted_by, phase, demands, after, queue, input, place)
			` + from + `
		),
		added AS (
			INSERT INTO runs (id, session, kind, name, version, parent, root, labels, priority, not_before, start_by, deadline,
				idempotency_key, submitted_by, phase, demands, queue, status, reason, steps, ready, offer_seq, owner, epoch, attempts, expires)
			SELECT j.id, j.session, j.kind, j.name, j.version, j.parent, j.root, j.labels, j.priority, j.not_before, j.start_by, j.deadline,
				nullif(j.idempotency_key, ''), j.submitted_by, j.phase, j.demands, (SELECT q.id FROM queues q WHERE q.key = j.queue), j.status, '', 0,
				CASE WHEN j.status = 'ready' THEN clock_timestamp() END, CASE WHEN j.status = 'ready' THEN 1 ELSE 0 END,
				` + owner + `, ` + attempt + `, ` + attempt + `, ` + expires + `
			FROM j ORDER BY j.place
			ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
			RETURNING *
		),
		inputs AS (INSERT INTO payloads (run, input) SELECT a.num, j.input FROM added a JOIN j ON ` + isAdded + ` WHERE j.input IS NOT NULL)`
	if follows(jobs) {
		w := durable.AfterWait("", "", time.Time{})
		query += `,
		following AS (
			INSERT INTO waits (run, run_id, place, id, kind, subject, tool, asked, child, ends)
			SELECT a.num, a.id, 1, ` + arg(text(w.ID)) + `, ` + arg(text(w.Kind)) + `, ` + arg(text(w.Subject)) + `, '', a.created, j.after, false
			FROM added a JOIN j ON ` + isAdded + ` WHERE a.status = 'waiting'
		)`
	}
	if labels := labelRows(jobs); len(labels.names) > 0 {
		query += `,
		labelled AS (
			INSERT INTO labels (run, name, value, status) SELECT a.num, j.name, j.value, a.status
			FROM added a JOIN unnest(` + arg(labels.runs) + `::text[], ` + arg(labels.keys) + `::text[], ` + arg(labels.names) + `::text[], ` +
			arg(labels.values) + `::text[]) j (id, idempotency_key, name, value) ON ` + isAdded + `
		)`
	}
	return query + `
		SELECT ` + runColumns + `, (SELECT ` + wakeListeners + ` FROM added WHERE status = 'ready' LIMIT 1) FROM added r`, args
}

// labelTable has the labels of jobs in rows.
type labelTable struct{ runs, keys, names, values []text }

// isAdded is the condition that the new run a is that of the job j. Of several jobs with its ID, others have known keys.
const isAdded = `j.id = a.id AND j.idempotency_key = coalesce(a.idempotency_key, '')`

func labelRows(jobs []durable.Job) (t labelTable) {
	for _, j := range jobs {
		for name, value := range j.Labels {
			t.runs, t.keys = append(t.runs, text(j.ID)), append(t.keys, text(j.IdempotencyKey))
			t.names, t.values = append(t.names, text(name)), append(t.values, text(value))
		}
	}
	return t
}

// orNil returns nil for no bytes, which is stored as null.
func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
