package engine_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// measureBacklog measures claims of single runs by eight workers while many runs are ready, in one queue and in many.
// PostgreSQL's statistics are absent, from an empty table, or fresh. Autovacuum is off unless they are fresh.
func measureBacklog(m *measuring) {
	statistics := []string{"fresh"}
	if m.backend.key == "postgres" {
		statistics = []string{"absent", "stale", "fresh"}
	}
	for _, queues := range []int{1, m.queues} {
		for _, s := range statistics {
			m.backlog(queues, s)
		}
	}
}

func (m *measuring) backlog(queues int, statistics string) {
	m.Helper()
	p := m.backend.open(m.T)
	if m.backend.key == "postgres" && statistics != "fresh" {
		require.NoError(m, p.bare.transact(m.Context(), statement{query: `ALTER TABLE runs SET (autovacuum_enabled = off)`}))
	}
	jobs, keys := make([]durable.Job, queues), make([]durable.Key, queues)
	for i := range jobs {
		jobs[i] = durable.Job{ID: agent.RunID(fmt.Sprint("first ", i)), Name: fmt.Sprint("agent ", i), Kind: durable.KindAgent}
		keys[i] = jobs[i].Needs().Key()
	}
	claim := func(want int) {
		runs, err := p.Claim(m.Context(), "one", time.Hour, 1, keys...)
		if assert.NoError(m, err) {
			assert.Len(m, runs, want)
		}
	}
	claim(0)
	if statistics == "stale" {
		p.bare.tidy(m.T)
		claim(0)
	}
	_, err := p.Submit(m.Context(), jobs...)
	require.NoError(m, err)
	copyRun(m.T, p.bare, "first 0", m.ready, map[string]string{
		"queue": fmt.Sprintf(`(SELECT min(id) FROM queues) + x.i %% %d`, queues), "ready": `{ago}`,
	})
	if statistics == "fresh" {
		p.bare.tidy(m.T)
	}
	const workers = 8
	claim(1)
	took := make([][]time.Duration, workers)
	whole := timed(func() {
		var group sync.WaitGroup
		defer group.Wait()
		for w := range took {
			group.Go(func() {
				for range m.claims {
					took[w] = append(took[w], timed(func() { claim(1) }))
				}
			})
		}
	})
	var all []time.Duration
	for _, some := range took {
		all = append(all, some...)
	}
	m.report.each(m, fmt.Sprintf("backlog-%d-%s", queues, statistics), all)
	rate, p99 := perSecond(len(all), whole), quantile(all, 99)
	reached := rate >= 500 && p99 <= 20*time.Millisecond
	if statistics != "fresh" && reached {
		return // results.txt has it
	}
	m.row(fmt.Sprintf("claims by %d workers, %s ready runs, queues: %s, statistics: %s", workers, thousands(m.ready), thousands(queues), statistics),
		"≥ 500 a second, p99 20 ms", reached,
		"**%s a second**, p50 %s, p99 %s", thousands(int(rate)), milliseconds(quantile(all, 50)), milliseconds(p99))
}
