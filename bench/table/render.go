package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/bench"
)

const (
	begin = "<!-- table: begin (written by make table) -->"
	end   = "<!-- table: end -->"
)

// here says where and how the numbers came about.
func here(rounds int) string {
	return fmt.Sprintf("%s, %s/%s, %d cores, medians of %d rounds in random order.",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), rounds)
}

func render(m measured, where string) string {
	var b strings.Builder
	first := m.names[0]
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head := func(title, text string, cells ...string) {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", title, text)
		line(cells...)
		line(append([]string{"---"}, slicesOf("---:", len(cells)-1)...)...)
	}

	fmt.Fprintf(&b, "%s\n\n", where)

	head("A step", "One model turn and one tool call. *÷ "+first+"* at 100 steps, against "+first+
		" in the same round; *growth* is a step's time in runs of 1,000 steps over that in runs of 100; "+
		"*blocked* is the memory that a run holds while it waits for its model.",
		"contender", "10 steps", "100 steps", "1,000 steps", "÷ "+first, "allocations", "growth", "blocked")
	for _, name := range m.names {
		hundred, thousand := job{steps: 100}, job{steps: 1000}
		line(name, nanoseconds(m.time(name, job{steps: 10})),
			nanoseconds(m.time(name, hundred)), nanoseconds(m.time(name, thousand)),
			times(m.ratio(entry{name, hundred}, entry{first, hundred})),
			fmt.Sprintf("%.0f", m.allocations(name, hundred)),
			times(m.ratio(entry{name, thousand}, entry{name, hundred})),
			fmt.Sprintf("%.1f KiB", m.blocked[name]/1024))
	}

	b.WriteByte('\n')
	head("Hooks", "A step with pairs of hooks around its tool call, 100 steps; *a pair* is what each of ten adds.",
		"contender", "no pair", "1 pair", "10 pairs", "a pair", "allocations a pair")
	for _, name := range m.names {
		none, ten := job{steps: 100}, job{steps: 100, pairs: 10}
		line(name, nanoseconds(m.time(name, none)), nanoseconds(m.time(name, job{steps: 100, pairs: 1})),
			nanoseconds(m.time(name, ten)),
			nanoseconds(max(0, m.median(func(r map[entry]bench.Sample) float64 {
				return (r[entry{name, ten}].Nanoseconds - r[entry{name, none}].Nanoseconds) / 10
			}))),
			fmt.Sprintf("%.1f", max(0, m.allocations(name, ten)-m.allocations(name, none))/10))
	}

	b.WriteByte('\n')
	head("A long transcript", "A step of 100 that follow on a transcript of so many messages; *growth* from 10 to 10,000.",
		"contender", "10 messages", "100", "1,000", "10,000", "÷ "+first+" at 10,000", "growth")
	for _, name := range m.names {
		after := func(messages int) job { return job{steps: 100, history: messages} }
		line(name, nanoseconds(m.time(name, after(10))), nanoseconds(m.time(name, after(100))),
			nanoseconds(m.time(name, after(1000))), nanoseconds(m.time(name, after(10_000))),
			times(m.ratio(entry{name, after(10_000)}, entry{first, after(10_000)})),
			times(m.ratio(entry{name, after(10_000)}, entry{name, after(10)})))
	}
	return b.String()
}

func slicesOf(s string, n int) []string { return strings.Fields(strings.Repeat(s+" ", n)) }

// nanoseconds prints a time in the unit that leaves two or three digits.
func nanoseconds(ns float64) string {
	switch {
	case ns < 1000:
		return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
	case ns < 10_000:
		return strconv.FormatFloat(ns/1000, 'f', 2, 64) + " µs"
	case ns < 1_000_000:
		return strconv.FormatFloat(ns/1000, 'f', 1, 64) + " µs"
	default:
		return strconv.FormatFloat(ns/1e6, 'f', 2, 64) + " ms"
	}
}

// times prints a ratio with as many digits as mean something.
func times(ratio float64) string {
	if ratio < 10 {
		return strconv.FormatFloat(ratio, 'f', 2, 64) + " ×"
	}
	return strconv.FormatFloat(ratio, 'f', 0, 64) + " ×"
}

// writeBetweenMarkers puts the text between the markers of the file and leaves
// the rest of it as it was.
func writeBetweenMarkers(file, text string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	above, rest, found := strings.Cut(string(content), begin)
	_, below, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("write table: %s lacks a line %q or, after it, a line %q", file, begin, end)
	}
	updated := above + begin + "\n\n" + text + "\n" + end + below
	if err := os.WriteFile(file, []byte(updated), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
