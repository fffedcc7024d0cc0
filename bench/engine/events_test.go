package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
)

// eventBatch is how often the writer commits the events that have happened since.
const eventBatch = 50 * time.Millisecond

// measureEvents measures how long after an event each of several watchers of the run receives it. The events happen evenly,
// whether the writer keeps up or not.
func measureEvents(m *measuring) {
	for _, rate := range m.rates {
		p := m.backend.open(m.T)
		l, err := p.Begin(m.Context(), durable.Job{}, "one", time.Hour)
		require.NoError(m, err)
		total := int64(m.watchFor.Seconds() * float64(rate.events))
		lags := make([][]time.Duration, rate.watchers)
		wrong := make([]int64, rate.watchers) // events that are not the next one
		var group sync.WaitGroup
		for i := range lags {
			group.Go(func() {
				last := int64(0)
				for e, err := range durable.Watch(m.Context(), p.Store, l.Run, 0) {
					if !assert.NoError(m, err) {
						return
					}
					lags[i] = append(lags[i], time.Since(e.At))
					if last++; e.Seq != last || string(e.Data[:8]) != fmt.Sprintf("%08d", e.Seq) {
						wrong[i]++
					}
				}
				wrong[i] += total - last
			})
		}
		writeEvents(m, p.Store, l, rate.events, total)
		group.Wait()
		for _, n := range wrong {
			require.Zero(m, n, "events that a watcher lost or received out of order")
		}
		all := slices.Concat(lags...)
		m.report.each(m, fmt.Sprintf("events/rate=%d/watchers=%d", rate.events, rate.watchers), all)
		m.row(fmt.Sprintf("%s events a second to %d watchers", thousands(rate.events), rate.watchers), "p99 250 ms",
			quantile(all, 99) <= 250*time.Millisecond, "none lost; p50 %s, **p99 %s**", milliseconds(quantile(all, 50)), milliseconds(quantile(all, 99)))
	}
}

// writeEvents writes events at a rate, in a commit for each batch, and ends the run.
func writeEvents(m *measuring, s durable.Store, l durable.Lease, rate int, total int64) {
	m.Helper()
	batch := time.NewTicker(eventBatch)
	defer batch.Stop()
	began, seq, data := time.Now(), int64(0), bytes.Repeat([]byte("x"), 100)
	for seq < total {
		<-batch.C
		c := durable.Commit{}
		for until := min(int64(time.Since(began).Seconds()*float64(rate)), total); seq < until; {
			at := began.Add(time.Duration(seq) * time.Second / time.Duration(rate))
			seq++
			c.Events = append(c.Events, durable.Event{At: at, Name: "tick", Data: append(fmt.Appendf(nil, "%08d", seq), data...)})
		}
		require.NoError(m, s.Commit(m.Context(), l, c))
	}
	require.NoError(m, s.Commit(m.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusCompleted}}))
}
