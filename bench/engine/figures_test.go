package engine_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/parts"
)

var (
	full  = flag.Bool("full", false, "measure at full size")
	write = flag.Bool("write", false, "write results.txt and the table in ../README.md")
)

// sizes is how much is measured.
type sizes struct {
	rounds   int // of everything that is compared
	lives    int // of each side in a round
	steps    int // of a run
	together int // concurrent runs

	waiting int // runs
	parked  int // of those, the runs that an agent has parked
	answers int

	workers int
	jobs    int
	pace    time.Duration // from job to job, so that the workers are idle again

	ready  int // runs
	queues int // of those, when there are many
	claims int // of each worker

	watchFor time.Duration
	rates    []rate

	listed int // runs
	looks  int // for each filter
	shown  int // runs behind the control room

	passRounds int // of the runs of a coordinator
	passed     int // runs in a round

	iterations int // of a session
	gates      int // sessions that wait
	history    int // events of a session
	stages     int // of a pipeline
}

// rate is a number of events a second, for a number of watchers.
type rate struct{ events, watchers int }

var (
	quickSizes = sizes{
		rounds: 1, lives: 2, steps: 5, together: 8,
		waiting: 1000, parked: 5, answers: 10,
		workers: 50, jobs: 5, pace: 20 * time.Millisecond,
		ready: 2000, queues: 50, claims: 5,
		watchFor: 300 * time.Millisecond, rates: []rate{{1000, 10}, {5000, 2}},
		listed: 3000, looks: 2, shown: 2000,
		passRounds: 1, passed: 20,
		iterations: 5, gates: 10, history: 3000, stages: 20,
	}
	fullSizes = sizes{
		rounds: 15, lives: 20, steps: 50, together: 64,
		waiting: 100_000, parked: 200, answers: 300,
		workers: 1000, jobs: 200, pace: 200 * time.Millisecond,
		ready: 1_000_000, queues: 1000, claims: 500,
		watchFor: 10 * time.Second, rates: []rate{{1000, 100}, {10_000, 10}},
		listed: 1_000_000, looks: 30, shown: 100_000,
		passRounds: 5, passed: 500,
		iterations: 50, gates: 1000, history: 1_000_000, stages: 500,
	}
)

// TestFigures measures all figures on all stores.
func TestFigures(t *testing.T) {
	n := quickSizes
	if *full {
		n = fullSizes
	}
	r := newReport(t, n)
	measure := func(b backend, figures ...figure) {
		for _, f := range figures {
			t.Run(b.key+"/"+f.name, func(t *testing.T) {
				began := time.Now()
				f.measure(&measuring{T: t, sizes: n, backend: b, report: r})
				t.Logf("took %s", time.Since(began).Round(time.Millisecond))
			})
		}
	}
	all := []figure{
		{"life", measureLife}, {"step", measureStep}, {"together", measureTogether}, {"waiting", measureWaiting}, {"workers", measureWorkers},
		{"backlog", measureBacklog},
		{"events", measureEvents}, {"lists", measureLists}, {"pipeline", measurePipeline}, {"gates", measureGates}, {"rebuild", measureRebuild},
		{"coordinator-runs", measureRuns}, {"coordinator-claims", measureClaims}, {"coordinator-events", measureStreams}, {"coordinator-lists", measureAPILists},
		{"control-room", measureRoom},
	}
	measure(sqliteFull, all...)
	measure(sqliteNormal, all[0], all[1], figure{"graph", measureGraph})
	measure(sqliteEncrypted, all[1])
	settings := []string{"fsync=off"}
	if *full {
		settings = []string{"fsync=on", "synchronous_commit=on", "max_wal_size=4GB"} // without checkpoints while the lists are filled
	}
	server := parts.NewPostgres(t, settings...)
	measure(postgresOn(server), all...)
	t.Log("\n" + r.table())
	if *write && !t.Failed() {
		require.NoError(t, r.write())
	}
}

// figure is something to measure on a store.
type figure struct {
	name    string
	measure func(m *measuring)
}

// measuring is one figure on one store, under way.
type measuring struct {
	*testing.T

	sizes

	backend backend
	report  *report
}
