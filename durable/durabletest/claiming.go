package durabletest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var claiming = map[string]part{
	"a ready run becomes running": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, fullJob("r"))
		runs := claimRuns(t, s, 10, keyOf(fullJob("r")))
		require.Len(t, runs, 1)
		r := runs[0]
		sameJob(t, fullJob("r"), r)
		assert.Equal(t, []any{durable.StatusRunning, "two", int64(1), 1}, []any{r.Status, r.Owner, r.Epoch, r.Attempts})
		assert.True(t, r.Ready.IsZero(), "ready")
		assert.WithinDuration(t, r.Created.Add(hour), r.Expires, time.Minute)
		assert.Equal(t, getRun(t, s, "r"), r)
		_, err := s.Acquire(t.Context(), "r", "three", hour, durable.TakeFree)
		require.ErrorAs(t, err, new(*durable.HeldError))
		assert.Empty(t, claimRuns(t, s, 10, keyOf(fullJob("r"))), "once")
		writeUpdate(t, s, r.Lease(), durable.Update{}, newEntry(1))
	},
	"only ready runs": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newLaterJob("pending"), newJob("ready"))
		beginRun(t, s, "running")
		beginAs(t, s, newJob("expired"), "one", gone)
		suspendRun(t, s, "waiting", newWait("c"))
		endRun(t, s, beginRun(t, s, "ended"))
		assert.Equal(t, []agent.RunID{"ready"}, runIDs(claimRuns(t, s, 10, testerKey())))
	},
	"only the given keys": func(t *testing.T, s durable.Store) {
		jobs := map[agent.RunID]durable.Job{
			"agent a":   {Name: "a"},
			"command a": {Name: "a", Kind: durable.KindCommand},
			"agent b":   {Name: "b"},
			"gpu":       {Name: "a", Demands: map[string]string{"gpu": "a100"}},
			"gpus":      {Name: "a", Demands: map[string]string{"gpu": "a100", "zone": "1"}},
			"other gpu": {Name: "a", Demands: map[string]string{"gpu": "h100"}},
			"no name":   {},
		}
		for id, j := range jobs {
			j.ID = id
			submitJobs(t, s, j)
		}
		assert.Empty(t, claimRuns(t, s, 10), "no keys")
		assert.Empty(t, claimRuns(t, s, 10, testerKey()), "a key without runs")
		assert.ElementsMatch(t, []agent.RunID{"agent b", "gpus"}, runIDs(claimRuns(t, s, 10, keyOf(jobs["agent b"]), keyOf(jobs["gpus"]), testerKey())))
		for _, id := range []agent.RunID{"agent a", "command a", "gpu", "other gpu", "no name"} {
			assert.Equal(t, []agent.RunID{id}, runIDs(claimRuns(t, s, 10, keyOf(jobs[id]), keyOf(jobs[id]))), "a key may be given twice")
		}
	},
	"at most limit": func(t *testing.T, s durable.Store) {
		for i := range 10 {
			submitJobs(t, s, durable.Job{ID: agent.RunID(strconv.Itoa(i)), Name: strconv.Itoa(i % 2)})
		}
		keys := []durable.Key{keyOf(durable.Job{Name: "0"}), keyOf(durable.Job{Name: "1"})}
		assert.Empty(t, claimRuns(t, s, 0, keys...))
		assert.Empty(t, claimRuns(t, s, -1, keys...))
		assert.Equal(t, []agent.RunID{"0"}, runIDs(claimRuns(t, s, 1, keys...)))
		assert.Equal(t, []agent.RunID{"1", "2", "3"}, runIDs(claimRuns(t, s, 3, keys...)), "over all keys")
		assert.Equal(t, []agent.RunID{"4", "6"}, runIDs(claimRuns(t, s, 2, keys[0])))
		assert.Equal(t, []agent.RunID{"5", "7", "8", "9"}, runIDs(claimRuns(t, s, 100, keys...)))
	},
	"a higher priority first, then the longest ready": func(t *testing.T, s durable.Store) {
		// Neither the names nor the order of submission are the order of claims.
		for i, c := range []struct {
			id       agent.RunID
			priority int8
		}{{"low", -128}, {"m", 0}, {"z", 0}, {"high", 127}, {"a", 0}, {"five", 5}, {"minus", -1}, {"five again", 5}} {
			j := newJob(c.id)
			j.Priority, j.Name = c.priority, strconv.Itoa(i%2)
			submitJobs(t, s, j)
		}
		// A run that becomes ready again waits behind the others of its priority.
		releaseRun(t, s, acquireRun(t, s, "m", "one", durable.TakeFree))
		want := []agent.RunID{"high", "five", "five again", "z", "a", "m", "minus", "low"}
		var got []agent.RunID
		for _, limit := range []int{1, 3, 1, 2, 10} {
			got = append(got, runIDs(claimRuns(t, s, limit, keyOf(durable.Job{Name: "0"}), keyOf(durable.Job{Name: "1"})))...)
		}
		assert.Equal(t, want, got)
	},
	"jobs of one call in their order": func(t *testing.T, s durable.Store) {
		var jobs []durable.Job
		var want []agent.RunID
		for i := range 20 {
			j := newJob(agent.RunID(strconv.Itoa(i * 7 % 20)))
			jobs, want = append(jobs, j), append(want, j.ID)
		}
		submitJobs(t, s, jobs...)
		assert.Equal(t, want, slices.Concat(runIDs(claimRuns(t, s, 3, testerKey())), runIDs(claimRuns(t, s, 30, testerKey()))))
	},
	"queues are the needs of runs": func(t *testing.T, s durable.Store) {
		assert.Empty(t, queueKeys(t, s))
		jobs := []durable.Job{
			{Name: "a"},
			{Name: "a", Kind: durable.KindCommand},
			{Name: "b", Demands: map[string]string{"x": "1", "y": "2"}},
		}
		var want []durable.Key
		for _, j := range jobs {
			want = append(want, keyOf(j))
		}
		submitJobs(t, s, jobs[0], jobs[1], jobs[0])
		beginAs(t, s, jobs[0], "one", hour)
		l := beginAs(t, s, jobs[2], "one", hour)
		assert.ElementsMatch(t, want, queueKeys(t, s), "each once")

		child, pending := durable.Job{Name: "child"}, durable.Job{Name: "pending", NotBefore: later()}
		want = append(want, keyOf(child), keyOf(pending))
		writeCommit(t, s, l, durable.Commit{Jobs: []durable.Job{child}, Update: waitUpdate(1, newWait("c"))})
		submitJobs(t, s, pending)
		assert.ElementsMatch(t, want, queueKeys(t, s))
		releaseRun(t, s, l)
		assert.ElementsMatch(t, want, queueKeys(t, s), "a waiting run has needs, too")
	},
	"queues after the end": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		submitJobs(t, s, durable.Job{ID: "other", Name: "other"})
		endRun(t, s, l)
		assert.Contains(t, queueKeys(t, s), keyOf(durable.Job{Name: "other"}))
		require.NoError(t, second(s.Prune(t.Context(), later())))
		assert.Contains(t, queueKeys(t, s), keyOf(durable.Job{Name: "other"}))
		submitJobs(t, s, newJob("again"))
		assert.Contains(t, queueKeys(t, s), testerKey())
		assert.Len(t, claimRuns(t, s, 10, testerKey()), 1)
	},
}

