package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/internal/store"
)

func openTest(t *testing.T, o Options) *Store {
	t.Helper()
	o.Sync = SyncNormal
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// lockFile locks the file as another process that writes does, until unlock.
func lockFile(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.db.path+"?_txlock=immediate")
	require.NoError(t, err)
	other, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	return func() {
		require.NoError(t, other.Rollback())
		require.NoError(t, db.Close())
	}
}

// awaitQueue waits until as many writes wait.
func awaitQueue(s *Store, n int) {
	for s.db.queue.Len() != n {
		runtime.Gosched()
	}
}

// runTogether runs writes in one transaction, in the order given, and returns their errors.
func runTogether(t *testing.T, s *Store, writes ...func(t *tx) error) []error {
	t.Helper()
	unlock := lockFile(t, s)
	errs := make([]error, len(writes))
	var callers sync.WaitGroup
	for i, do := range writes {
		callers.Go(func() { errs[i] = s.db.enqueue(t.Context(), "testing", do) })
		awaitQueue(s, i+1)
	}
	unlock()
	callers.Wait()
	return errs
}

func makeRun(t *testing.T, s *Store, id agent.RunID) durable.Lease {
	t.Helper()
	l, err := s.Begin(t.Context(), durable.Job{ID: id}, "one", time.Hour)
	require.NoError(t, err)
	return l
}

// commit commits entries and an update.
func commit(ctx context.Context, s *Store, l durable.Lease, u durable.Update, entries ...durable.Entry) error {
	return s.Commit(ctx, l, durable.Commit{Entries: entries, Update: u})
}

// addSteps adds to the number of steps of a run.
func addSteps(t *tx, id agent.RunID, n int) error {
	return t.Exec(`UPDATE runs SET steps = steps + ? WHERE id = ?`, n, string(id))
}

// committedSteps returns the steps of all runs without the transaction that runs.
func committedSteps(s *Store) (n int) {
	if err := s.db.readers.QueryRowContext(context.Background(), `SELECT sum(steps) FROM runs`).Scan(&n); err != nil {
		panic(err)
	}
	return n
}

func stepsOf(t *testing.T, s *Store, id agent.RunID) int {
	t.Helper()
	r, err := s.Run(t.Context(), id)
	require.NoError(t, err)
	return r.Steps
}

func newStep(seq int64) durable.Entry {
	return durable.Entry{Seq: seq, Kind: "note", At: time.Now(), Data: []byte("data")}
}

// Every write counts a run and itself. A write that fails is undone alone, wherever in its group
// it stands.
func TestWritesShareATransaction(t *testing.T) {
	refusal := errors.New("refused")
	for name, refuses := range map[string][]int{
		"none": {}, "the first": {0}, "the second": {1}, "the last": {4}, "some": {0, 2, 3}, "all": {0, 1, 2, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, Options{Wait: time.Hour})
			makeRun(t, s, "r")
			want := 0
			transactions := map[int]int{} // by the steps that are committed before
			writes := make([]func(*tx) error, 5)
			fails := make([]bool, len(writes))
			for _, i := range refuses {
				fails[i] = true
			}
			for i := range writes {
				if !fails[i] {
					want += 1 << i
				}
				writes[i] = func(t *tx) error {
					if err := addSteps(t, "r", 1<<i); err != nil {
						return err
					}
					if fails[i] {
						return refusal
					}
					transactions[committedSteps(s)]++
					return nil
				}
			}
			for i, err := range runTogether(t, s, writes...) {
				if fails[i] {
					require.ErrorIs(t, err, refusal)
				} else {
					require.NoError(t, err)
				}
			}
			assert.Equal(t, want, stepsOf(t, s, "r"))
			assert.LessOrEqual(t, len(transactions), 1, "one transaction holds all writes that succeed")
		})
	}
}

