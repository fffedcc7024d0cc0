package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

const updateChecker = `UPDATE waits SET checker = ?2, checked_until = ?3 WHERE rowid = ?1`

// check is a wait with the claim of the owner that watches for it.
type check struct {
	durable.Wait

	row     int64
	checker string
	until   micros
}

// checkClaim is a request for waits to watch.
type checkClaim struct {
	owner string
	ttl   time.Duration
	limit int
	kinds []durable.WaitKind
	hosts []string
}

// ClaimChecks implements durable.Store. It writes only when it has seen a wait to claim or a claim to renew, so that idle
// workers do not keep others from writing.
func (s *Store) ClaimChecks(
	ctx context.Context, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) (all []durable.Wait, err error) {
	if limit <= 0 || len(kinds) == 0 {
		return nil, nil
	}
	c := checkClaim{owner, ttl, limit, lo.Uniq(kinds), lo.Uniq(append([]string{""}, hosts...))}
	var found []check
	renews := false
	err = s.read(ctx, "looking for waits to watch", func() error {
		now := s.clock()
		found, err = c.find(ctx, s.readers, now)
		renews = slices.ContainsFunc(found, func(w check) bool { return c.mustRenew(w, now) })
		return err
	})
	if err == nil && renews {
		err = s.write(ctx, "claiming waits to watch", func(ctx context.Context, t tx) (err error) {
			now := s.clock()
			if found, err = c.find(ctx, t, now); err != nil {
				return err
			}
			for _, w := range found {
				if !c.mustRenew(w, now) {
					continue
				}
				if _, err := t.exec(ctx, updateChecker, w.row, owner, now+ttl.Microseconds()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return ignoreNoRows(lo.Map(found, func(w check, _ int) durable.Wait { return w.Wait }), err)
}

// mustRenew reports whether the claim of the owner to a wait is new, or has less than half of its time left.
func (c checkClaim) mustRenew(w check, now int64) bool {
	return w.checker != c.owner || w.until.UnixMicro() < now+c.ttl.Microseconds()/2
}

// find returns the waits that the owner has, and then those that it may have, up to its limit, in the order of OpenWaits.
func (c checkClaim) find(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, now int64,
) (found []check, err error) {
	query, args := c.selectOwn()
	rows, err := db.QueryContext(ctx, query, args...)
	if found, err = scanChecks(rows, err); err != nil || len(found) >= c.limit {
		return found, err
	}
	query, args = c.selectFree(now)
	rows, err = db.QueryContext(ctx, query, args...)
	free, err := scanChecks(rows, err)
	if err != nil {
		return nil, err
	}
	found = append(found, free[:min(len(free), c.limit-len(found))]...)
	slices.SortStableFunc(found, func(a, b check) int {
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.Run, b.Run), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

func scanChecks(rows *sql.Rows, err error) (all []check, _ error) {
	err = scanRows(rows, err, func(rows *sql.Rows) (err error) {
		var w check
		w.Wait, _, err = scanWait(rows.Scan, &w.row, &w.checker, &w.until)
		all = append(all, w)
		return err
	})
	return all, err
}

const (
	checkColumns = waitColumns + ", w.rowid, w.checker, w.checked_until"
	watchable    = " CROSS JOIN runs r ON r.n = w.run WHERE r.status = 'waiting' AND r.paused = 0 AND w.answered IS NULL"
)

// among returns the condition that the kind and the host are among those of the claim.
func (c checkClaim) among() (condition string, args []any) {
	list := func(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }
	return " AND w.kind IN " + list(len(c.kinds)) + " AND w.host IN " + list(len(c.hosts)),
		append(lo.ToAnySlice(c.kinds), lo.ToAnySlice(c.hosts)...)
}

// selectOwn returns the query for the waits that the owner has.
func (c checkClaim) selectOwn() (query string, args []any) {
	among, args := c.among()
	return "SELECT " + checkColumns + " FROM waits w INDEXED BY waits_watched" + watchable + " AND w.checker = ? AND w.checker <> ''" +
		among + waitOrder + " LIMIT ?", append(append([]any{c.owner}, args...), c.limit)
}

// selectFree returns the query for the waits that no owner has, or whose owner has not renewed its claim. Its parts read an
// index for each kind and host in the order of the result, so that the query costs what it returns.
func (c checkClaim) selectFree(now int64) (query string, args []any) {
	among, values := c.among()
	parts := []string{"SELECT w.rowid AS listed FROM waits w INDEXED BY waits_lapsed" + watchable +
		" AND w.checker <> '' AND w.checker <> ? AND w.checked_until <= ?" + among + waitOrder + " LIMIT ?"}
	args = append(append([]any{c.owner, now}, values...), c.limit)
	for _, kind := range c.kinds {
		for _, host := range c.hosts {
			parts = append(parts, "SELECT w.rowid AS listed FROM waits w INDEXED BY waits_unwatched"+watchable+
				" AND w.checker = '' AND w.kind = ? AND w.host = ?"+waitOrder+" LIMIT ?")
			args = append(args, string(kind), host, c.limit)
		}
	}
	return "SELECT " + checkColumns + " FROM (SELECT listed FROM (" + strings.Join(parts, ") UNION ALL SELECT listed FROM (") +
		")) CROSS JOIN waits w ON w.rowid = listed CROSS JOIN runs r ON r.n = w.run" + waitOrder + " LIMIT ?", append(args, c.limit)
}
