package durable_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/toolexec"
)

// crew is a running worker with the events that it has reported.
type crew struct {
	worker *durable.Worker
	events chan durable.WorkerEvent
	stop   func()
}

// employ starts a worker that runs the agent "clerk", until stop is called or the test ends.
func employ(t *testing.T, store durable.Store, build func(k *durable.Keeper) *agent.Agent, o durable.WorkerOptions, k durable.Options) *crew {
	t.Helper()
	keeper := durable.Keep(store, k)
	c := &crew{events: make(chan durable.WorkerEvent, 1000)}
	if o.Runners == nil {
		o.Runners = map[durable.Kind]durable.Runner{durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": build(keeper)})}
	}
	o.Observe = func(e durable.WorkerEvent) { c.events <- e }
	var err error
	c.worker, err = durable.NewWorker(store, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { assert.NoError(t, c.worker.Run(ctx)) })
	c.stop = sync.OnceFunc(func() { cancel(); over.Wait() })
	t.Cleanup(c.stop)
	return c
}

// next returns the next event of a kind.
func (c *crew) next(t *testing.T, kind durable.WorkerEventKind) durable.WorkerEvent {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case e := <-c.events:
			if e.Kind == kind {
				return e
			}
		case <-late:
			require.Fail(t, "no such event within a minute", "%s", kind)
		}
	}
}

func submitClerk(t *testing.T, store durable.Store, change func(j *durable.Job)) durable.Run {
	t.Helper()
	j, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText("go"))
	require.NoError(t, err)
	if change != nil {
		change(&j)
	}
	runs, err := store.Submit(t.Context(), j)
	require.NoError(t, err)
	return runs[0]
}

// A worker executes submitted jobs, and continues runs as soon as their questions are answered.
func TestWorker(t *testing.T) {
	store, w := openStore(t), newWorld()
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent {
		return w.agent(t, k, asks("guard"), capability.UseApproval(agent.ParkApprover))
	}, durable.WorkerOptions{Capacity: 2}, durable.Options{})
	stranger, err := store.Submit(t.Context(), durable.Job{Name: "stranger"})
	require.NoError(t, err)
	const jobs = 5
	for range jobs {
		submitClerk(t, store, nil)
	}
	waited := 0
	for completed := 0; completed < jobs; {
		e := c.next(t, durable.WorkerReleased)
		require.NoError(t, e.Err)
		if e.Run.Status == durable.StatusCompleted {
			completed++
			result, err := durable.ResultOf(t.Context(), store, e.Run.ID)
			require.NoError(t, err)
			assert.Equal(t, "Done.", result.Text)
			continue
		}
		require.Equal(t, durable.StatusWaiting, e.Run.Status)
		waited++
		waits, err := store.Waits(t.Context(), e.Run.ID)
		require.NoError(t, err)
		for _, w := range waits {
			_, err := durable.Decide(t.Context(), store, w, agent.Approval{Verdict: agent.Approve})
			require.NoError(t, err)
		}
	}
	assert.Equal(t, jobs, waited)
	assert.Len(t, w.effects, jobs*2*lastStep)
	about, err := store.Run(t.Context(), stranger[0].ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, about.Status, "no worker serves it")
	unserved, own := stranger[0].Needs().Key(), durable.Needs{Kind: durable.KindAgent, Name: "clerk"}.Key()
	require.Eventually(t, func() bool { // the worker says so once a second
		served, err := store.QueueServices(t.Context(), unserved, own)
		require.NoError(t, err)
		assert.Zero(t, served[unserved].LastPoll)
		assert.Equal(t, 1, served[unserved].Backlog)
		return !served[own].LastPoll.IsZero()
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, durable.WorkerRunning, c.worker.Health().State)
	c.stop()
	assert.Equal(t, durable.WorkerStopped, c.worker.Health().State)
}

// blocking is a step processor that blocks the first step of all runs until release is called or ctx is done.
func blocking() (c capability.Capability, begun <-chan struct{}, release func()) {
	began, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	return capability.UseStepProcessor("blocking", agent.ProcessorFunc(func(ctx context.Context, s agent.State, next agent.Next) mo.Result[agent.State] {
		once.Do(func() {
			close(began)
			select {
			case <-free:
			case <-ctx.Done():
			}
		})
		return next(ctx, s)
	})), began, sync.OnceFunc(func() { close(free) })
}

