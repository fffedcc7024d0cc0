package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// side is one of several ways to do the same work.
type side struct {
	name string
	do   func() (took time.Duration)
}

// compared holds the average time of each side, round by round.
type compared map[string][]time.Duration

// compare measures the sides in rounds, a number of times in each, in turn and in changing order. A round before them warms up.
func compare(rounds, times int, sides ...side) compared {
	c := compared{}
	for round := range rounds + 1 {
		sum := map[string]time.Duration{}
		for i := range times {
			for j := range sides {
				s := sides[(i+j+round)%len(sides)]
				sum[s.name] += s.do()
			}
		}
		for name, took := range sum {
			if round > 0 {
				c[name] = append(c[name], took/time.Duration(times))
			}
		}
	}
	return c
}

// ratio returns the median of the ratios of two sides in a round.
func (c compared) ratio(above, below string) float64 {
	ratios := make([]float64, len(c[above]))
	for i := range ratios {
		ratios[i] = float64(c[above][i]) / float64(c[below][i])
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func (c compared) median(name string) time.Duration { return quantile(c[name], 50) }

// quantile returns the time that so many of a hundred do not exceed.
func quantile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// timed returns how long a function takes.
func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// milliseconds prints a time.
func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return thousands(int(ms+0.5)) + " ms"
}

func percent(ratio float64) string { return fmt.Sprintf("%.0f %%", 100*ratio) }

func times(ratio float64) string { return fmt.Sprintf("%.1f ×", ratio) }

// perSecond returns how many things a second there are if so many take a time.
func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func thousands(n int) string {
	digits := fmt.Sprint(n)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}
