package provenance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnel-go/grapnel/policy/internal/provenance"
)

// A step costs only its own size, however long the transcript is: each step reads an answer of about 1 kB and looks
// up three values. In the case "with strangers", every step also asks about strangers' text.
func BenchmarkStep(b *testing.B) {
	page := strings.Repeat("Some text of a page with an address ann@example.com and a date, 2024-05-01. ", 13)
	for _, n := range []int{10, 100, 1_000, 10_000} {
		for _, strangers := range []bool{false, true} {
			b.Run(fmt.Sprintf("messages=%d/strangers=%v", n, strangers), func(b *testing.B) {
				c := user("Pay Ann 20 francs to DE89 3704 0044 0532 0130 00")
				for i := range n / 2 {
					c = c.tool("get_page", fmt.Sprintf(`{"n": %d}`, i), fmt.Sprint(page, i))
				}
				run := provenance.NewTestRun(tracker(b))
				run.Of(c.state).Tainted("warm")
				next := c
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if i%max(50, n/2) == 0 { // restart, so that the length stays about the same
						b.StopTimer()
						next, run = c, provenance.NewTestRun(tracker(b))
						run.Of(c.state).Tainted("warm")
						b.StartTimer()
					}
					next = next.tool("get_page", fmt.Sprintf(`{"n": %d}`, i), page)
					trail := run.Of(next.state)
					trail.FromUser("DE89370400440532013000")
					trail.FromTrusted("bob@example.com")
					if strangers {
						trail.Tainted("carl@example.com")
					}
				}
			})
		}
	}
}

func BenchmarkAsk(b *testing.B) {
	c := user("Pay Ann 20 francs to DE89 3704 0044 0532 0130 00").tool("get_page", `{}`, strings.Repeat("some words ", 1000))
	run := provenance.NewTestRun(tracker(b)).Of(c.state)
	for name, ask := range map[string]func() bool{
		"FromUser":    func() bool { return run.FromUser("DE89370400440532013000") },
		"FromTrusted": func() bool { return run.FromTrusted("bob@example.com") },
		"Tainted":     func() bool { return run.Tainted("bob@example.com") },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}