// A worker that is stopped lets its runs end their step; another worker continues them.
func TestWorkerSuspends(t *testing.T) {
	for name, grace := range map[string]time.Duration{"in time": time.Minute, "cut off": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			store, w := openStore(t), newWorld()
			block, begun, release := blocking()
			first := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k, block) }, durable.WorkerOptions{Grace: grace}, durable.Options{})
			run := submitClerk(t, store, nil)
			<-begun
			assert.Len(t, first.worker.Health().Active, 1)
			var stopping sync.WaitGroup
			stopping.Go(first.stop)
			if grace == time.Minute {
				require.Eventually(t, func() bool { return first.worker.Health().State == durable.WorkerDraining }, time.Minute, time.Millisecond)
				release()
			}
			stopping.Wait()
			e := first.next(t, durable.WorkerReleased)
			assert.Equal(t, durable.StatusReady, e.Run.Status)
			second := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) }, durable.WorkerOptions{}, durable.Options{})
			e = second.next(t, durable.WorkerReleased)
			assert.Equal(t, run.ID, e.Run.ID)
			assert.Equal(t, durable.StatusCompleted, e.Run.Status)
			assert.Equal(t, 2, e.Run.Attempts)
			assert.Len(t, w.effects, 2*lastStep)
			for key, n := range w.effects {
				assert.Equal(t, 1, n, key)
			}
		})
	}
}

// A worker that drains executes its runs to their end and claims no more. The list of workers says so.
func TestWorkerDrains(t *testing.T) {
	store, w := openStore(t), newWorld()
	listed := func(draining bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			all, err := store.Workers(t.Context())
			return err == nil && len(all) == 1 && all[0].Draining == draining && all[0].Capacity == 1 && len(all[0].Kinds) > 0
		}, time.Minute, time.Millisecond)
	}
	block, begun, release := blocking()
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k, block) }, durable.WorkerOptions{Capacity: 1}, durable.Options{})
	submitClerk(t, store, nil)
	<-begun
	left := submitClerk(t, store, nil)
	listed(false)
	c.worker.Drain()
	require.Eventually(t, func() bool { return c.worker.Health().State == durable.WorkerDraining }, time.Minute, time.Millisecond)
	listed(true)
	release()
	assert.Equal(t, durable.StatusCompleted, c.next(t, durable.WorkerReleased).Run.Status)
	require.Eventually(t, func() bool { return c.worker.Health().State == durable.WorkerStopped }, time.Minute, time.Millisecond)
	about, err := store.Run(t.Context(), left.ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, about.Status)
}

// Signals reach a run of a worker: a pause after the current step, context with the next step, a cancellation at once.
func TestSignals(t *testing.T) {
	store, w := &lookedAt{Store: openStore(t), looks: make(chan int, 1000)}, newWorld()
	block, begun, release := blocking()
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k, block) }, durable.WorkerOptions{}, durable.Options{})
	run := submitClerk(t, store, nil)
	<-begun
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalContext, Text: "the bank is closed", By: "ann"}))
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalPause, By: "ann"}))
	for range 2 { // the signals were delivered when the keeper looks again
		found := 0
		for found < 2 {
			found = <-store.looks
		}
	}
	release()
	e := c.next(t, durable.WorkerReleased)
	assert.Equal(t, durable.StatusWaiting, e.Run.Status)
	assert.True(t, e.Run.Paused)
	assert.Equal(t, 1, e.Run.Steps)
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalResume}))
	e = c.next(t, durable.WorkerReleased)
	assert.Equal(t, durable.StatusCompleted, e.Run.Status)
	s, err := durable.Load(t.Context(), store, run.ID)
	require.NoError(t, err)
	var added []agent.Message
	for _, m := range s.Messages() {
		if m.Source() == "ann" {
			added = append(added, m)
		}
	}
	require.Len(t, added, 1, "once")
	assert.Equal(t, "the bank is closed", added[0].Text())
}

// lookedAt reports how many signals each look at them has found.
type lookedAt struct {
	durable.Store

	looks chan int
}

func (s *lookedAt) Signals(ctx context.Context, owner string) ([]durable.Signal, error) {
	signals, err := s.Store.Signals(ctx, owner)
	s.looks <- len(signals)
	return signals, err
}

func TestCancelledByASignal(t *testing.T) {
	store, w := openStore(t), newWorld()
	block, begun, _ := blocking()
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k, block) }, durable.WorkerOptions{}, durable.Options{})
	run := submitClerk(t, store, nil)
	<-begun
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalCancel, Text: "not needed"}))
	e := c.next(t, durable.WorkerReleased) // the step ends with its context
	assert.Equal(t, durable.StatusCancelled, e.Run.Status)
	result, err := durable.ResultOf(t.Context(), store, run.ID)
	require.NoError(t, err)
	assert.Empty(t, result.Text)
}

