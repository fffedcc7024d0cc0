package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	gosync "sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

var agentKey = durable.Needs{Kind: durable.KindAgent}.Key()

func TestSubmitReturnsWhatIsStored(t *testing.T) {
	s, _ := atNoon(t)
	at := noon.Add(time.Hour).Add(999 * time.Nanosecond).In(time.FixedZone("east", 3600))
	jobs := []durable.Job{
		{},
		{
			ID: "all", Kind: durable.KindCommand, Name: "sort", Version: "2", Session: "s", Parent: "p", Root: "root", Input: []byte("in"),
			Demands: map[string]string{"gpu": `"a" <100>`, "os": "linux"}, Labels: map[string]string{"team": "ä\\b", "x": ""},
			Priority: -5, NotBefore: at, StartBy: at.Add(time.Hour), Deadline: at.Add(2 * time.Hour), IdempotencyKey: "once",
		},
		{ID: "empty", Input: []byte{}, Demands: map[string]string{}, Labels: map[string]string{}},
	}
	runs, err := s.Submit(t.Context(), jobs...)
	require.NoError(t, err)
	for _, r := range runs {
		stored, err := s.Run(t.Context(), r.ID)
		require.NoError(t, err)
		assert.Equal(t, stored, r)
	}
	again, err := s.Submit(t.Context(), durable.Job{IdempotencyKey: "once"})
	require.NoError(t, err)
	assert.Equal(t, runs[1:2], again)
}

func TestReleaseWithDelay(t *testing.T) {
	s, c := atNoon(t)
	begin := func(id agent.RunID) durable.Lease {
		l, err := s.Begin(t.Context(), durable.Job{ID: id}, "one", time.Hour)
		require.NoError(t, err)
		return l
	}
	status := func(id agent.RunID) durable.Status {
		r, err := s.Run(t.Context(), id)
		require.NoError(t, err)
		return r.Status
	}
	later, cancelled, paused, asks := begin("later"), begin("cancelled"), begin("paused"), park(t, s, "asks", wait("c"))
	require.NoError(t, s.Signal(t.Context(), "cancelled", durable.Signal{Kind: durable.SignalCancel}))
	require.NoError(t, s.Signal(t.Context(), "paused", durable.Signal{Kind: durable.SignalPause}))
	for _, l := range []durable.Lease{later, cancelled, paused, asks} {
		require.NoError(t, s.Release(t.Context(), l, time.Minute))
	}
	assert.Equal(t, []durable.Status{durable.StatusPending, durable.StatusReady, durable.StatusWaiting, durable.StatusWaiting},
		[]durable.Status{status("later"), status("cancelled"), status("paused"), status("asks")})
	c.set(noon.Add(time.Minute))
	done, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.Equal(t, durable.Reconciled{Due: 1, Done: true}, done)
	assert.Equal(t, durable.StatusReady, status("later"))
}

