package table

import (
	"fmt"
	"runtime"
	"strings"
)

// Benchstat returns every measurement on a line in the format of Go's benchmarks, so that benchstat can compare
// contenders, or two sets of results.
func (f Found) Benchstat() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/grapnel-go/grapnel/bench\n", runtime.GOOS, runtime.GOARCH)
	name := strings.NewReplacer(", ", "-", " ", "-").Replace
	for _, c := range f.plan.Contenders {
		for _, j := range jobs {
			for _, r := range f.rounds {
				s, ok := r[entry{c.Name, j}]
				if !ok {
					continue
				}
				fmt.Fprintf(&b, "BenchmarkContender/contender=%s/steps=%d/history=%d/pairs=%d/calls=%d 1 %.1f ns/step %.1f allocs/step %.0f B/step\n",
					name(c.Name), j.Steps, j.History, j.Pairs, max(1, j.Calls), s.Nanoseconds, s.Allocations, s.Bytes)
			}
		}
	}
	return b.String()
}