// A worker runs only jobs whose demands it has among its labels.
func TestDemands(t *testing.T) {
	store, w := openStore(t), newWorld()
	build := func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) }
	gpu := submitClerk(t, store, func(j *durable.Job) { j.Demands = map[string]string{"gpu": "a100", "zone": "eu"} })
	plain := submitClerk(t, store, nil)
	c := employ(t, store, build, durable.WorkerOptions{Labels: map[string]string{"gpu": "a100", "zone": "us"}}, durable.Options{})
	assert.Equal(t, plain.ID, c.next(t, durable.WorkerReleased).Run.ID)
	c.stop()
	about, err := store.Run(t.Context(), gpu.ID)
	require.NoError(t, err)
	assert.Equal(t, durable.StatusReady, about.Status)
	c = employ(t, store, build, durable.WorkerOptions{Labels: map[string]string{"gpu": "a100", "zone": "eu", "more": "x"}}, durable.Options{})
	assert.Equal(t, gpu.ID, c.next(t, durable.WorkerReleased).Run.ID)
}

// failingRunner fails to execute runs a number of times.
type failingRunner struct {
	durable.Runner

	mu    sync.Mutex
	fails int
}

func (r *failingRunner) Execute(ctx context.Context, about durable.Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails--; r.fails >= 0 {
		return errors.New("no model today")
	}
	return r.Runner.Execute(ctx, about)
}

// A run that cannot be executed is not claimed again at once.
func TestARunThatCannotBeExecuted(t *testing.T) {
	store, w := openStore(t), newWorld()
	keeper := durable.Keep(store, durable.Options{})
	inner := durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)})
	c := employ(t, store, nil, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: &failingRunner{Runner: inner, fails: 1}}, Poll: 10 * time.Millisecond,
	}, durable.Options{})
	submitClerk(t, store, nil)
	e := c.next(t, durable.WorkerReleased)
	require.ErrorContains(t, e.Err, "no model today")
	assert.Equal(t, durable.StatusPending, e.Run.Status)
	assert.Greater(t, time.Until(e.Run.NotBefore), time.Second)
	e = c.next(t, durable.WorkerReleased)
	assert.Equal(t, durable.StatusCompleted, e.Run.Status)
	assert.Equal(t, 2, e.Run.Attempts)
}

// A run whose errors do not say whether another attempt may succeed fails with the last one after ten attempts. An error that is known to
// pass is tried for as long as it lasts.
func TestARunWithUnknownErrorsEnds(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		events   int // of each attempt
		attempts int
		status   durable.Status
	}{
		"unknown":     {errors.New("the weather is bad"), 0, 10, durable.StatusFailed},
		"many events": {errors.New("the weather is bad"), 120, 10, durable.StatusFailed},
		"overloaded":  {&drivers.Error{Kind: agent.KindOverloaded, Message: "too many"}, 0, 20, durable.StatusPending},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{Now: func() time.Time { return now }})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			keeper := durable.Keep(store, durable.Options{})
			inner := durable.AgentRunner(keeper, durable.AgentMap{"clerk": newWorld().agent(t, keeper)})
			worker, err := durable.NewWorker(store, durable.WorkerOptions{
				Runners: map[durable.Kind]durable.Runner{durable.KindAgent: &lackingRunner{inner, store, c.events, c.err}},
			})
			require.NoError(t, err)
			id := submitClerk(t, store, nil).ID
			for range 20 {
				require.NoError(t, worker.ExecuteReady(t.Context()))
				now = now.Add(10 * time.Minute)
			}
			r, err := store.Run(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, c.attempts, r.Attempts)
			assert.Equal(t, c.status, r.Status)
			events, err := store.Events(t.Context(), id, 0, 10_000)
			require.NoError(t, err)
			events = lo.Filter(events, func(e durable.Event, _ int) bool { return e.Name == durable.EventRunnerError })
			require.NotEmpty(t, events)
			var last durable.RunnerError
			require.NoError(t, json.Unmarshal(events[len(events)-1].Data, &last))
			assert.Equal(t, c.err.Error(), last.Error)
			if c.status == durable.StatusFailed {
				result, err := durable.ResultOf(t.Context(), store, id)
				require.NoError(t, err)
				assert.Equal(t, "the weather is bad", result.Error)
			}
		})
	}
}

