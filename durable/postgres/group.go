package postgres

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Plain commits of concurrent runs share transactions, so that they share a message and wait for the disk together. A Commit
// that finds fewer than groupsAtOnce transactions under way is sent at once, by its caller. Those that come meanwhile wait and
// form the next group. A Commit whose lease or numbers do not fit changes nothing, so the others of its group need no
// savepoint. When a transaction fails, each Commit of the group is sent again alone: see Commit for why that is safe.

const (
	// groupsAtOnce is the maximum number of transactions with plain commits: some wait for the disk, or for a lock of a run,
	// while others are computed.
	groupsAtOnce = 2
	// maxGroup is the maximum number of commits in a transaction.
	maxGroup = 64
)

// queuedCommit is a plain Commit that waits for its group. The fields below over are set when over is closed.
type queuedCommit struct {
	a    *committing
	over chan struct{}

	changed *bool
	err     error // of the transaction
}

// commitQueue holds the plain commits that wait. It is empty when fewer than groupsAtOnce transactions are under way.
type commitQueue struct {
	mu       sync.Mutex
	waiting  []*queuedCommit
	underWay int // transactions
}

// join adds a Commit to the queue. It returns nil if the caller must send it: then it counts as a transaction under way.
func (q *commitQueue) join(a *committing) *queuedCommit {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay < groupsAtOnce {
		q.underWay++
		return nil
	}
	w := &queuedCommit{a: a, over: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	return w
}

// leave removes a Commit from the queue, and reports whether it was there.
func (q *commitQueue) leave(w *queuedCommit) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// next ends a transaction under way. If commits wait, it returns the group of the next one.
func (q *commitQueue) next() []*queuedCommit {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxGroup)
	if n == 0 {
		q.underWay--
		return nil
	}
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// commitPlain makes a Commit that is one statement, and reports whether it changed the run.
func (s *Store) commitPlain(ctx context.Context, a *committing) (changed bool, err error) {
	w := s.commits.join(a)
	if w == nil {
		defer func() {
			if group := s.commits.next(); group != nil {
				go s.sendGroups(context.WithoutCancel(ctx), group)
			}
		}()
		return s.commitAlone(ctx, a)
	}
	select {
	case <-w.over:
	case <-ctx.Done():
		if s.commits.leave(w) {
			return false, ctx.Err()
		}
		<-w.over // a Commit that is sent ends with its group
	}
	if w.err != nil {
		return s.commitAlone(ctx, a)
	}
	return *w.changed, nil
}

func (s *Store) commitAlone(ctx context.Context, a *committing) (changed bool, err error) {
	var b pgx.Batch
	done := a.update(&b)
	err = s.batch(ctx, &b)
	return *done, err
}

// sendGroups sends a group, and then those that have formed meanwhile.
func (s *Store) sendGroups(ctx context.Context, group []*queuedCommit) {
	for ; group != nil; group = s.commits.next() {
		s.sendGroup(ctx, group)
	}
}

func (s *Store) sendGroup(ctx context.Context, group []*queuedCommit) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// Transactions that lock runs in the same order do not wait for each other in a circle.
	slices.SortStableFunc(group, func(x, y *queuedCommit) int { return cmp.Compare(x.a.l.Run, y.a.l.Run) })
	var b pgx.Batch
	for _, w := range group {
		w.changed = w.a.update(&b)
	}
	err := s.batch(ctx, &b)
	for _, w := range group {
		w.err = err
		close(w.over)
	}
}
