package durable_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

// The limits of a job stop its run, together with those of its agent, in each process: another worker continues the run
// after each answer.
func TestJobLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		guards capability.UseGuards
		limits agent.Limits
		status durable.Status
		reason agent.StopReason
		steps  int
	}{
		"none":                  {capability.UseGuards{}, agent.Limits{}, durable.StatusCompleted, agent.StopCompleted, lastStep + 1},
		"enough":                {capability.UseGuards{}, agent.Limits{Steps: lastStep + 2, Time: time.Hour}, durable.StatusCompleted, agent.StopCompleted, lastStep + 1},
		"steps":                 {capability.UseGuards{}, agent.Limits{Steps: 2}, durable.StatusStopped, agent.StopStepsLimit, 2},
		"tokens":                {capability.UseGuards{}, agent.Limits{Tokens: 20}, durable.StatusStopped, agent.StopTokenLimit, 2},
		"the agent is stricter": {capability.UseGuards{Steps: 2}, agent.Limits{Steps: 3}, durable.StatusStopped, agent.StopStepsLimit, 2},
		"the job is stricter":   {capability.UseGuards{Steps: 3}, agent.Limits{Steps: 2}, durable.StatusStopped, agent.StopStepsLimit, 2},
		"nothing is left":       {capability.UseGuards{}, agent.Limits{Steps: -1}, durable.StatusStopped, agent.StopStepsLimit, 0},
		"no time is left":       {capability.UseGuards{}, agent.Limits{Time: -1}, durable.StatusStopped, agent.StopTimeLimit, 0},
		"the cost is not known": {capability.UseGuards{}, agent.Limits{Cost: 1}, durable.StatusStopped, agent.StopCostLimit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store, w := openStore(t), newWorld()
			run := submitClerk(t, store, func(j *durable.Job) { j.Limits = tc.limits })
			for {
				keeper := durable.Keep(store, durable.Options{})
				clerk := w.agent(t, keeper, asks("guard"), tc.guards, capability.UseApproval(agent.ParkApprover))
				worker, err := durable.NewWorker(store, durable.WorkerOptions{Runners: map[durable.Kind]durable.Runner{
					durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": clerk}),
				}})
				require.NoError(t, err)
				require.NoError(t, worker.ExecuteReady(t.Context()))
				about, err := store.Run(t.Context(), run.ID)
				require.NoError(t, err)
				if about.Status != durable.StatusWaiting {
					assert.Equal(t, []any{tc.status, tc.reason, tc.steps}, []any{about.Status, about.Reason, about.Steps})
					return
				}
				questions, err := store.Waits(t.Context(), run.ID)
				require.NoError(t, err)
				for _, q := range questions {
					require.NoError(t, durabletest.Approve(t.Context(), store, run.ID, q.ID, agent.Approval{Verdict: agent.Approve}))
				}
			}
		})
	}
}