// lackingRunner has an error that stays the same.
type lackingRunner struct {
	durable.Runner

	store  durable.Store
	events int // how many events each attempt writes
	err    error
}

func (r *lackingRunner) Execute(ctx context.Context, about durable.Run) error {
	if r.events == 0 {
		return r.err
	}
	told := slices.Repeat([]durable.Event{{At: time.Now(), Name: "told", Data: []byte("{}")}}, r.events)
	return cmp.Or(r.store.Commit(ctx, about.Lease(), durable.Commit{Events: told}), r.err)
}

// A run that can never be executed has failed with the reason, and is not tried again.
func TestARunThatCanNeverBeExecuted(t *testing.T) {
	for name, lacks := range map[string]error{
		"no key": fmt.Errorf("agent: %w", &drivers.ConfigError{Err: errors.New("no key is set")}),
		"joined": errors.Join(errors.New("closing"), &drivers.Error{Kind: agent.KindAuth, Message: "no key is set"}),
	} {
		t.Run(name, func(t *testing.T) {
			store, w := openStore(t), newWorld()
			keeper := durable.Keep(store, durable.Options{})
			inner := durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)})
			worker, err := durable.NewWorker(store, durable.WorkerOptions{
				Runners: map[durable.Kind]durable.Runner{durable.KindAgent: &lackingRunner{inner, store, 0, lacks}},
			})
			require.NoError(t, err)
			id := submitClerk(t, store, nil).ID
			require.NoError(t, worker.ExecuteReady(t.Context()))
			r, err := store.Run(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, durable.StatusFailed, r.Status)
			assert.Equal(t, 1, r.Attempts)
			result, err := durable.ResultOf(t.Context(), store, id)
			require.NoError(t, err)
			assert.Contains(t, result.Error, "no key is set")
		})
	}
}

// A worker without a store reports that and tries again.
func TestWorkerWithoutAStore(t *testing.T) {
	inner, w := openStore(t), newWorld()
	away := &unreadable{Store: inner}
	c := employ(t, away, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) }, durable.WorkerOptions{Poll: time.Millisecond}, durable.Options{})
	for range 2 {
		require.ErrorIs(t, c.next(t, durable.WorkerFailed).Err, errAway)
	}
	assert.Contains(t, c.worker.Health().Error, errAway.Error())
}

type unreadable struct{ durable.Store }

func (unreadable) Queues(context.Context) ([]durable.Needs, error) { return nil, errAway }

// ExecuteReady executes what is ready, also what becomes ready meanwhile, and returns.
func TestExecuteReady(t *testing.T) {
	store, w := openStore(t), newWorld()
	keeper := durable.Keep(store, durable.Options{})
	worker, err := durable.NewWorker(store, durable.WorkerOptions{
		Runners: map[durable.Kind]durable.Runner{durable.KindAgent: durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)})}, Capacity: 2,
	})
	require.NoError(t, err)
	for range 5 {
		submitClerk(t, store, nil)
	}
	require.NoError(t, worker.ExecuteReady(t.Context()))
	runs, err := store.List(t.Context(), durable.Filter{Status: []durable.Status{durable.StatusCompleted}})
	require.NoError(t, err)
	assert.Len(t, runs, 5)
}

func TestNewWorker(t *testing.T) {
	store := openStore(t)
	_, err := durable.NewWorker(store, durable.WorkerOptions{})
	require.ErrorContains(t, err, "set WorkerOptions.Runners")
	one, two := durable.AgentRunner(durable.Keep(store, durable.Options{}), nil), durable.AgentRunner(durable.Keep(store, durable.Options{}), nil)
	_, err = durable.NewWorker(store, durable.WorkerOptions{Runners: map[durable.Kind]durable.Runner{"a": one, "b": two}})
	require.ErrorContains(t, err, "use one keeper for all")
	_, err = durable.NewWorker(store, durable.WorkerOptions{Runners: map[durable.Kind]durable.Runner{"a": one}, Labels: map[string]string{"a b": ""}})
	require.ErrorContains(t, err, `worker label "a b"`)
}

