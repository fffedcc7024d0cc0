package durabletest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

var watched = []durable.WaitKind{durable.WaitFile, durable.WaitCommand, durable.WaitCallback}

// watching tests who watches for what runs wait for.
var watching = map[string]part{
	"waits of the kinds and hosts": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("1", durable.WaitFile, ""), newWatch("2", durable.WaitFile, "h"), newWatch("3", durable.WaitCommand, "i"),
			newWatch("4", durable.WaitCallback, ""), newWait("5"))
		assert.Empty(t, claimWatches(t, s, "one", gone, 10, nil))
		assert.Empty(t, claimWatches(t, s, "one", gone, 0, watched))
		for _, c := range []struct {
			kinds []durable.WaitKind
			hosts []string
			want  []string
		}{
			{watched, nil, []string{"r/1", "r/4"}},
			{watched, []string{"i", "h"}, []string{"r/1", "r/2", "r/3", "r/4"}},
			{[]durable.WaitKind{durable.WaitFile}, []string{"h", "i", "h"}, []string{"r/1", "r/2"}},
			{[]durable.WaitKind{durable.WaitCommand}, nil, []string{}},
			{[]durable.WaitKind{durable.WaitInput}, []string{"h"}, []string{}},
		} {
			assert.Equal(t, c.want, claimWatches(t, s, "one", gone, 10, c.kinds, c.hosts...), "%v %v", c.kinds, c.hosts)
		}
		all, err := s.ClaimChecks(t.Context(), "one", hour, 10, watched, "i")
		require.NoError(t, err)
		sameWait(t, readWaits(t, s, "r")[2], all[1])
	},
	"one owner at a time": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("c", durable.WaitFile, ""))
		for range 2 {
			assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", hour, 10, watched))
			assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched))
		}
	},
	"a claim expires": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("c", durable.WaitFile, "h"))
		assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", gone, 10, watched, "h"))
		assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched), "it is on another host")
		assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "two", hour, 10, watched, "h"))
		assert.Empty(t, claimWatches(t, s, "one", hour, 10, watched, "h"))
	},
	"a claim is renewed": func(t *testing.T, s durable.Store) {
		suspendRun(t, s, "r", newWatch("c", durable.WaitFile, ""))
		for _, ttl := range []time.Duration{gone, hour} {
			assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", ttl, 10, watched))
		}
		assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched))
	},
	"at most limit, the oldest first": func(t *testing.T, s durable.Store) {
		watch := func(id string, hours int) durable.Wait {
			w := newWaitAt(id, hours)
			w.Kind = durable.WaitCallback
			return w
		}
		suspendRun(t, s, "r", watch("4", 4), watch("3", 3), watch("5", 5))
		assert.Equal(t, []string{"r/3", "r/4"}, claimWatches(t, s, "one", hour, 2, watched))
		suspendRun(t, s, "older", watch("1", 1), watch("2", 2))
		assert.Equal(t, []string{"r/3", "r/4"}, claimWatches(t, s, "one", hour, 2, watched), "an owner keeps what it has")
		assert.Equal(t, []string{"older/1", "r/3", "r/4"}, claimWatches(t, s, "one", hour, 3, watched))
		assert.Equal(t, []string{"older/2"}, claimWatches(t, s, "two", hour, 1, watched))
		assert.Equal(t, []string{"older/2", "r/5"}, claimWatches(t, s, "two", hour, 10, watched))
	},
	"only of runs that wait": func(t *testing.T, s durable.Store) {
		w := newWatch("c", durable.WaitFile, "")
		suspendRun(t, s, "paused", w)
		sendSignal(t, s, "paused", durable.SignalPause, "")
		suspendRun(t, s, "decided", w, newWait("d"))
		answerRun(t, s, "decided", "c")
		suspendRun(t, s, "ready", w)
		sendSignal(t, s, "ready", durable.SignalCancel, "")
		suspendRun(t, s, "goes on", w)
		writeUpdate(t, s, acquireRun(t, s, "goes on", "one", durable.TakeFree), durable.Update{Status: durable.StatusRunning})
		assert.Empty(t, claimWatches(t, s, "one", hour, 10, watched))
		writeUpdate(t, s, beginRun(t, s, "held"), waitUpdate(1, w))
		assert.Equal(t, []string{"held/c"}, claimWatches(t, s, "one", hour, 10, watched), "it waits while its process releases it")

		sendSignal(t, s, "paused", durable.SignalResume, "")
		assert.Equal(t, []string{"held/c", "paused/c"}, claimWatches(t, s, "one", hour, 10, watched))
		answerRun(t, s, "paused", "c")
		assert.Equal(t, []string{"held/c"}, claimWatches(t, s, "one", hour, 10, watched), "what has happened is not watched any more")
	},
	"a claim stays with the same wait": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		w := newWatch("c", durable.WaitFile, "")
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, []string{"r/c"}, claimWatches(t, s, "one", hour, 10, watched))
		writeUpdate(t, s, l, waitUpdate(1, newWait("b"), w))
		assert.Empty(t, claimWatches(t, s, "two", hour, 10, watched))
		w.ID = "c2"
		writeUpdate(t, s, l, waitUpdate(1, w))
		assert.Equal(t, []string{"r/c2"}, claimWatches(t, s, "two", hour, 10, watched))
	},
}

// oneWatches lets several owners claim at once: none gets what another has.
func oneWatches(t *testing.T, handles ...durable.Store) {
	t.Helper()
	const runs = 10
	for i := range runs {
		suspendRun(t, handles[0], agent.RunID(fmt.Sprint("r", i)), newWatch("c", durable.WaitFile, ""), newWatch("d", durable.WaitCommand, ""))
	}
	var mu sync.Mutex
	owners := map[string]int{}
	atOnce(8, func(i int) {
		for range 2 {
			all, err := handles[i%len(handles)].ClaimChecks(t.Context(), fmt.Sprint("owner ", i), hour, 3, watched)
			assert.NoError(t, err)
			assert.LessOrEqual(t, len(all), 3)
			mu.Lock()
			for _, name := range waitNames(all) {
				if owner, taken := owners[name]; taken {
					assert.Equal(t, owner, i, "%s is watched by two owners", name)
				}
				owners[name] = i
			}
			mu.Unlock()
		}
	})
	assert.Len(t, owners, 2*runs, "every wait is watched")
}

func claimWatches(
	t *testing.T, s durable.Store, owner string, ttl time.Duration, limit int, kinds []durable.WaitKind, hosts ...string,
) []string {
	t.Helper()
	all, err := s.ClaimChecks(t.Context(), owner, ttl, limit, kinds, hosts...)
	require.NoError(t, err, "claim waits to watch")
	return waitNames(all)
}
