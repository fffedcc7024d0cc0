package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/toolexec"
)

// recorder is a store that records what is committed to it.
type recorder struct {
	durable.Store

	mu      sync.Mutex
	commits []durable.Commit
}

func (r *recorder) Commit(ctx context.Context, l durable.Lease, c durable.Commit) error {
	r.mu.Lock()
	r.commits = append(r.commits, c)
	r.mu.Unlock()
	return r.Store.Commit(ctx, l, c)
}

// take returns the commits since the last call.
func (r *recorder) take() []durable.Commit {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.commits
	r.commits = nil
	return all
}

// countBytes returns how many bytes the entries of commits hold.
func countBytes(all []durable.Commit) (n int) {
	for _, c := range all {
		for _, e := range c.Entries {
			n += len(e.Data)
		}
	}
	return n
}

// adder returns an agent that calls a tool with each step. Asked is called before each step and at the end, with the number
// of steps that are done.
func adder(m *measuring, s durable.Store, steps int, asked func(done int)) *agent.Agent {
	m.Helper()
	add := toolexec.Func("add", "Adds.", func(_ context.Context, in struct{ N int }) (string, error) { return fmt.Sprint(in.N + 1), nil })
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		done := s.RunStepCount()
		asked(done)
		if done == steps {
			return agent.Step{Message: agent.Assistant("Done.")}, nil
		}
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "add", Arguments: `{"N":41}`})}, nil
	})
	a, err := builder.New().WithDriver(driver).
		With(capability.UseTools(add), capability.UseDurability{Keeper: durable.Keep(s, durable.Options{})}).Build().Get()
	require.NoError(m, err)
	return a
}

func run(m *measuring, a *agent.Agent) {
	s, err := a.Run(m.Context(), agent.NewState(), agent.UserText("go")).Get()
	if err != nil || s.Status() != agent.StatusDone {
		m.Errorf("a run ended as %s: %v", s.Status(), err)
	}
}

// measureStep compares a step with one tool call with an entry of the same bytes, added by bare SQL in one transaction. After
// each step comes such an entry, in another database.
func measureStep(m *measuring) {
	ours, theirs := m.backend.open(m.T), m.backend.open(m.T)
	_, err := theirs.Begin(m.Context(), durable.Job{}, "one", time.Hour)
	require.NoError(m, err)
	var (
		store       = &recorder{Store: ours.Store}
		c           = compared{}
		bytes       int
		seq         int64
		commits     []int
		took, plain []time.Duration
		began       time.Time
	)
	a := adder(m, store, m.steps, func(done int) {
		if done > 0 {
			took = append(took, time.Since(began))
			all := store.take()
			commits, bytes, seq = append(commits, len(all)), countBytes(all), seq+1
			data := make([]byte, bytes)
			plain = append(plain, timed(func() {
				require.NoError(m, theirs.bare.transact(m.Context(),
					statement{query: insertEntry, args: []any{1, seq, "reply", "1", theirs.bare.at(time.Now()), data}}))
			}))
		}
		store.take()
		began = time.Now()
	})
	for round := range m.rounds + 1 {
		took, plain = nil, nil
		run(m, a)
		require.Len(m, took, m.steps)
		if round > 0 { // the first warms up
			c["step"], c["append"] = append(c["step"], quantile(took, 50)), append(c["append"], quantile(plain, 50))
		}
	}
	slices.Sort(commits)
	n := commits[len(commits)/2]
	m.report.rounds(m, "step", c)
	ratio := c.ratio("step", "append")
	// ADR 0008 sets the goals. With normal sync, an append takes no longer than the agent alone.
	goal, most := "2 commits", math.Inf(1)
	switch {
	case m.backend.key == "postgres":
		goal, most = "≤ 3.5 ×", 3.5
	case m.backend.key != sqliteNormal.key:
		goal, most = "≤ 3.1 ×", 3.1
	}
	m.row("a step ÷ an append of its bytes", goal, n == 2 && ratio <= most,
		"%d commits, **%s**: %s, append %s", n, times(ratio), milliseconds(c.median("step")), milliseconds(c.median("append")))
}
