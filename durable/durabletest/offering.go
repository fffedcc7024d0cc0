package durabletest

import (
	"strconv"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var offering = map[string]part{
	"a ready run is owed": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, fullJob("r"), newLaterJob("pending"))
		beginRun(t, s, "running")
		suspendRun(t, s, "waiting", newWait("c"))
		endRun(t, s, beginRun(t, s, "ended"))
		offers, err := s.Owed(t.Context(), hour, 10)
		require.NoError(t, err)
		assert.Equal(t, []durable.Offer{{OfferID: durable.OfferID{Run: "r", Seq: 1}, Key: keyOf(fullJob("r")), Priority: -7}}, offers)
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
	t.Helper()
	all, err := s.QueueServices(t.Context(), keys...)
	require.NoError(t, err, "read how queues are served")
	return all
}

func readOwed(t *testing.T, s durable.Store, retry time.Duration, limit int) []durable.OfferID {
	t.Helper()
	offers, err := s.Owed(t.Context(), retry, limit)
	require.NoError(t, err, "read the owed offers")
	return offerIDs(offers)
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