// queueKeys returns the keys of all queues, each of which is listed once.
func queueKeys(t *testing.T, s durable.Store) []durable.Key {
	t.Helper()
	needs := must(s.Queues(t.Context()))(t)
	keys := []durable.Key{}
	for _, n := range needs {
		require.NotContains(t, keys, n.Key(), "queue %v is listed twice", n)
		keys = append(keys, n.Key())
	}
	return keys
}

// oneClaims lets eight claimers compete for one ready run.
func oneClaims(t *testing.T, handles ...durable.Store) {
	t.Helper()
	for round := range 5 {
		id := agent.RunID(fmt.Sprint("r", round))
		submitJobs(t, handles[0], newJob(id))
		won := slices.Concat(atOnce(8, func(i int) []durable.Run {
			runs, err := handles[i%len(handles)].Claim(t.Context(), strconv.Itoa(i), hour, 10, testerKey())
			assert.NoError(t, err)
			return runs
		})...)
		require.Len(t, won, 1, "leases of one run")
		assert.Equal(t, getRun(t, handles[0], id), won[0])
		assert.Equal(t, int64(1), won[0].Epoch)
	}
}

// allClaimed lets eight claimers share many ready runs.
func allClaimed(t *testing.T, handles ...durable.Store) {
	t.Helper()
	const n = 100
	var jobs []durable.Job
	var keys []durable.Key
	for i := range n {
		jobs = append(jobs, durable.Job{ID: agent.RunID(strconv.Itoa(i)), Name: strconv.Itoa(i % 3), Priority: int8(i % 2)})
	}
	for _, j := range jobs[:3] {
		keys = append(keys, keyOf(j))
	}
	submitJobs(t, handles[0], jobs...)
	claimed := atOnce(8, func(i int) (all []durable.Run) {
		for misses := 0; misses < 3; { // a claimer may miss runs that another one is about to take
			runs, err := handles[i%len(handles)].Claim(t.Context(), strconv.Itoa(i), hour, 3, keys...)
			if !assert.NoError(t, err) {
				return nil
			}
			assert.LessOrEqual(t, len(runs), 3)
			if len(runs) == 0 {
				misses++
			}
			all = append(all, runs...)
		}
		return all
	})
	owners := map[agent.RunID]string{}
	for _, r := range slices.Concat(append(claimed, claimRuns(t, handles[0], n, keys...))...) {
		assert.Empty(t, owners[r.ID], "run %q is claimed twice", r.ID)
		owners[r.ID] = r.Owner
	}
	require.Len(t, owners, n)
	for id, owner := range owners {
		assert.Equal(t, owner, getRun(t, handles[0], id).Owner)
	}
}