// Many callers move units between runs, and are refused when the balance would fall below zero.
// The outcomes are those of one caller that makes the moves in the order they ran in.
func TestOutcomeIsThatOfASerialOrder(t *testing.T) {
	const runs, callers, moves = 4, 16, 40
	s := openTest(t, Options{})
	for i := range runs {
		makeRun(t, s, agent.RunID(fmt.Sprint(i)))
	}
	require.NoError(t, s.db.enqueue(t.Context(), "testing", func(t *tx) error {
		return addSteps(t, "0", 20)
	}))
	type move struct {
		from, to, units int
		lost            bool
	}
	errPoor := errors.New("below zero")
	var order []*move // in which the moves ran: one at a time
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range moves {
				m := &move{from: rand.IntN(runs), to: rand.IntN(runs), units: 1 + rand.IntN(8)}
				err := s.db.enqueue(t.Context(), "testing", func(t *tx) error {
					order = append(order, m)
					from, to := agent.RunID(fmt.Sprint(m.from)), agent.RunID(fmt.Sprint(m.to))
					if err := errors.Join(addSteps(t, from, -m.units), addSteps(t, to, m.units)); err != nil {
						return err
					}
					left, _, err := store.SelectOne(t, func(n *int) []any { return []any{n} }, `SELECT min(steps) FROM runs`)
					if err != nil {
						return err
					}
					if left < 0 {
						return errPoor
					}
					return nil
				})
				m.lost = errors.Is(err, errPoor)
				if err != nil {
					assert.ErrorIs(t, err, errPoor)
				}
			}
		})
	}
	group.Wait()
	require.Len(t, order, callers*moves)
	balance, losses := [runs]int{20}, 0
	for i, m := range order {
		fails := m.from != m.to && balance[m.from] < m.units
		require.Equal(t, fails, m.lost, "move %d of %d units from %d to %d, at %v", i, m.units, m.from, m.to, balance)
		if fails {
			losses++
			continue
		}
		balance[m.from] -= m.units
		balance[m.to] += m.units
	}
	assert.Positive(t, losses)
	for i, want := range balance {
		assert.Equal(t, want, stepsOf(t, s, agent.RunID(fmt.Sprint(i))))
	}
}

// The methods of the store, many at once: refused ones leave no trace, and all others are done.
func TestManyWritersSomeRefused(t *testing.T) {
	const runs, entries = 24, 8
	s := openTest(t, Options{Wait: time.Hour})
	var group sync.WaitGroup
	for i := range runs {
		id := agent.RunID(fmt.Sprint("r", i))
		l := makeRun(t, s, id)
		old := l
		old.Epoch = 7
		group.Go(func() {
			for seq := int64(1); seq <= entries; seq++ {
				assert.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusRunning, Steps: int(seq)}, newStep(seq)))
			}
		})
		group.Go(func() {
			for range entries {
				assert.ErrorIs(t, commit(t.Context(), s, old, durable.Update{}, newStep(1)), durable.ErrStale)
				assert.ErrorAs(t, commit(t.Context(), s, l, durable.Update{}, newStep(99)), new(*durable.SeqError))
				_, err := s.Begin(t.Context(), durable.Job{ID: id}, "two", time.Hour)
				assert.ErrorIs(t, err, durable.ErrExists)
				_, err = s.Acquire(t.Context(), id, "two", time.Hour, durable.TakeFree)
				assert.ErrorAs(t, err, new(*durable.HeldError))
				assert.ErrorIs(t, s.Signal(t.Context(), "none", durable.Signal{Kind: durable.SignalCancel, Text: ""}), durable.ErrNotFound)
			}
		})
	}
	group.Wait()
	for i := range runs {
		id := agent.RunID(fmt.Sprint("r", i))
		r, err := s.Run(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, []any{int64(entries), entries, int64(1), "one"}, []any{r.Entries, r.Steps, r.Epoch, r.Owner})
		all, err := s.Entries(t.Context(), id, 0)
		require.NoError(t, err)
		assert.Len(t, all, entries)
	}
}