// Handles of several processes claim runs of several queues: each run once, and in order.
func TestClaimInOrderByMany(t *testing.T) {
	const runs, claimers = 300, 4
	path := tempFile(t)
	s := open(t, path, sqlite.Options{Sync: sqlite.SyncNormal})
	keys := make([]durable.Key, 3)
	want := map[agent.RunID][2]int{} // the priority of a run, and its place among all
	jobs := make([]durable.Job, runs)
	for i := range jobs {
		jobs[i] = durable.Job{ID: agent.RunID(fmt.Sprint("r", i)), Kind: durable.KindAgent, Name: fmt.Sprint("agent", i%3), Priority: int8(rand.IntN(5) - 2)}
		want[jobs[i].ID] = [2]int{-int(jobs[i].Priority), i}
		keys[i%3] = jobs[i].Needs().Key()
	}
	for batch := range slices.Chunk(jobs, 7) {
		_, err := s.Submit(t.Context(), batch...)
		require.NoError(t, err)
	}
	var mu gosync.Mutex
	claimed := map[agent.RunID]bool{}
	var group gosync.WaitGroup
	for i := range claimers {
		group.Go(func() {
			own := open(t, path, sqlite.Options{Sync: sqlite.SyncNormal})
			defer func() { assert.NoError(t, own.Close()) }()
			last := [2]int{-100, 0}
			for {
				got, err := own.Claim(t.Context(), fmt.Sprint("owner", i), time.Hour, 1+i, keys...)
				if !assert.NoError(t, err) || len(got) == 0 {
					return
				}
				mu.Lock()
				for _, r := range got {
					assert.False(t, claimed[r.ID], "%s is claimed twice", r.ID)
					claimed[r.ID] = true
					assert.Equal(t, []any{durable.StatusRunning, fmt.Sprint("owner", i), int64(1), 1, true},
						[]any{r.Status, r.Owner, r.Epoch, r.Attempts, r.Ready.IsZero()})
					place := want[r.ID]
					assert.Negative(t, slices.Compare(last[:], place[:]), "%s follows %v", r.ID, last)
					last = place
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	assert.Len(t, claimed, runs)
	require.NoError(t, s.Close())
}

// An idle worker does not write: it claims while another process has the file locked.
func TestIdleCallsDoNotWrite(t *testing.T) {
	path := tempFile(t)
	s := open(t, path, sqlite.Options{Wait: time.Hour})
	park(t, s, "r", wait("c"))
	_, err := s.Submit(t.Context(), durable.Job{Name: "other"})
	require.NoError(t, err)
	require.NoError(t, s.RecordPoll(t.Context(), agentKey))
	unlock := locked(t, path)
	runs, err := s.Claim(t.Context(), "one", time.Hour, 5, agentKey)
	require.NoError(t, err)
	assert.Empty(t, runs)
	done, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	assert.Equal(t, durable.Reconciled{Done: true}, done)
	require.NoError(t, s.RecordPoll(t.Context(), agentKey))
	unlock()
	require.NoError(t, s.Close())
}

func TestChangesOfOtherHandles(t *testing.T) {
	path := tempFile(t)
	s, other := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	own, others := s.Changes(t.Context()), other.Changes(ctx)
	wait := func(c <-chan struct{}) bool {
		select {
		case _, ok := <-c:
			return ok
		case <-time.After(10 * time.Second):
			assert.Fail(t, "no change")
			return false
		}
	}
	for range 3 {
		_, err := s.Submit(t.Context(), durable.Job{})
		require.NoError(t, err)
		assert.True(t, wait(own))
		assert.True(t, wait(others))
	}
	l, err := s.Begin(t.Context(), durable.Job{}, "one", time.Hour)
	require.NoError(t, err)
	require.NoError(t, commit(t.Context(), s, l, durable.Update{}, entry(1)))
	assert.Empty(t, own, "its own steps are no changes")

	cancel()
	for wait(others) { // until it is closed
	}
	require.NoError(t, s.Close())
	assert.False(t, wait(own))
	assert.False(t, wait(s.Changes(t.Context())))
	require.NoError(t, other.Close())
}

// Lists of runs with random properties contain what a check of each run selects, in pages of any size.
func TestListBySeveralFilters(t *testing.T) {
	s, c := atNoon(t)
	pick := func(values ...string) string { return values[rand.IntN(len(values))] }
	for i := range 150 {
		c.set(noon.Add(time.Duration(i) * time.Second))
		j := durable.Job{
			ID: agent.RunID(fmt.Sprint("r", i)), Kind: durable.Kind(pick("agent", "command")), Name: pick("a", "b", ""),
			Session: agent.SessionID(pick("s", "t", "")), Parent: agent.RunID(pick("p", "q", "")),
			Labels: map[string]string{"team": pick("x", "y"), pick("one", "two"): "1"},
		}
		if rand.IntN(3) == 0 {
			_, err := s.Submit(t.Context(), j)
			require.NoError(t, err)
			continue
		}
		l, err := s.Begin(t.Context(), j, "one", time.Hour)
		require.NoError(t, err)
		status := durable.Status(pick("running", "waiting", "completed", "failed", "stopped"))
		require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: status, Blocked: status == durable.StatusFailed && rand.IntN(2) == 0}))
	}
	all, err := s.List(t.Context(), durable.Filter{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, all, 150)
	for range 300 {
		var f durable.Filter
		for range rand.IntN(4) {
			switch rand.IntN(9) {
			case 0, 1:
				f.Status = append(f.Status, durable.Statuses[rand.IntN(len(durable.Statuses))])
			case 2:
				f.Kind = durable.Kind(pick("agent", "command", "none"))
			case 3:
				f.Name = pick("a", "b")
			case 4:
				f.Session = agent.SessionID(pick("s", "t"))
			case 5:
				f.Parent = agent.RunID(pick("p", "q"))
			case 6:
				f.Label = durable.Label{Name: pick("team", "one"), Value: pick("x", "1")}
			case 7:
				f.Blocked = true
			case 8:
				f.Since, f.Until = noon.Add(time.Duration(rand.IntN(150))*time.Second), lo.Ternary(rand.IntN(2) == 0, noon.Add(100*time.Second), time.Time{})
			}
		}
		want := lo.Filter(all, func(r durable.Run, _ int) bool { return selects(f, r) })
		var got []durable.Run
		f.Limit = 1 + rand.IntN(40)
		for {
			page, err := s.List(t.Context(), f)
			require.NoError(t, err)
			got = append(got, page...)
			if len(page) < f.Limit {
				break
			}
			f.Before = page[len(page)-1].ID
		}
		require.Len(t, got, len(want), "%+v", f)
		require.Equal(t, want, append([]durable.Run{}, got...), "%+v", f)
	}
}

// selects reports whether a filter selects a run, apart from its page.
func selects(f durable.Filter, r durable.Run) bool {
	value, labelled := r.Labels[f.Label.Name]
	return (len(f.Status) == 0 || slices.Contains(f.Status, r.Status)) &&
		(f.Kind == "" || f.Kind == r.Kind) && (f.Name == "" || f.Name == r.Name) &&
		(f.Session == "" || f.Session == r.Session) && (f.Parent == "" || f.Parent == r.Parent) &&
		(f.Label.Name == "" || labelled && value == f.Label.Value) && (!f.Blocked || r.Blocked) &&
		(f.Since.IsZero() || !r.Created.Before(f.Since)) && (f.Until.IsZero() || r.Created.Before(f.Until))
}

func TestPruneRemovesEmptyQueues(t *testing.T) {
	s, c := atNoon(t)
	_, err := s.Submit(t.Context(), durable.Job{Name: "stays"})
	require.NoError(t, err)
	l, err := s.Begin(t.Context(), durable.Job{Name: "goes"}, "one", time.Hour)
	require.NoError(t, err)
	require.NoError(t, commit(t.Context(), s, l, durable.Update{Status: durable.StatusCompleted}))
	c.set(noon.Add(time.Hour))
	n, err := s.Prune(t.Context(), noon.Add(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	queues, err := s.Queues(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []durable.Needs{{Kind: durable.KindAgent, Name: "stays"}}, queues)
	_, err = s.Submit(t.Context(), durable.Job{Name: "goes"})
	require.NoError(t, err)
	runs, err := s.Claim(t.Context(), "one", time.Hour, 5, durable.Needs{Kind: durable.KindAgent, Name: "goes"}.Key())
	require.NoError(t, err)
	assert.Len(t, runs, 1, "a queue comes back with a new number")
}

func TestOffersAndPolls(t *testing.T) {
	s, c := atNoon(t)
	for i, id := range []agent.RunID{"a", "b", "c"} {
		c.set(noon.Add(time.Duration(i) * time.Second))
		_, err := s.Submit(t.Context(), durable.Job{ID: id})
		require.NoError(t, err)
	}
	owed := func(limit int) (ids []durable.OfferID) {
		offers, err := s.Owed(t.Context(), time.Minute, limit)
		require.NoError(t, err)
		for _, o := range offers {
			assert.Equal(t, agentKey, o.Key)
			ids = append(ids, o.OfferID)
		}
		return ids
	}
	assert.Equal(t, []durable.OfferID{{Run: "a", Seq: 1}, {Run: "b", Seq: 1}}, owed(2))
	require.NoError(t, s.RecordOffers(t.Context(), durable.OfferID{Run: "a", Seq: 1}, durable.OfferID{Run: "b", Seq: 7}, durable.OfferID{Run: "none"}))
	assert.Equal(t, []durable.OfferID{{Run: "b", Seq: 1}, {Run: "c", Seq: 1}}, owed(5))
	c.set(noon.Add(2 * time.Minute))
	assert.Equal(t, []durable.OfferID{{Run: "a", Seq: 1}, {Run: "b", Seq: 1}, {Run: "c", Seq: 1}}, owed(5), "again after the retry")
	record := func(at time.Time) {
		c.set(at)
		require.NoError(t, s.RecordOffers(t.Context(), durable.OfferID{Run: "a", Seq: 1}, durable.OfferID{Run: "b", Seq: 1}, durable.OfferID{Run: "c", Seq: 1}))
	}
	for _, pause := range []struct{ ready, next time.Duration }{ // of a, which became ready at noon
		{10 * time.Second, time.Minute}, {5 * time.Minute, 5 * time.Minute}, {40 * time.Minute, 40 * time.Minute}, {90 * time.Minute, time.Hour},
	} {
		record(noon.Add(pause.ready))
		c.set(noon.Add(pause.ready + pause.next))
		assert.NotContains(t, owed(5), durable.OfferID{Run: "a", Seq: 1}, "%v after it became ready", pause.ready)
		c.set(noon.Add(pause.ready + pause.next + 2*time.Microsecond))
		assert.Contains(t, owed(5), durable.OfferID{Run: "a", Seq: 1}, "%v after it became ready", pause.ready)
	}
	c.set(noon.AddDate(-1, 0, 0))
	assert.Equal(t, []durable.OfferID{{Run: "a", Seq: 1}, {Run: "b", Seq: 1}, {Run: "c", Seq: 1}}, owed(5), "a clock that is set back loses no offer")

	c.set(noon.Add(time.Hour))
	unknown := durable.Needs{Name: "unknown"}.Key()
	require.NoError(t, s.RecordPoll(t.Context(), agentKey, unknown, agentKey))
	c.set(noon.Add(time.Hour + 10*time.Second))
	require.NoError(t, s.RecordPoll(t.Context(), agentKey))
	served, err := s.QueueServices(t.Context(), agentKey, unknown)
	require.NoError(t, err)
	assert.Equal(t, map[durable.Key]durable.Service{agentKey: {LastPoll: noon.Add(time.Hour), Backlog: 3, Oldest: noon}}, served)
}

// locked keeps the file locked as another process that writes would, until unlock.
func locked(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	require.NoError(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	return func() {
		require.NoError(t, tx.Rollback())
		require.NoError(t, db.Close())
	}
}