// Events of a run are stored with its journal, in order, and those that are only counted once a step.
func TestStoredEvents(t *testing.T) {
	store := openStore(t)
	k := durable.Keep(store, durable.Options{Events: func(e agent.Event) (durable.EventForm, bool) {
		switch e.(type) {
		case agent.ToolCallStarted:
			return durable.EventForm{Counter: "calls"}, true
		case agent.StepStarted, agent.RunCompleted:
			return durable.EventForm{Name: e.EventName(), Data: []byte("{}")}, true
		}
		return durable.EventForm{}, false
	}})
	require.True(t, k.ObservesEvents())
	a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("look", "{}").Call("look", "{}"), agenttest.Say("done"))).
		With(capability.UseDurability{Keeper: k}, capability.UseTools(toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "much", nil }))).WithObserver(k).Build().Get()
	require.NoError(t, err)
	s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
	require.NoError(t, err)
	events, err := store.Events(t.Context(), s.Run().ID, 0, 100)
	require.NoError(t, err)
	var told []string
	for i, e := range events {
		assert.Equal(t, int64(i+1), e.Seq)
		told = append(told, e.Name+" "+string(e.Data))
	}
	assert.Equal(t, []string{"step.started {}", `counts {"calls":2}`, "step.started {}", "run.completed {}"}, told)
	about, err := store.Run(t.Context(), s.Run().ID)
	require.NoError(t, err)
	assert.Equal(t, int64(len(events)), about.Events)
}

// Events are stored with the next entry, or without one if it does not follow soon: a model may take minutes.
func TestEventsOfASlowModel(t *testing.T) {
	for takes, want := range map[time.Duration][]string{99 * time.Millisecond: {}, 101 * time.Millisecond: {"inference.started"}} {
		synctest.Test(t, func(t *testing.T) {
			store := &commits{Store: memory.New()}
			read := func(id agent.RunID) []string {
				events, err := store.Events(t.Context(), id, 0, 10)
				require.NoError(t, err)
				return lo.Map(events, func(e durable.Event, _ int) string { return e.Name })
			}
			k := durable.Keep(store, durable.Options{Events: func(e agent.Event) (durable.EventForm, bool) {
				switch e.(type) {
				case agent.StepStarted:
					return durable.EventForm{Counter: "steps"}, true
				case agent.InferenceStarted:
					return durable.EventForm{Name: e.EventName()}, true
				}
				return durable.EventForm{}, false
			}})
			var id agent.RunID
			a, err := builder.New().With(capability.UseDurability{Keeper: k}).WithObserver(k).WithDriver(
				agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
					time.Sleep(takes)
					id = s.Run().ID
					assert.Equal(t, want, read(id))
					return agent.Step{Message: agent.Assistant("done"), FinishReason: agent.FinishStop}, nil
				})).Build().Get()
			require.NoError(t, err)
			require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
			assert.Equal(t, []string{"inference.started", "counts"}, read(id))
			assert.Equal(t, len(want), lo.Count(store.all, ""), "commits without entries")
			require.NoError(t, store.Close())
		})
	}
}

// A list shows what a run has used before it ends.
func TestUsageOfARunningRun(t *testing.T) {
	store := openStore(t)
	k := durable.Keep(store, durable.Options{})
	used := agent.Usage{InputTokens: 7, OutputTokens: 2, CacheReadTokens: 3, Cost: mo.Some(0.5)}
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() == 0 {
			return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "c", Name: "look", Arguments: "{}"}), Usage: used}, nil
		}
		about, err := store.Run(t.Context(), s.Run().ID)
		require.NoError(t, err)
		assert.Equal(t, durable.UsageOf(used), about.Usage)
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "much", nil })
	a, err := builder.New().WithDriver(driver).With(capability.UseDurability{Keeper: k}, capability.UseTools(look)).Build().Get()
	require.NoError(t, err)
	require.NoError(t, a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Error())
}

func TestEmbeddedScheduler(t *testing.T) {
	t.Parallel()
	durabletest.TestScheduler(t, func(_ *testing.T, store durable.Store) durable.Scheduler {
		return durable.NewEmbedded(store, 50*time.Millisecond)
	}, openStore)
}

// The metrics of a worker.
func TestWorkerMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	store, w := openStore(t), newWorld()
	submitClerk(t, store, nil)
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) },
		durable.WorkerOptions{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}, durable.Options{})
	c.next(t, durable.WorkerReleased)
	var all metricdata.ResourceMetrics
	require.Eventually(t, func() bool { // the worker looks at its queues beside its runs
		err := reader.Collect(t.Context(), &all)
		return err == nil && slices.ContainsFunc(all.ScopeMetrics, func(s metricdata.ScopeMetrics) bool {
			return slices.ContainsFunc(s.Metrics, func(m metricdata.Metrics) bool { return m.Name == "grapnel.queue.age" })
		})
	}, time.Minute, time.Millisecond)
	c.stop()
	require.NoError(t, reader.Collect(t.Context(), &all))
	names := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			names[m.Name] = true
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
				require.Len(t, data.DataPoints, 1)
				assert.Equal(t, "grapnel.run.kind=agent,grapnel.run.name=clerk,grapnel.run.status=completed",
					data.DataPoints[0].Attributes.Encoded(attribute.DefaultEncoder()))
			}
		}
	}
	for _, name := range []string{"grapnel.worker.run.duration", "grapnel.worker.runs.active", "grapnel.queue.ready", "grapnel.queue.age"} {
		assert.True(t, names[name], "%s is missing", name)
	}
}