// A limit on time counts only the time in which a run was running: not while it was parked, nor while no process had it.
func TestTimeLimitsDoNotCountWaiting(t *testing.T) {
	guards := capability.UseGuards{Time: 30 * time.Minute}
	approve := capability.UseApproval(agent.ParkApprover)
	t.Run("parked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, w := openStore(t), newWorld()
			k := durable.Keep(store, durable.Options{})
			a := w.agent(t, k, asks("guard"), guards, approve)
			s, err := a.RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			waited := time.Duration(0)
			for s.Waiting() {
				time.Sleep(40 * time.Minute) // a question waits for an hour
				waited += 40 * time.Minute
				waits, err := store.Waits(t.Context(), "run")
				require.NoError(t, err)
				for _, one := range waits {
					require.NoError(t, durabletest.Approve(t.Context(), store, "run", one.ID, agent.Approval{Verdict: agent.Approve}))
				}
				s, err = k.Resume(t.Context(), a, "run", durable.TakeFree).Get()
				require.NoError(t, err)
			}
			assert.Equal(t, agent.StatusDone, s.Status(), "%v", s.StopSignal())
			assert.Greater(t, waited, guards.Time)
			assert.Equal(t, waited, (time.Since(s.Run().Started) - s.Elapsed()).Round(time.Minute))
			assert.Less(t, s.Elapsed(), time.Hour)
		})
	})
	t.Run("cut off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, inner := newWorld(), openStore(t)
			dying := &brittle{Store: inner}
			dying.left.Store(6)
			k := durable.Keep(dying, durable.Options{Patience: -1})
			require.Error(t, w.agent(t, k, guards).RunWith(t.Context(), agent.RunSettings{ID: "run"}, agent.NewState(), agent.UserText("go")).Error())
			time.Sleep(2 * time.Hour)
			k = durable.Keep(inner, durable.Options{})
			a := w.agent(t, k, guards, approve)
			s, err := k.Resume(t.Context(), a, "run", durable.TakeOver).Get()
			require.NoError(t, err)
			for s.Waiting() { // calls that may have happened
				waits, err := inner.Waits(t.Context(), "run")
				require.NoError(t, err)
				for _, one := range waits {
					require.NoError(t, durabletest.Approve(t.Context(), inner, "run", one.ID, agent.Approval{Verdict: agent.Approve}))
				}
				s, err = k.Resume(t.Context(), a, "run", durable.TakeFree).Get()
				require.NoError(t, err)
			}
			assert.Equal(t, agent.StatusDone, s.Status(), "%v", s.StopSignal())
			assert.Less(t, s.Elapsed(), time.Hour)
		})
	})
}

// Limits are stored with the input, in every store and encrypted too, and do not change the input.
func TestLimitsAreStoredWithTheInput(t *testing.T) {
	encrypted := openEncrypted(t, tempFile(t), durable.Encryption{Key: keyA})
	limits := agent.Limits{Steps: 7, Tokens: 1_000_000, Cost: 0.25, Time: 90 * time.Second}
	for name, store := range map[string]durable.Store{"plain": openStore(t), "encrypted": encrypted} {
		t.Run(name, func(t *testing.T) {
			runs, err := store.Submit(t.Context(), durable.Job{Input: []byte("in"), Limits: limits}, durable.Job{Input: []byte("in")}, durable.Job{Limits: limits})
			require.NoError(t, err)
			for i, want := range []struct {
				input  string
				limits agent.Limits
			}{{"in", limits}, {"in", agent.Limits{}}, {"", limits}} {
				input, got, err := durable.InputOf(t.Context(), store, runs[i].ID)
				require.NoError(t, err)
				assert.Equal(t, want.input, string(input))
				assert.Equal(t, want.limits, got)
			}
		})
	}
	for _, cost := range []float64{math.NaN(), math.Inf(1)} {
		_, err := durable.Job{Name: "clerk", Limits: agent.Limits{Cost: cost}}.Prepare()
		require.ErrorContains(t, err, `job "clerk" of kind agent: the cost limit is`)
	}
	twice, err := durable.Job{Input: []byte("in"), Limits: limits}.Prepare()
	require.NoError(t, err)
	again, err := twice.Prepare()
	require.NoError(t, err)
	assert.Equal(t, twice, again)
}

// Damaged limits are an error and not no limits.
func TestDamagedLimits(t *testing.T) {
	good, err := durable.Job{Input: []byte("in"), Limits: agent.Limits{Steps: 7}}.Prepare()
	require.NoError(t, err)
	for name, input := range map[string][]byte{"no length": good.Input[:4], "cut": good.Input[:8], "no JSON": append([]byte("\x00gl1\x01"), "x"...)} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			runs, err := store.Submit(t.Context(), durable.Job{Input: input})
			require.NoError(t, err)
			_, _, err = durable.InputOf(t.Context(), store, runs[0].ID)
			require.ErrorContains(t, err, "its limits")
		})
	}
}
