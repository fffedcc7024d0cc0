package durabletest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// phaseKind is the kind of the runner of a phase.
const phaseKind durable.Kind = "hooks"

// newPhaseJob returns a job whose run has a phase.
func newPhaseJob(id agent.RunID) durable.Job {
	j := newJob(id)
	j.Phase, j.Demands = phaseKind, map[string]string{"zone": "eu"}
	return j
}

// phaseKey returns the key of runs in the phase.
func phaseKey() durable.Key { return durable.Needs{Kind: phaseKind}.Key() }

// passTo returns a Commit that passes a run on.
func passTo(phase durable.Kind, input []byte) durable.Commit {
	return durable.Commit{Update: durable.Update{Pass: &durable.Pass{Phase: phase, Input: input}}}
}

// passing tests phases of runs.
var passing = map[string]part{
	"a run in a phase is in the queue of the phase": func(t *testing.T, s durable.Store) {
		j := newPhaseJob("r")
		r := submitJobs(t, s, j)[0]
		assert.Equal(t, []any{phaseKind, durable.KindAgent, "tester"}, []any{r.Phase, r.Kind, r.Name})
		assert.Equal(t, r, getRun(t, s, "r"))
		assert.Equal(t, j.Demands, r.Demands, "the demands of the job stay known")
		assert.Contains(t, queueKeys(t, s), phaseKey())
		withoutPhase := j
		withoutPhase.Phase = ""
		assert.Empty(t, claimRuns(t, s, 10, keyOf(withoutPhase), testerKey()))
		assert.Equal(t, []durable.Offer{{OfferID: durable.OfferID{Run: "r", Seq: 1}, Key: phaseKey()}}, must(s.Owed(t.Context(), hour, 10))(t))
		claimed := claimRuns(t, s, 10, phaseKey())
		require.Len(t, claimed, 1)
		assert.Equal(t, []any{phaseKind, 1}, []any{claimed[0].Phase, claimed[0].Attempts})
		assert.Equal(t, j.Demands, claimed[0].Demands)
	},
	"a run is passed on": func(t *testing.T, s durable.Store) {
		j := newPhaseJob("r")
		j.Labels = map[string]string{"team": "red"}
		submitJobs(t, s, j)
		c := passTo("", []byte("second input"))
		c.Entries, c.Events, c.Jobs = newEntries(1, 2), []durable.Event{newEvent("e")}, []durable.Job{newJob("child")}
		first := claimRuns(t, s, 1, phaseKey())[0].Lease()
		writeCommit(t, s, first, c)
		requireStatus(t, s, durable.StatusReady, "r", "child")
		r := getRun(t, s, "r")
		assert.Equal(t, []any{durable.Kind(""), "", int64(1), 0, int64(2), int64(1)}, []any{r.Phase, r.Owner, r.Epoch, r.Attempts, r.Entries, r.Events})
		assert.Equal(t, j.Demands, r.Demands)
		stale(t, s, first)
		assert.Equal(t, []agent.RunID{"r"}, listIDs(t, s, durable.Filter{
			Label: durable.Label{Name: "team", Value: "red"}, Status: []durable.Status{durable.StatusReady},
		}))
		owed := must(s.Owed(t.Context(), hour, 10))(t)
		assert.Contains(t, owed, durable.Offer{OfferID: durable.OfferID{Run: "r", Seq: 2}, Key: r.Needs().Key()})
		assert.Equal(t, "second input", readData(t, s.Input, "r"))
		assert.Equal(t, "input of r", readData(t, s.SubmittedInput, "r"))
		assert.Empty(t, claimRuns(t, s, 10, phaseKey()))

		j.Phase = ""
		second := claimRuns(t, s, 10, keyOf(j))
		require.Len(t, second, 1)
		assert.Equal(t, []any{int64(2), 1}, []any{second[0].Epoch, second[0].Attempts})
		writeCommit(t, s, second[0].Lease(), passTo("report", []byte("third input")))
		assert.Equal(t, "third input", readData(t, s.Input, "r"))
		assert.Equal(t, "input of r", readData(t, s.SubmittedInput, "r"), "the first input stays")
		assert.Equal(t, j.Demands, getRun(t, s, "r").Demands)
		third := claimRuns(t, s, 10, durable.Needs{Kind: "report"}.Key())
		require.Len(t, third, 1)
		endRun(t, s, third[0].Lease())
		assert.Equal(t, durable.Kind("report"), getRun(t, s, "r").Phase)
	},
	"only the last Commit can be repeated": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newPhaseJob("r"))
		first := claimRuns(t, s, 1, phaseKey())[0].Lease()
		writeCommit(t, s, first, passTo("", nil))
		repeats(t, s, first, passTo("", nil))
		writeCommit(t, s, acquireRun(t, s, "r", "tester", durable.TakeFree), durable.Commit{Entries: newEntries(1, 1)})
		refusesCommit(t, s, durable.ErrStale, first, passTo("", nil))
	},
	"an input stays unless another is given": func(t *testing.T, s durable.Store) {
		submitJobs(t, s, newPhaseJob("r"), durable.Job{ID: "none", Phase: phaseKind})
		assert.Equal(t, "input of r", readData(t, s.SubmittedInput, "r"))
		for _, r := range claimRuns(t, s, 2, phaseKey()) {
			writeCommit(t, s, r.Lease(), passTo(phaseKind, nil))
		}
		assert.Equal(t, []string{"input of r", "input of r"}, []string{readData(t, s.Input, "r"), readData(t, s.SubmittedInput, "r")})
		assert.Equal(t, []string{"", ""}, []string{readData(t, s.Input, "none"), readData(t, s.SubmittedInput, "none")})
		for _, r := range claimRuns(t, s, 2, phaseKey()) {
			input := []byte("new\x00\xff")
			if r.ID == "r" {
				input = []byte{}
			}
			writeCommit(t, s, r.Lease(), passTo("", input))
		}
		assert.Equal(t, []string{"", "input of r"}, []string{readData(t, s.Input, "r"), readData(t, s.SubmittedInput, "r")})
		assert.Equal(t, []string{"new\x00\xff", ""}, []string{readData(t, s.Input, "none"), readData(t, s.SubmittedInput, "none")})
		require.ErrorIs(t, second(s.SubmittedInput(t.Context(), unknownRun)), durable.ErrNotFound)
	},
	"its waits are removed": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		w := newWait("c")
		w.TokenHash, w.Deadline = [32]byte{1}, longAgo()
		u := waitUpdate(1, w)
		u.AnyWait = true
		writeUpdate(t, s, l, u)
		writeCommit(t, s, l, passTo(phaseKind, nil))
		requireStatus(t, s, durable.StatusReady, "r")
		assert.Empty(t, readWaits(t, s, "r"))
		assert.True(t, getRun(t, s, "r").AnswerBy.IsZero())
		require.ErrorIs(t, second(s.WaitByToken(t.Context(), w.TokenHash)), durable.ErrTokenSpent)
	},
	"a paused run waits until the pause ends":               play(begin, pause, passOn, isWaiting, isPaused, isIdle, resume, isReady, claim),
	"a run that is to be cancelled is ready":                play(begin, cancel, passOn, isReady, claim, hearSignals("two", "cancel request enough")),
	"a paused run that is to be cancelled is ready":         play(begin, cancel, pause, passOn, isReady, claim),
	"a cancellation before the next process begins ends it": play(begin, passOn, isReady, cancel, isCancelled),
	"a cancellation ends a paused run that was passed on":   play(begin, pause, passOn, cancel, isCancelled),
	"StartBy limits the start of the last phase": func(t *testing.T, s durable.Store) {
		j := newJob("r")
		j.StartBy = longAgo()
		l := beginAs(t, s, j, "one", hour)
		assert.False(t, reconcileAll(t, s).Changed())
		writeCommit(t, s, l, passTo(phaseKind, nil))
		assert.Equal(t, 1, reconcileAll(t, s).Late)
		requireStatus(t, s, durable.StatusCancelled, "r")
	},
	"it may be repeated": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		c := passTo(phaseKind, []byte("second input"))
		c.Entries, c.Events, c.Jobs = newEntries(1, 1), []durable.Event{newEvent("e")}, []durable.Job{newJob("child")}
		writeCommit(t, s, l, c)
		repeats(t, s, l, c)
		claimRuns(t, s, 1, phaseKey())
		repeats(t, s, l, c)
		other := passTo(phaseKind, []byte("third input"))
		other.Entries, other.Events, other.Jobs = c.Entries, c.Events, c.Jobs
		refusesCommit(t, s, durable.ErrStale, l, other, "another input")
		other = c
		other.Events = append(slices.Clone(c.Events), newEvent("another"))
		refusesCommit(t, s, durable.ErrStale, l, other, "another event")
	},
	"no status and no waits go with it": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		changesNothing(t, s, func() {
			for _, u := range []durable.Update{
				{Status: durable.StatusRunning}, {Status: durable.StatusWaiting}, endUpdate(), {Waits: []durable.Wait{newWait("c")}}, {Waits: []durable.Wait{}},
			} {
				u.Pass = &durable.Pass{Phase: phaseKind}
				require.ErrorContains(t, add(t.Context(), s, l, u, newEntry(1)), "pass a run on")
			}
			require.ErrorContains(t, add(t.Context(), s, l, durable.Update{Status: durable.StatusReady}), "cannot set status")
		})
	},
	"all or nothing": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		taken := passTo(phaseKind, []byte("second input"))
		taken.Jobs = []durable.Job{newJob("r")}
		refusesCommit(t, s, durable.ErrExists, l, taken)
		wrong := passTo(phaseKind, []byte("second input"))
		wrong.Entries = newEntries(2, 2)
		changesNothing(t, s, func() { require.ErrorAs(t, s.Commit(t.Context(), l, wrong), new(*durable.SeqError)) })
		l.Epoch++
		refusesCommit(t, s, durable.ErrStale, l, passTo(phaseKind, []byte("second input")))
		l.Run = unknownRun
		refusesCommit(t, s, durable.ErrNotFound, l, passTo(phaseKind, nil))
	},
}
