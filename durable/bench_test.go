package durable_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/toolexec"
)

// benchStores are the stores to measure, each with a write to the disk for each commit.
var benchStores = []struct {
	name string
	open func(b *testing.B) (durable.Store, error)
}{
	{"off", func(*testing.B) (durable.Store, error) { return nil, nil }},
	{"sqlite", func(b *testing.B) (durable.Store, error) {
		return sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), sqlite.Options{})
	}},
	{"sqlite-encrypted", func(b *testing.B) (durable.Store, error) {
		s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), sqlite.Options{})
		if err != nil {
			return nil, err
		}
		return durable.Encrypt(s, durable.Encryption{Key: keyA})
	}},
	{"postgres", func(b *testing.B) (durable.Store, error) {
		return postgres.Open(b.Context(), parts.NewPostgres(b).Database(b), postgres.Options{}) // with fsync
	}},
}

// BenchmarkStep measures a step with one tool call in a run of 100, without a store and with
// each, side by side: the mean, and the slowest of a hundred.
func BenchmarkStep(b *testing.B) {
	for _, s := range benchStores {
		b.Run("store="+s.name, func(b *testing.B) {
			store, err := s.open(b)
			require.NoError(b, err)
			var kept []capability.Capability
			if store != nil {
				defer store.Close()
				kept = []capability.Capability{capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})}}
			}
			const steps = 100
			took := make([]time.Duration, 0, b.N)
			a := benched(b, steps, &took, kept)
			b.ResetTimer()
			for left := b.N; left > 0; left -= steps {
				_, err := a.Run(b.Context(), agent.NewState(), agent.UserText("go")).Get()
				require.NoError(b, err)
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs/step")
		})
	}
}

// BenchmarkConcurrentRuns measures the steps a second of one run, and of 64 runs at once on one
// store: runs of 20 steps with one tool call each, one run after the other.
func BenchmarkConcurrentRuns(b *testing.B) {
	for _, s := range benchStores[1:] {
		for _, runs := range []int{1, 64} {
			b.Run(fmt.Sprintf("store=%s/runs=%d", s.name, runs), func(b *testing.B) {
				store, err := s.open(b)
				require.NoError(b, err)
				defer store.Close()
				kept := []capability.Capability{capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})}}
				took := make([][]time.Duration, runs)
				b.ResetTimer()
				var group sync.WaitGroup
				for i := range took {
					a := benched(b, 20, &took[i], kept)
					group.Go(func() {
						for len(took[i])*runs < b.N {
							if _, err := a.Run(b.Context(), agent.NewState(), agent.UserText("go")).Get(); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(len(slices.Concat(took...)))/b.Elapsed().Seconds(), "steps/s")
			})
		}
	}
}

func benched(b *testing.B, steps int, took *[]time.Duration, more []capability.Capability) *agent.Agent {
	add := toolexec.Func("add", "Adds.", func(_ context.Context, in struct{ N int }) (string, error) { return fmt.Sprint(in.N + 1), nil })
	var last time.Time
	driver := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		now := time.Now()
		if n := s.RunStepCount(); n > 0 {
			*took = append(*took, now.Sub(last))
			if n == steps {
				return agent.Step{Message: agent.Assistant("Done.")}, nil
			}
		}
		last = now
		return agent.Step{Message: agent.Assistant("", agent.ToolCall{ID: "1", Name: "add", Arguments: `{"N":41}`})}, nil
	})
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(add)).With(more...).Build().Get()
	require.NoError(b, err)
	return a
}