var offering = map[string]part{
	"a ready run is owed": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, fullJob("r"), newLaterJob("pending"))
		beginRun(t, s, "running")
		suspendRun(t, s, "waiting", newWait("c"))
		endRun(t, s, beginRun(t, s, "ended"))
		assert.Equal(t, []durable.Offer{{OfferID: durable.OfferID{Run: "r", Seq: 1}, Key: keyOf(fullJob("r")), Priority: -7}},
			must(s.Owed(t.Context(), hour, 10))(t))
	},
	"each time a run becomes ready has a number": play(
		submit, owesOffer(1), pause, owesOffer(0), resume, owesOffer(2), acquire, owesOffer(0), release, owesOffer(3),
		claim, owesOffer(0), expire, reconciles(durable.Reconciled{Expired: 1}), isFree, owesOffer(4),
		acquire, askWaits(newWait("c")), release, owesOffer(0), answerWaits(newAnswer("c")), owesOffer(5),
		acquire, askWaits(newWait("d")), release, cancel, owesOffer(6), cancel, owesOffer(6), acquire, finishRun, owesOffer(0),
	),
	"a recorded offer is owed no more": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("a"), newJob("b"), newJob("c"))
		record(t, s, durable.OfferID{Run: "b", Seq: 1})
		assert.Equal(t, []durable.OfferID{{Run: "a", Seq: 1}, {Run: "c", Seq: 1}}, readOwed(t, s, hour, 10))
		record(t, s, durable.OfferID{Run: "a", Seq: 1}, durable.OfferID{Run: "c", Seq: 1}, durable.OfferID{Run: "b", Seq: 1})
		assert.Empty(t, readOwed(t, s, hour, 10))
		record(t, s)
		assert.Len(t, claimRuns(t, s, 10, testerKey()), 3, "an offer is a hint")
	},
	"it is owed again after retry": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("a"), newJob("b"))
		record(t, s, durable.OfferID{Run: "a", Seq: 1}, durable.OfferID{Run: "b", Seq: 1})
		acquireRun(t, s, "b", "one", durable.TakeFree)
		assert.Equal(t, []durable.OfferID{{Run: "a", Seq: 1}}, awaitOwed(t, s))
		assert.Empty(t, readOwed(t, s, hour, 10))
	},
	"the pauses between offers of a run double": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		submitted := time.Now()
		time.Sleep(300 * time.Millisecond)
		recorded := time.Now()
		record(t, s, durable.OfferID{Run: "r", Seq: 1})
		assert.Empty(t, readOwed(t, s, hour, 10))
		awaitOwed(t, s)
		assert.GreaterOrEqual(t, time.Since(recorded), recorded.Sub(submitted), "owed again after a shorter time than it had been ready")
	},
	"a new offer is owed at once": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		record(t, s, durable.OfferID{Run: "r", Seq: 1})
		releaseRun(t, s, acquireRun(t, s, "r", "one", durable.TakeFree))
		assert.Equal(t, []durable.OfferID{{Run: "r", Seq: 2}}, readOwed(t, s, hour, 10))
	},
	"an offer that is not the newest is ignored": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newJob("r"))
		releaseRun(t, s, acquireRun(t, s, "r", "one", durable.TakeFree))
		record(t, s, durable.OfferID{Run: "r", Seq: 1}, durable.OfferID{Run: "r", Seq: 3}, durable.OfferID{Run: "r"}, durable.OfferID{Run: unknownRun, Seq: 2})
		assert.Equal(t, []durable.OfferID{{Run: "r", Seq: 2}}, readOwed(t, s, hour, 10))
		l := acquireRun(t, s, "r", "one", durable.TakeFree)
		record(t, s, durable.OfferID{Run: "r", Seq: 2}) // it is no longer ready
		releaseRun(t, s, l)
		assert.Equal(t, []durable.OfferID{{Run: "r", Seq: 3}}, readOwed(t, s, hour, 10))
	},
	"the longest owed first, at most limit": func(t *testing.T, s durable.Store) {
		for i, id := range []agent.RunID{"m", "z", "a", "k", "b"} {
			j := newJob(id)
			j.Name, j.Priority = strconv.Itoa(i%2), int8(i) // neither the key nor the priority matters
			submitJobs(t, s, j)
			time.Sleep(time.Millisecond)
		}
		releaseRun(t, s, acquireRun(t, s, "m", "one", durable.TakeFree))
		want := []durable.OfferID{{Run: "z", Seq: 1}, {Run: "a", Seq: 1}, {Run: "k", Seq: 1}, {Run: "b", Seq: 1}, {Run: "m", Seq: 2}}
		for limit := 1; limit < 8; limit++ {
			assert.Equal(t, want[:min(limit, 5)], readOwed(t, s, hour, limit))
		}
	},
	"workers": func(t *testing.T, s durable.Store) {
		assert.Empty(t, must(s.Workers(t.Context()))(t))
		one := durable.WorkerRecord{Owner: "one", Kinds: []durable.Kind{durable.KindAgent}, Labels: map[string]string{"zone": "eu"}, Capacity: 2, Version: "v1"}
		require.NoError(t, s.RecordWorker(t.Context(), one))
		require.NoError(t, s.RecordWorker(t.Context(), durable.WorkerRecord{Owner: "two"}), "it was not recorded before")
		all := must(s.Workers(t.Context()))(t)
		require.Len(t, all, 1)
		seen := all[0].Seen
		assert.False(t, seen.IsZero())
		all[0].Seen = time.Time{}
		assert.Equal(t, []durable.WorkerRecord{one}, all)
		require.NoError(t, s.RecordWorker(t.Context(), one))
		assert.True(t, seen.Equal(must(s.Workers(t.Context()))(t)[0].Seen), "an equal record is not written at once")
		require.NoError(t, s.RecordWorker(t.Context(), durable.WorkerRecord{Owner: "one", Draining: true}))
		require.NoError(t, s.RecordWorker(t.Context(), durable.WorkerRecord{Owner: "a one", Kinds: one.Kinds}))
		all = must(s.Workers(t.Context()))(t)
		require.Len(t, all, 2)
		assert.Equal(t, "a one", all[0].Owner)
		assert.True(t, all[1].Draining)
		assert.Equal(t, one.Labels, all[1].Labels, "the rest stays")
	},
	"how queues are served": func(t *testing.T, s durable.Store) {
		a, b, c := durable.Job{ID: "a", Name: "a"}, durable.Job{ID: "b", Name: "b"}, durable.Job{ID: "c", Name: "c"}
		keys := []durable.Key{keyOf(a), keyOf(b), testerKey()}
		assert.Empty(t, readServices(t, s, keys...), "no run has had these keys")
		first := submitJobs(t, s, a)[0]
		time.Sleep(time.Millisecond)
		submitJobs(t, s, durable.Job{Name: "a"}, durable.Job{Name: "a", NotBefore: later()}, c)
		beginAs(t, s, durable.Job{Name: "a"}, "one", hour)
		beginAs(t, s, b, "one", hour)

		all := readServices(t, s, keys...)
		require.Len(t, all, 2, "an entry for each known key that is given")
		assert.Equal(t, []int{2, 0}, []int{all[keyOf(a)].Backlog, all[keyOf(b)].Backlog})
		assert.True(t, first.Ready.Equal(all[keyOf(a)].Oldest), "oldest %v, want %v", all[keyOf(a)].Oldest, first.Ready)
		assert.True(t, all[keyOf(b)].Oldest.IsZero())
		assert.True(t, all[keyOf(a)].LastPoll.IsZero())

		require.NoError(t, s.RecordPoll(t.Context(), keyOf(a), testerKey()))
		require.NoError(t, s.RecordPoll(t.Context(), keyOf(a)))
		require.NoError(t, s.RecordPoll(t.Context()))
		all = readServices(t, s, keys...)
		assert.WithinDuration(t, first.Created, all[keyOf(a)].LastPoll, time.Minute)
		assert.True(t, all[keyOf(b)].LastPoll.IsZero(), "no worker looks for it")
		assert.Len(t, all, 2, "a poll for an unknown key is ignored")

		claimRuns(t, s, 10, keyOf(a))
		all = readServices(t, s, keys...)
		assert.Zero(t, all[keyOf(a)].Backlog)
		assert.True(t, all[keyOf(a)].Oldest.IsZero())
		assert.False(t, all[keyOf(a)].LastPoll.IsZero())
		assert.Empty(t, readServices(t, s))
	},
}

func readServices(t *testing.T, s durable.Store, keys ...durable.Key) map[durable.Key]durable.Service {
	return must(s.QueueServices(t.Context(), keys...))(t)
}

func readOwed(t *testing.T, s durable.Store, retry time.Duration, limit int) []durable.OfferID {
	return offerIDs(must(s.Owed(t.Context(), retry, limit))(t))
}

func offerIDs(offers []durable.Offer) []durable.OfferID {
	return lo.Map(offers, func(o durable.Offer, _ int) durable.OfferID { return o.OfferID })
}

// awaitOwed waits until something is owed again.
func awaitOwed(t *testing.T, s durable.Store) (owed []durable.OfferID) {
	t.Helper()
	for late := time.Now().Add(patience); len(owed) == 0; owed = readOwed(t, s, time.Nanosecond, 10) {
		require.True(t, time.Now().Before(late), "nothing is owed again")
		time.Sleep(time.Millisecond)
	}
	return owed
}

func record(t *testing.T, s durable.Store, ids ...durable.OfferID) {
	t.Helper()
	require.NoError(t, s.RecordOffers(t.Context(), ids...), "record offers")
}