// When the commit fails, or SQLite ends the transaction, every write of the group fails and none
// is done. The same calls succeed afterwards.
func TestLostTransactionFailsTheGroup(t *testing.T) {
	for name, lose := range map[string]struct {
		do   func(t *tx) error
		says string
	}{
		"commit": {func(t *tx) error {
			if err := t.Exec(`PRAGMA defer_foreign_keys = 1`); err != nil {
				return err
			}
			return t.Exec(`INSERT INTO entries (run, seq, kind, key) VALUES (12345, 1, 'note', '')`)
		}, "FOREIGN KEY constraint failed"},
		"rollback": {func(t *tx) error {
			if err := t.Exec(`ROLLBACK`); err != nil {
				return err
			}
			return t.fail(errors.New("the disk is gone"))
		}, "the disk is gone"},
		"rollback for a refused write": {func(t *tx) error {
			if err := t.Exec(`ROLLBACK`); err != nil {
				return err
			}
			return durable.ErrStale
		}, "no such savepoint"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, Options{Wait: time.Hour})
			makeRun(t, s, "r")
			add := func(t *tx) error { return addSteps(t, "r", 1) }
			refuse := func(*tx) error { return durable.ErrExists }
			errs := runTogether(t, s, add, add, refuse, lose.do, add)
			for _, err := range errs[:4] { // the refused one too: what it saw was not committed
				require.ErrorContains(t, err, lose.says)
				require.NotErrorIs(t, err, durable.ErrStale)
				require.NotErrorIs(t, err, durable.ErrExists)
			}
			want := 1
			if name == "commit" { // the last write belonged to the same transaction
				require.ErrorContains(t, errs[4], lose.says)
				want = 0
			} else {
				require.NoError(t, errs[4], "it has a transaction of its own")
			}
			assert.Equal(t, want, stepsOf(t, s, "r"))
			for _, err := range runTogether(t, s, add, add, add) {
				require.NoError(t, err)
			}
			assert.Equal(t, want+3, stepsOf(t, s, "r"))
		})
	}
}

// A context that ends while its write waits ends that write alone, the leader's too. One that ends
// after its write began changes nothing.
func TestContextsOfAGroup(t *testing.T) {
	s := openTest(t, Options{Wait: time.Hour})
	makeRun(t, s, "r")
	var cancels [6]context.CancelFunc
	unlock := lockFile(t, s)
	var errs [len(cancels)]error
	var callers sync.WaitGroup
	left := make(chan struct{}, len(cancels))
	for i := range cancels {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(t.Context())
		defer cancels[i]()
		callers.Go(func() {
			errs[i] = s.db.enqueue(ctx, "testing", func(t *tx) error {
				if i == 3 { // ends the contexts of all while they are under way
					for _, cancel := range cancels {
						cancel()
					}
				}
				return addSteps(t, "r", 1<<i)
			})
			left <- struct{}{}
		})
		awaitQueue(s, i+1)
	}
	for i, n := range []int{0, 2, 1} { // the leader, one that waits, and the next leader
		cancels[n]()
		<-left
		require.ErrorIs(t, errs[n], context.Canceled)
		awaitQueue(s, len(cancels)-1-i)
	}
	unlock()
	callers.Wait()
	want := 0
	for i, err := range errs {
		if err == nil {
			want += 1 << i
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	require.NoError(t, errs[3])
	assert.Equal(t, want, stepsOf(t, s, "r"), "what was reported is what happened: %v", errs)
	require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel, Text: ""}), "the store is as good as before")
}

// A file that stays locked fails each write when its time is over.
func TestGroupWaitsForAnotherProcess(t *testing.T) {
	s := openTest(t, Options{Wait: time.Millisecond})
	l := makeRun(t, s, "r")
	unlock := lockFile(t, s)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			err := commit(t.Context(), s, l, durable.Update{}, newStep(1))
			assert.ErrorContains(t, err, "another process has kept it locked for 1ms")
		})
	}
	callers.Wait()
	unlock()
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, newStep(1)))
}

