package durabletest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// races are parts that TestStore runs with one handle on a store, and TestShared with two.
var races = map[string]func(t *testing.T, handles ...durable.Store){
	"one of many begins":                           oneBegins,
	"one of many acquires":                         oneAcquires,
	"one job of a key":                             oneKey,
	"one run and many claimers":                    oneClaims,
	"many runs and many claimers":                  allClaimed,
	"all of many take over, one after another":     allTakeOver,
	"one of many writes an entry":                  oneCommits,
	"one of many answers":                          oneAnswers,
	"one of many answers comes next":               oneCounts,
	"one of many changes a document":               oneChanges,
	"a run starts after one that ends":             startsWhileEnding,
	"many owners watch at once":                    oneWatches,
	"many reconcile at once":                       onceReconciled,
	"readers see whole writes":                     wholeWrites,
	"a process that was taken over writes no more": testFencing,
	"runs do not disturb each other":               allWrite,
	"a value for every cause":                      testChanges,
}

// racing returns the races with one handle.
func racing() map[string]part {
	parts := map[string]part{}
	for name, test := range races {
		parts[name] = func(t *testing.T, s durable.Store) { test(t, s) }
	}
	return parts
}

// last returns the last handle, which is the first one if there is no other.
func last(handles []durable.Store) durable.Store { return handles[len(handles)-1] }

// allTakeOver takes a run over in many processes: each gets an epoch of its own.
func allTakeOver(t *testing.T, handles ...durable.Store) {
	t.Helper()
	leases := []durable.Lease{beginRun(t, handles[0], "r")}
	leases = append(leases, atOnce(8, func(i int) durable.Lease {
		l, err := handles[i%len(handles)].Acquire(t.Context(), "r", strconv.Itoa(i), hour, durable.TakeOver)
		assert.NoError(t, err)
		return l
	})...)
	slices.SortFunc(leases, func(a, b durable.Lease) int { return int(a.Epoch - b.Epoch) })
	for i, l := range leases {
		assert.Equal(t, int64(i+1), l.Epoch, "no epoch is given twice")
		if i < len(leases)-1 {
			stale(t, handles[0], l)
		}
	}
	writeUpdate(t, handles[0], leases[len(leases)-1], durable.Update{}, newEntry(1))
}

// allWrite writes to many runs at once.
func allWrite(t *testing.T, handles ...durable.Store) {
	t.Helper()
	const steps = 15
	written := atOnce(8, func(i int) error {
		s, id := handles[i%len(handles)], agent.RunID(strconv.Itoa(i))
		l, err := s.Begin(t.Context(), durable.Job{ID: id}, "one", hour)
		for n := range steps {
			err = errors.Join(err, add(t.Context(), s, l, durable.Update{}, newEntry(int64(n+1))), second(s.Run(t.Context(), id)))
		}
		return errors.Join(err, add(t.Context(), s, l, endUpdate()))
	})
	require.NoError(t, errors.Join(written...))
	for i := range written {
		sameEntries(t, newEntries(1, steps), readJournal(t, handles[0], agent.RunID(strconv.Itoa(i))))
	}
}

func oneBegins(t *testing.T, handles ...durable.Store) {
	t.Helper()
	won := race(t, durable.ErrExists, func(i int) error {
		return second(handles[i%len(handles)].Begin(t.Context(), durable.Job{ID: "r", Name: strconv.Itoa(i)}, strconv.Itoa(i), hour))
	})
	r := getRun(t, handles[0], "r")
	assert.Equal(t, []string{strconv.Itoa(won), strconv.Itoa(won)}, []string{r.Name, r.Owner})
}

func oneAcquires(t *testing.T, handles ...durable.Store) {
	t.Helper()
	suspendRun(t, handles[0], "r", newWait("c"))
	won := race(t, new(durable.HeldError), func(i int) error {
		return second(handles[i%len(handles)].Acquire(t.Context(), "r", strconv.Itoa(i), hour, durable.TakeFree))
	})
	r := getRun(t, handles[0], "r")
	assert.Equal(t, []any{strconv.Itoa(won), int64(2)}, []any{r.Owner, r.Epoch})
}

// oneKey submits jobs with one idempotency key at once.
func oneKey(t *testing.T, handles ...durable.Store) {
	t.Helper()
	ids := atOnce(8, func(i int) (id agent.RunID) {
		runs, err := handles[i%len(handles)].Submit(t.Context(), newJob(agent.RunID(fmt.Sprint("n", i))), keyedJob(agent.RunID(strconv.Itoa(i)), "k"))
		if assert.NoError(t, err) && assert.Len(t, runs, 2) {
			id = runs[1].ID
		}
		return id
	})
	for _, id := range ids {
		assert.Equal(t, ids[0], id, "all callers get the same run")
	}
	assert.Len(t, listIDs(t, handles[0], durable.Filter{}), len(ids)+1)
}