// parentRunner starts a child and waits for it.
type parentRunner struct {
	durable.Runner

	store durable.Store
	child durable.Job
}

func (r *parentRunner) Execute(ctx context.Context, about durable.Run) error {
	c := durable.Commit{Update: durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted}}
	if about.Attempts == 1 {
		r.child.Parent = about.ID
		c.Jobs = []durable.Job{r.child}
		c.Update = durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{{ID: "child", Kind: durable.WaitChild, Subject: "h", Child: r.child.ID}}}
	}
	return r.store.Commit(ctx, about.Lease(), c)
}

// LH-81: a run that waits for its child continues when the child has ended, although the worker that started both is gone.
func TestAParentWaitsForItsChild(t *testing.T) {
	store, w := openStore(t), newWorld()
	child, err := durable.AgentJob("clerk", agent.NewState(), agent.UserText("go"))
	require.NoError(t, err)
	child.ID = "child"
	const kind durable.Kind = "parent"
	runners := func(kinds ...durable.Kind) map[durable.Kind]durable.Runner {
		keeper := durable.Keep(store, durable.Options{})
		clerk := durable.AgentRunner(keeper, durable.AgentMap{"clerk": w.agent(t, keeper)})
		all := map[durable.Kind]durable.Runner{durable.KindAgent: clerk, kind: &parentRunner{clerk, store, child}}
		out := map[durable.Kind]durable.Runner{}
		for _, k := range kinds {
			out[k] = all[k]
		}
		return out
	}
	_, err = store.Submit(t.Context(), durable.Job{ID: "parent", Kind: kind, Name: "clerk"})
	require.NoError(t, err)
	first := employ(t, store, nil, durable.WorkerOptions{Runners: runners(kind)}, durable.Options{})
	assert.Equal(t, durable.StatusWaiting, first.next(t, durable.WorkerReleased).Run.Status)
	first.stop()
	second := employ(t, store, nil, durable.WorkerOptions{Runners: runners(kind, durable.KindAgent), Capacity: 1}, durable.Options{})
	e := second.next(t, durable.WorkerReleased)
	assert.Equal(t, agent.RunID("child"), e.Run.ID)
	assert.Equal(t, agent.RunID("parent"), e.Run.Root)
	e = second.next(t, durable.WorkerReleased)
	assert.Equal(t, agent.RunID("parent"), e.Run.ID)
	assert.Equal(t, durable.StatusCompleted, e.Run.Status)
}

// offersTo is the embedded scheduler, except that it records offers, and refuses the first ones.
type offersTo struct {
	durable.Scheduler

	mu      sync.Mutex
	refused int
	made    map[agent.RunID]int
}

func (o *offersTo) Offer(_ context.Context, offers ...durable.Offer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused > 0 {
		o.refused--
		return errors.New("no scheduler")
	}
	for _, offer := range offers {
		o.made[offer.Run]++
	}
	return nil
}

// A worker makes offers as soon as runs become ready, and makes refused ones again.
func TestOffers(t *testing.T) {
	store, w := openStore(t), newWorld()
	s := &offersTo{Scheduler: durable.NewEmbedded(store, time.Hour), refused: 3, made: map[agent.RunID]int{}}
	c := employ(t, store, func(k *durable.Keeper) *agent.Agent { return w.agent(t, k) },
		durable.WorkerOptions{Scheduler: s, Poll: 20 * time.Millisecond}, durable.Options{})
	var runs []agent.RunID
	for range 3 {
		runs = append(runs, submitClerk(t, store, nil).ID)
	}
	for range runs {
		require.NoError(t, c.next(t, durable.WorkerReleased).Err)
	}
	late, err := store.Submit(t.Context(), durable.Job{Name: "stranger"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused == 0 && s.made[late[0].ID] == 1
	}, 30*time.Second, time.Millisecond)
}
