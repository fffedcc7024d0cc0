package engine_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
)

// measureTogether compares the steps a second of concurrent runs with those of one run, and with a loop of bare SQL that
// writes the same rows of all runs in one transaction. It compares the commits of these steps, without agents, too.
func measureTogether(m *measuring) {
	ours, alone, theirs := m.backend.open(m.T), m.backend.open(m.T), m.backend.open(m.T)
	step := stepOf(m, alone.Store)
	leases := make([]durable.Lease, m.together)
	nums := make([]int64, m.together)
	for i := range leases {
		var err error
		leases[i], err = ours.Begin(m.Context(), durable.Job{}, "one", time.Hour)
		require.NoError(m, err)
		l, err := theirs.Begin(m.Context(), durable.Job{}, "one", time.Hour)
		require.NoError(m, err)
		require.NoError(m, theirs.bare.transact(m.Context(),
			statement{`SELECT num FROM runs WHERE id = $1`, []any{string(l.Run)}, &nums[i]}))
	}
	steps := max(m.steps/2, 2)
	var written, appended int64 // entries of each run
	c := compare(m.rounds, 1,
		side{"many", func() time.Duration {
			return stepTogether(m, ours.Store, m.together, steps) / time.Duration(m.together*steps)
		}},
		side{"one", func() time.Duration { return stepTogether(m, alone.Store, 1, m.steps) / time.Duration(m.steps) }},
		side{"commits", func() time.Duration {
			took := timed(func() { commitTogether(m, ours.Store, leases, step, steps, written) })
			written += int64(steps * countEntries(step))
			return took / time.Duration(m.together*steps)
		}},
		side{"bare", func() time.Duration {
			took := timed(func() {
				for range steps {
					for _, commit := range step {
						require.NoError(m, theirs.bare.transact(m.Context(), sameRows(theirs.bare, nums, commit, appended)...))
						appended += int64(len(commit.Entries))
					}
				}
			})
			return took / time.Duration(m.together*steps)
		}})
	m.report.rounds(m, "together", c)
	speed := func(side string) string { return thousands(int(perSecond(1, c.median(side)))) + " steps/s" }
	goal, share := 4.0, 0.55 // set in ADR 0008, like the goal for a step
	if m.backend.key == "postgres" {
		goal, share = 3, 0.5
	}
	more, bare, commits := c.ratio("one", "many"), c.ratio("bare", "many"), c.ratio("bare", "commits")
	m.row(fmt.Sprintf("%d concurrent runs ÷ one run", m.together), fmt.Sprintf("≥ %.0f ×", goal), more >= goal,
		"**%s**: %s, one run %s", times(more), speed("many"), speed("one"))
	m.row(fmt.Sprintf("%d concurrent runs ÷ a bare loop", m.together), "≥ "+percent(share), bare >= share,
		"**%s**: %s, bare %s", percent(bare), speed("many"), speed("bare"))
	m.row("their commits ÷ the bare loop", "≥ 60 %", commits >= 0.6, "**%s**: %s, bare %s", percent(commits), speed("commits"), speed("bare"))
}

// stepOf returns the commits of a step.
func stepOf(m *measuring, s durable.Store) (step []durable.Commit) {
	m.Helper()
	store := &recorder{Store: s}
	run(m, adder(m, store, 2, func(done int) {
		if commits := store.take(); done == 2 {
			step = commits
		}
	}))
	require.NotEmpty(m, step)
	return step
}

func countEntries(all []durable.Commit) (n int) {
	for _, c := range all {
		n += len(c.Entries)
	}
	return n
}

// stepTogether returns the time that concurrent runs take for their steps, from the first step of all to the last one.
func stepTogether(m *measuring, s durable.Store, runs, steps int) time.Duration {
	var ready, done, ended sync.WaitGroup
	start := make(chan struct{})
	ready.Add(runs)
	done.Add(runs)
	a := adder(m, s, steps, func(n int) {
		switch n {
		case 0:
			ready.Done()
			<-start
		case steps:
			done.Done()
		}
	})
	for range runs {
		ended.Go(func() { run(m, a) })
	}
	ready.Wait()
	took := timed(func() {
		close(start)
		done.Wait()
	})
	ended.Wait()
	return took
}

// commitTogether makes the commits of steps of several runs at once, each after so many entries.
func commitTogether(m *measuring, s durable.Store, leases []durable.Lease, step []durable.Commit, steps int, after int64) {
	var group sync.WaitGroup
	for _, l := range leases {
		group.Go(func() {
			seq := after
			for range steps {
				for _, c := range step {
					c.Entries = append([]durable.Entry(nil), c.Entries...)
					for i := range c.Entries {
						seq++
						c.Entries[i].Seq = seq
					}
					if err := s.Commit(m.Context(), l, c); err != nil {
						m.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// sameRows returns the statements that write a commit of several runs.
func sameRows(bare bareSQL, nums []int64, c durable.Commit, after int64) (all []statement) {
	now := bare.at(time.Now())
	update := `UPDATE runs SET entries = $2, steps = $3, updated = $4 WHERE num = $1`
	for _, num := range nums {
		for i, e := range c.Entries {
			all = append(all, statement{query: insertEntry, args: []any{num, after + int64(i) + 1, string(e.Kind), e.Key, bare.at(e.At), e.Data}})
		}
		all = append(all, statement{query: update, args: []any{num, after + int64(len(c.Entries)), c.Update.Steps, now}})
	}
	return all
}
