package table

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/bench/bare"
	"github.com/grapnel-go/grapnel/bench/worker"
)

// here measures the bare loop in this process, under another name.
func here(about worker.About) Contender {
	c := bare.Contender()
	c.Name = about.Name
	return Contender{
		About: about,
		Measure: func(ctx context.Context, job bench.Job, atLeast time.Duration) (bench.Sample, error) {
			return bench.Measure(ctx, c, job, atLeast)
		},
		Blocked: func(ctx context.Context, job bench.Job, runs int) (bench.Held, error) {
			return bench.Blocked(ctx, c, job, runs)
		},
	}
}

func everyKind() []Contender {
	return []Contender{
		here(worker.About{Name: "bare"}),
		here(worker.About{Name: "grapnel"}),
		here(worker.About{Name: "no hooks", Module: "example.com/m", Version: "v1.2.3", NoHooks: "none of its own", AtOnce: 1, Unordered: true}),
		here(worker.About{Name: "by hand", Telemetry: &bench.Telemetry{Without: "bare"}}),
		here(worker.About{Name: "traced", Telemetry: &bench.Telemetry{Without: "grapnel", ByHand: "by hand"}}),
	}
}

func TestARoundFillsEveryCell(t *testing.T) {
	plan := Plan{Contenders: everyKind(), Rounds: 2, Blocked: 500, Patience: time.Hour, Progress: io.Discard}
	found, err := plan.Measure(t.Context())
	require.NoError(t, err)

	text := found.Markdown(plan.Here())
	assert.Contains(t, text, "medians of 2 rounds")
	assert.NotContains(t, text, "NaN")
	assert.NotContains(t, text, "Inf")
	assert.NotContains(t, text, "| 0 ns | 0 ns |")
	for name, rows := range map[string]int{"bare": 2, "grapnel": 2, "no hooks": 2, "by hand": 1, "traced": 1} {
		assert.Equal(t, rows, strings.Count(text, "\n| "+name+" |"), "rows of %s:\n%s", name, text)
	}
	assert.Contains(t, text, "\nBuilt with example.com/m v1.2.3.\n")
	assert.Contains(t, text, "| none of its own |")
	assert.Contains(t, text, "| 1 | as they come |")

	lines := strings.Split(strings.TrimSpace(found.Benchstat()), "\n")
	// Two rounds of: ten jobs for two, eight without hooks for one, one job for two.
	assert.Len(t, lines, 3+2*(2*10+8+2))
	for _, line := range lines[3:] {
		assert.Regexp(t, `^BenchmarkContender/contender=\S+/steps=\d+/history=\d+/pairs=\d+/calls=[18] 1 [\d.]+ ns/step [\d.]+ allocs/step \d+ B/step$`, line)
	}

	chart := found.Chart()
	require.NoError(t, xml.Unmarshal([]byte(chart), new(any)), chart)
	assert.Equal(t, 3, strings.Count(chart, "<rect"), "one bar each, none for telemetry")
	assert.Contains(t, chart, "prefers-color-scheme: dark")
}

func TestWhoIsSlowTakesPartInFewerRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[entry]int{}
		takes := func(name string, long time.Duration) Contender {
			c := here(worker.About{Name: name})
			c.Measure = func(_ context.Context, j bench.Job, _ time.Duration) (bench.Sample, error) {
				asked[entry{name, job{j.Steps, j.History, j.HookPairs, j.Calls}}]++
				if j.Steps == 1000 {
					time.Sleep(long)
				}
				return bench.Sample{Nanoseconds: float64(1 + long)}, nil
			}
			return c
		}
		plan := Plan{
			Contenders: []Contender{takes("quick", 0), takes("slow", 2*time.Second), takes("slower", time.Minute)},
			Rounds:     3, Blocked: 1, Patience: 5 * time.Second, Progress: io.Discard,
		}
		found, err := plan.Measure(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3, asked[entry{"quick", thousand}])
		assert.Equal(t, 2, asked[entry{"slow", thousand}], "a third time would be too much")
		assert.Equal(t, 1, asked[entry{"slower", thousand}], "once in any case")
		assert.Equal(t, 3, asked[entry{"slower", hundred}], "which is quick enough")
		assert.Positive(t, found.ratio(entry{"slower", thousand}, entry{"quick", thousand}), "of the round that has both")
	})
}

func TestAFailureEndsThePlan(t *testing.T) {
	broken := here(worker.About{Name: "broken"})
	broken.Measure = func(context.Context, bench.Job, time.Duration) (bench.Sample, error) {
		return bench.Sample{}, errors.New("it broke")
	}
	plan := Plan{Contenders: []Contender{broken}, Rounds: 1, Blocked: 1, Progress: io.Discard}
	_, err := plan.Measure(t.Context())
	require.ErrorContains(t, err, "it broke")
	plan.Rounds = 0
	_, err = plan.Measure(t.Context())
	require.ErrorContains(t, err, "0 rounds of 1 contenders: want at least one of each")
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// Three rounds, the machine twice and ten times as slow in the later ones.
	var f Found
	for _, slow := range []float64{1, 2, 10} {
		f.rounds = append(f.rounds, map[entry]bench.Sample{
			{"bare", hundred}:  {Nanoseconds: 100 * slow, Allocations: 9},
			{"other", hundred}: {Nanoseconds: 300 * slow, Allocations: 20},
		})
	}
	assert.InDelta(t, 3, f.ratio(entry{"other", hundred}, entry{"bare", hundred}), 1e-9)
	assert.InDelta(t, 400, f.more(entry{"other", hundred}, entry{"bare", hundred}), 1e-9)
	assert.InDelta(t, 200, f.time("bare", hundred), 1e-9)
	assert.InDelta(t, 20, f.allocations("other", hundred), 1e-9)

	f.rounds = f.rounds[:2] // an even number: the mean of the two in the middle
	assert.InDelta(t, 150, f.time("bare", hundred), 1e-9)

	delete(f.rounds[1], entry{"other", hundred}) // only the first round has both
	assert.InDelta(t, 300, f.time("other", hundred), 1e-9)
	assert.InDelta(t, 200, f.more(entry{"other", hundred}, entry{"bare", hundred}), 1e-9)
	assert.Zero(t, f.time("nobody", hundred))
}

func TestNumbersArePrintedWithTheDigitsThatCount(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 ns", 12.4: "12 ns", 999: "999 ns", 1234: "1.23 µs", 45_678: "45.7 µs", 3_670_000: "3.67 ms", -1234: "−1.23 µs",
	} {
		assert.Equal(t, want, nanoseconds(ns))
	}
	for ratio, want := range map[float64]string{0.544: "0.54 ×", 1: "1.00 ×", 13.4: "13 ×", 3673: "3,673 ×", 1_002_003: "1,002,003 ×"} {
		assert.Equal(t, want, times(ratio))
	}
	for bytes, want := range map[float64]string{0: "0 B", 1023: "1023 B", 6656: "6.5 KiB", 3 << 20: "3.0 MiB"} {
		assert.Equal(t, want, size(bytes))
	}
	for decade, want := range map[float64]string{0: "1 ns", 2: "100 ns", 3: "1 µs", 6: "1 ms", 10: "10 s"} {
		assert.Equal(t, want, decadeText(decade))
	}
}

func TestAFileWithoutMarkersStaysAsItIs(t *testing.T) {
	for _, content := range []string{"", begin, end, end + begin} {
		file := filepath.Join(t.TempDir(), "README.md")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		require.ErrorContains(t, WriteBetweenMarkers(file, "table"), "write table: ")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, content, string(after))
	}
}