func oneCommits(t *testing.T, handles ...durable.Store) {
	t.Helper()
	l := beginRun(t, handles[0], "r")
	for seq := int64(1); seq <= 5; seq++ {
		won := race(t, new(durable.SeqError), func(i int) error {
			e := newEntry(seq)
			e.Data = fmt.Append(nil, i)
			return add(t.Context(), handles[i%len(handles)], l, durable.Update{Status: durable.StatusRunning, Steps: i}, e)
		})
		assert.Equal(t, won, getRun(t, handles[0], "r").Steps)
		assert.Equal(t, strconv.Itoa(won), string(readJournal(t, handles[0], "r")[seq-1].Data))
	}
}

func oneAnswers(t *testing.T, handles ...durable.Store) {
	t.Helper()
	for round := range 5 {
		id := agent.RunID(fmt.Sprint("r", round))
		suspendRun(t, handles[0], id, newWait("c"), newWait("d"))
		won := race(t, durable.ErrAnswered, func(i int) error {
			c, d := newAnswer("c"), newAnswer("d")
			c.Data, d.Data = fmt.Append(nil, i), fmt.Append(nil, i)
			if i%2 == 0 { // the opposite order must not deadlock
				c, d = d, c
			}
			return handles[i%len(handles)].Answer(t.Context(), id, durable.Answers(c, d))
		})
		for _, q := range readWaits(t, handles[0], id) {
			require.NotNil(t, q.Answer)
			assert.Equal(t, strconv.Itoa(won), string(q.Answer.Data), "both answers are the winner's")
		}
	}
}

// wholeWrites reads through one handle while another writes: the journal must never be behind the record of the run.
func wholeWrites(t *testing.T, handles ...durable.Store) {
	t.Helper()
	writer, reader := handles[0], last(handles)
	l := beginRun(t, writer, "r")
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		defer close(done)
		for i := range 40 {
			u := durable.Update{Status: durable.StatusRunning, Steps: 2 * (i + 1), Waits: []durable.Wait{newWait("c"), newWait("d")}}
			if i%2 == 0 {
				u.Waits = []durable.Wait{}
			}
			assert.NoError(t, add(t.Context(), writer, l, u, newEntry(int64(2*i+1)), newEntry(int64(2*i+2))))
		}
	})
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		r, err := reader.Run(t.Context(), "r")
		assert.NoError(t, err)
		assert.Equal(t, r.Entries, int64(r.Steps), "the number of steps and of entries are written together")
		all, err := reader.Entries(t.Context(), "r", 0)
		assert.NoError(t, err)
		assert.GreaterOrEqual(t, int64(len(all)), r.Entries)
		assert.Zero(t, len(all)%2, "two entries are written together, and %d are there", len(all))
		asked, err := reader.Waits(t.Context(), "r")
		assert.NoError(t, err)
		assert.Contains(t, []int{0, 2}, len(asked), "waits")
	}
	group.Wait()
	assert.Len(t, readJournal(t, reader, "r"), 80)
}

// testFencing checks a takeover in the middle of a writer's work: all entries of the first writer precede the first entry
// of the second.
func testFencing(t *testing.T, handles ...durable.Store) {
	t.Helper()
	first, other := handles[0], last(handles)
	l := beginRun(t, first, "r")
	started := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for seq := int64(1); ; seq++ {
			e := newEntry(seq)
			e.Key = "old"
			err := add(t.Context(), first, l, durable.Update{}, e)
			if err != nil {
				assert.ErrorIs(t, err, durable.ErrStale)
				return
			}
			if seq == 3 {
				close(started)
			}
		}
	})
	<-started
	taken := acquireRun(t, other, "r", "two", durable.TakeOver)
	seq := getRun(t, other, "r").Entries
	for i := range int64(5) {
		e := newEntry(seq + 1 + i)
		e.Key = "new"
		writeUpdate(t, other, taken, durable.Update{}, e)
	}
	group.Wait()
	all := readJournal(t, first, "r")
	require.Len(t, all, int(seq)+5)
	for i, e := range all {
		assert.Equal(t, e.Key == "old", int64(i) < seq, "entry %d is of the %s writer", i+1, e.Key)
	}
}

// atOnce makes n calls concurrently, and returns their results.
func atOnce[T any](n int, do func(i int) T) []T {
	all, start := make([]T, n), make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			all[i] = do(i)
		})
	}
	close(start)
	group.Wait()
	return all
}

// race calls do eight times concurrently and returns the index of the one call that
// succeeds. The others must fail with lost, or with an error of its type.
func race(t *testing.T, lost error, do func(i int) error) (won int) {
	t.Helper()
	errs := atOnce(8, do)
	won = -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, won, "%d and %d both won", won, i)
			won = i
			continue
		}
		assert.True(t, lostBy(err, lost), "%d: %v; want %T", i, err, lost)
	}
	require.NotEqual(t, -1, won, "no process won: %v", errors.Join(errs...))
	return won
}

func lostBy(err, lost error) bool {
	switch lost.(type) { //nolint:errorlint // the tests say which type they mean
	case *durable.HeldError:
		return errors.As(err, new(*durable.HeldError))
	case *durable.SeqError:
		return errors.As(err, new(*durable.SeqError))
	default:
		return errors.Is(err, lost)
	}
}
