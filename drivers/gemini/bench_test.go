package gemini_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/gemini"
)

// longRun returns a driver, and a transcript of at least n messages that it has sent once.
func longRun(t testing.TB, n int) (*gemini.Driver, agent.State) {
	t.Helper()
	d := (&answering{"application/json", []byte(service.Whole.Body)}).driver(t)
	s := agent.NewState(agent.UserText("go"))
	for i := 1; s.MessageCount() < n; i++ {
		c := agent.ToolCall{ID: fmt.Sprint("fc_", i), Name: "look", Arguments: `{"path":"/srv/data/file.txt","limit":200}`}
		s = s.With(agent.Assistant("Let me look at the next file.", c),
			answered(c, said("package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n")))
	}
	_, err := d.Next(context.Background(), s).Get()
	require.NoError(t, err)
	return d, s
}

// BenchmarkNext measures a step on a transcript of so many messages: what the driver
// does, without a network.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			d, s := longRun(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Next(context.Background(), s).Get(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What was sent once is not written again: a step allocates as often on a long
// transcript as on a short one.
func TestAStepWritesOnlyWhatIsNew(t *testing.T) {
	allocations := func(n int) float64 {
		d, s := longRun(t, n)
		return testing.AllocsPerRun(10, func() { d.Next(context.Background(), s) })
	}
	short, long := allocations(10), allocations(2000)
	assert.Less(t, long-short, 100.0, "allocations: %v with 10 messages, %v with 2000", short, long)
}
