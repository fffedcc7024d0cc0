package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/durable"
)

const (
	// selectReadyQueues returns the queues with ready runs, of those with the given keys in hexadecimal.
	selectReadyQueues = `SELECT q.id FROM json_each(?1) k CROSS JOIN queues q ON q.key = unhex(k.value)
		WHERE EXISTS (SELECT 1 FROM runs INDEXED BY runs_ready WHERE queue = q.id AND status = 'ready')`
	selectReady = `SELECT n, priority, ready FROM runs INDEXED BY runs_ready WHERE queue = ?1 AND status = 'ready'
		ORDER BY priority DESC, ready, n LIMIT ?2`
	updateClaimed = `UPDATE runs SET status = 'running', owner = ?2, epoch = epoch + 1, attempts = attempts + 1, leased = ?3, updated = ?3,
		expires = ?4, ready = NULL WHERE n = ?1 RETURNING ` + runColumns
	selectQueues = `SELECT kind, name, demands FROM queues`
)

// idleAtOnce is how many claims of a process run at once, so that they can share a commit.
const idleAtOnce = 4

// Claim implements durable.Store. It writes only when it has seen a ready run, so that idle workers do not
// keep others from writing.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration, limit int, keys ...durable.Key) (runs []durable.Run, err error) {
	if limit <= 0 || len(keys) == 0 {
		return nil, nil
	}
	list := listKeys(keys)
	_, err = s.idle.Do(ctx, "claim "+list, func() (_ struct{}, empty bool, err error) {
		queues, err := s.readyQueues(ctx, list)
		if err == nil && len(queues) > 0 {
			runs, err = s.claimFrom(ctx, owner, ttl, limit, queues)
		}
		return struct{}{}, len(runs) == 0, err
	})
	return runs, err
}

// claimFrom claims runs of some queues.
func (s *Store) claimFrom(ctx context.Context, owner string, ttl time.Duration, limit int, queues []int64) (runs []durable.Run, err error) {
	err = s.write(ctx, "claiming runs", func(ctx context.Context, t tx) error {
		runs = nil
		ready, err := readyRuns(ctx, t, queues, limit)
		now := s.clock()
		for _, c := range ready {
			if err != nil {
				break
			}
			var r durable.Run
			r, err = scanRun(t.one(ctx, updateClaimed, c.n, owner, now, now+ttl.Microseconds()).Scan)
			runs = append(runs, r)
		}
		return err
	})
	return ignoreNoRows(runs, err)
}

// readyQueues returns the queues that have ready runs, of those with the keys of a list: see listKeys.
func (s *Store) readyQueues(ctx context.Context, list string) (queues []int64, err error) {
	err = s.read(ctx, "looking for ready runs", func() error {
		queues = nil
		rows, err := s.statements[selectReadyQueues].QueryContext(ctx, list)
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var queue int64
			err := rows.Scan(&queue)
			queues = append(queues, queue)
			return err
		})
	})
	return ignoreNoRows(queues, err)
}

// listKeys returns different keys as a JSON list, in hexadecimal.
func listKeys(keys []durable.Key) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = `"` + hex.EncodeToString(k[:]) + `"`
	}
	slices.Sort(texts)
	return "[" + strings.Join(slices.Compact(texts), ",") + "]"
}

// readyRun is a ready run that may be claimed.
type readyRun struct{ n, priority, since int64 }

// readyRuns returns the best ready runs of several queues, in the order in which they are to be claimed.
func readyRuns(ctx context.Context, t tx, queues []int64, limit int) (best []readyRun, err error) {
	for _, queue := range queues {
		rows, err := t.rows(ctx, selectReady, queue, limit)
		err = scanRows(rows, err, func(rows *sql.Rows) error {
			var c readyRun
			err := rows.Scan(&c.n, &c.priority, &c.since)
			best = append(best, c)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(queues) > 1 {
		slices.SortFunc(best, func(a, b readyRun) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.since, b.since), cmp.Compare(a.n, b.n))
		})
	}
	return best[:min(limit, len(best))], nil
}

// Queues implements durable.Store.
func (s *Store) Queues(ctx context.Context) ([]durable.Needs, error) {
	all, err := s.queues.Do(ctx, "", func() (all []durable.Needs, share bool, err error) {
		all, err = s.readQueues(ctx)
		return all, true, err
	})
	return slices.Clone(all), err
}

func (s *Store) readQueues(ctx context.Context) (all []durable.Needs, err error) {
	err = s.read(ctx, "reading the queues", func() error {
		all = nil
		rows, err := s.statements[selectQueues].QueryContext(ctx)
		return scanRows(rows, err, func(rows *sql.Rows) error {
			var needs durable.Needs
			var demands string
			err := rows.Scan(&needs.Kind, &needs.Name, &demands)
			if err == nil {
				needs.Demands, err = parseNames(demands)
			}
			all = append(all, needs)
			return err
		})
	})
	return ignoreNoRows(all, err)
}

// parseNames parses a JSON object of strings; nil for none.
func parseNames(text string) (names map[string]string, err error) {
	if text == "" || text == "{}" {
		return nil, nil
	}
	return names, json.Unmarshal([]byte(text), &names)
}