// Close waits for the writes that wait, and refuses those that come later.
func TestCloseWhileWritesWait(t *testing.T) {
	s := openTest(t, Options{Wait: time.Hour})
	l := makeRun(t, s, "r")
	unlock := lockFile(t, s)
	var callers sync.WaitGroup
	for seq := range int64(8) {
		callers.Go(func() { assert.NoError(t, commit(t.Context(), s, l, durable.Update{}, newStep(seq+1))) })
		awaitQueue(s, int(seq)+1)
	}
	callers.Go(func() { assert.NoError(t, s.Close()) })
	for s.db.open.TryRLock() { // until Close waits
		s.db.open.RUnlock()
		runtime.Gosched()
	}
	unlock()
	callers.Wait()
	require.ErrorContains(t, commit(t.Context(), s, l, durable.Update{}, newStep(9)), "the store is closed")
	again, err := Open(t.Context(), s.db.path, Options{})
	require.NoError(t, err)
	defer again.Close()
	all, err := again.Entries(t.Context(), "r", 0)
	require.NoError(t, err)
	assert.Len(t, all, 8)
}

// A write that comes while old runs are deleted has its turn between two batches.
func TestPruneLetsOthersWrite(t *testing.T) {
	var s *Store
	left := -1 // the runs that were there when the other write ran
	s = openTest(t, Options{Wait: time.Hour, Now: func() time.Time {
		if left == 0 {
			assert.NoError(t, s.db.readers.QueryRowContext(t.Context(), `SELECT count(*) FROM runs WHERE status = 'completed'`).Scan(&left))
		}
		return time.Now()
	}})
	l := makeRun(t, s, "r")
	_, err := s.db.conn.ExecContext(t.Context(), `WITH RECURSIVE all_n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM all_n WHERE i < 1000)
		INSERT INTO runs (id, session, kind, name, parent, root, queue, status, created, updated, ended, owner, epoch)
		SELECT 'run' || i, '', 'agent', '', '', '', 1, 'completed', i, i, i, '', 1 FROM all_n`)
	require.NoError(t, err)
	unlock := lockFile(t, s)
	var callers sync.WaitGroup
	callers.Go(func() {
		n, err := s.Prune(t.Context(), time.Now())
		assert.NoError(t, err)
		assert.Equal(t, 1000, n)
	})
	awaitQueue(s, 1)
	left = 0
	callers.Go(func() { assert.NoError(t, commit(t.Context(), s, l, durable.Update{}, newStep(1))) })
	awaitQueue(s, 2)
	unlock()
	callers.Wait()
	assert.Positive(t, left, "the write ran before all were deleted")
}

// A panic in a write reaches its caller and leaves the others their turn.
func TestPanicLeavesTheStoreUsable(t *testing.T) {
	s := openTest(t, Options{})
	makeRun(t, s, "r")
	assert.PanicsWithValue(t, "oops", func() {
		_ = s.db.enqueue(t.Context(), "testing", func(t *tx) error {
			if err := addSteps(t, "r", 1); err != nil {
				return err
			}
			panic("oops")
		})
	})
	require.NoError(t, s.Signal(t.Context(), "r", durable.Signal{Kind: durable.SignalCancel, Text: ""}))
	assert.Zero(t, stepsOf(t, s, "r"))
}

// A group is no longer than maxGroup, and the rest has the next transaction.
func TestLongQueue(t *testing.T) {
	s := openTest(t, Options{Wait: time.Hour})
	makeRun(t, s, "r")
	sizes := map[int]int{} // by the steps that are committed before
	writes := make([]func(*tx) error, maxGroup+10)
	for i := range writes {
		writes[i] = func(t *tx) error {
			sizes[committedSteps(s)]++
			return addSteps(t, "r", 1)
		}
	}
	for _, err := range runTogether(t, s, writes...) {
		require.NoError(t, err)
	}
	assert.Equal(t, len(writes), stepsOf(t, s, "r"))
	assert.ElementsMatch(t, []int{maxGroup, 10}, slices.Collect(maps.Values(sizes)))
}
