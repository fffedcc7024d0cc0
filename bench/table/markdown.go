package table

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

const (
	begin = "<!-- table: begin (written by make table) -->"
	end   = "<!-- table: end -->"
)

// Here describes the machine and the method of the measurements.
func (p Plan) Here() string {
	return fmt.Sprintf("%s, %s/%s, %d cores, medians of %d rounds in random order; a job that takes a contender long, of fewer.",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), p.Rounds)
}

// Markdown returns the tables, below a line that says where they were measured.
func (f Found) Markdown(where string) string {
	m := markdown{Found: f, first: f.plan.Contenders[0].Name}
	fmt.Fprintf(&m.text, "%s\n", where)
	m.versions()
	m.steps()
	m.scale()
	m.traced()
	return m.text.String()
}

type markdown struct {
	Found

	first string
	text  strings.Builder
}

// versions lists the versions with which the programs were built.
func (m *markdown) versions() {
	var all []string
	for _, c := range m.plan.Contenders {
		if v := c.Module + " " + c.Version; c.Module != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(&m.text, "Built with %s.\n", strings.Join(all, ", "))
	}
}

func (m *markdown) steps() {
	m.head("A step", "One model turn and one tool call, in a run of 100 steps. *÷* is beside "+m.first+" in the same round; *growth* is "+
		"a step's time in runs of 1,000 steps over that in runs of 100; *a pair* is what each of ten hook pairs adds.",
		"contender", "a step", "÷", "growth", "allocations", "÷ with one pair", "a pair")
	for _, c := range m.contenders(false) {
		cells := []string{c.Name, nanoseconds(m.time(c.Name, hundred)), times(m.ratio(entry{c.Name, hundred}, entry{m.first, hundred})),
			times(m.ratio(entry{c.Name, thousand}, entry{c.Name, hundred})),
			fmt.Sprintf("%.0f", m.allocations(c.Name, hundred))}
		if c.NoHooks != "" {
			m.line(append(cells, c.NoHooks, "")...)
			continue
		}
		m.line(append(cells, times(m.ratio(entry{c.Name, onePair}, entry{m.first, onePair})),
			nanoseconds(max(0, m.more(entry{c.Name, tenPairs}, entry{c.Name, hundred}))/10))...)
	}
}

func (m *markdown) scale() {
	m.head("Many calls, messages and runs", fmt.Sprintf("A step of eight calls, with how many run at once; a step of 20 that follow on 10,000 messages, with "+
		"its growth from 10 messages; the heap and stacks, and the goroutines, of each of %s runs that wait for their first model call.",
		thousands(m.plan.Blocked)),
		"contender", "eight calls", "÷", "at once", "results", "10,000 messages", "÷", "growth", "waiting", "goroutines")
	for _, c := range m.contenders(false) {
		atOnce, results := "all", "in order"
		if c.AtOnce > 0 {
			atOnce = strconv.Itoa(c.AtOnce)
		}
		if c.Unordered {
			results = "as they come"
		}
		m.line(c.Name, nanoseconds(m.time(c.Name, eight)), times(m.ratio(entry{c.Name, eight}, entry{m.first, eight})), atOnce, results,
			nanoseconds(m.time(c.Name, after(10_000))), times(m.ratio(entry{c.Name, after(10_000)}, entry{m.first, after(10_000)})),
			times(m.ratio(entry{c.Name, after(10_000)}, entry{c.Name, after(10)})),
			size(m.blocked[c.Name].Bytes), strconv.FormatFloat(m.blocked[c.Name].Goroutines, 'f', 0, 64))
	}
}

func (m *markdown) traced() {
	traced := m.contenders(true)
	if len(traced) == 0 {
		return
	}
	m.head("Telemetry", "A step at 100 steps, with OpenTelemetry. *More* is beside the same contender without it; "+
		"*÷ by hand* is beside "+m.first+" with the same two spans a step, written by hand.",
		"contender", "a step", "more", "÷ by hand", "allocations", "more")
	for _, c := range traced {
		this, without := entry{c.Name, hundred}, entry{c.Telemetry.Without, hundred}
		byHand := ""
		if c.Telemetry.ByHand != "" {
			byHand = times(m.ratio(this, entry{c.Telemetry.ByHand, hundred}))
		}
		m.line(c.Name, nanoseconds(m.time(c.Name, hundred)), nanoseconds(m.more(this, without)), byHand,
			fmt.Sprintf("%.0f", m.allocations(c.Name, hundred)),
			fmt.Sprintf("%.0f", m.allocations(c.Name, hundred)-m.allocations(c.Telemetry.Without, hundred)))
	}
}

// contenders returns the contenders that are measured on everything, or those that are measured on telemetry.
func (m *markdown) contenders(traced bool) []Contender {
	var some []Contender
	for _, c := range m.plan.Contenders {
		if (c.Telemetry != nil) == traced {
			some = append(some, c)
		}
	}
	return some
}

func (m *markdown) head(title, text string, cells ...string) {
	fmt.Fprintf(&m.text, "\n### %s\n\n%s\n\n", title, text)
	m.line(cells...)
	m.line(append([]string{"---"}, strings.Fields(strings.Repeat("---: ", len(cells)-1))...)...)
}

func (m *markdown) line(cells ...string) {
	m.text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// nanoseconds prints a time in the unit that leaves two or three digits.
func nanoseconds(ns float64) string {
	switch {
	case ns < 0:
		return "−" + nanoseconds(-ns)
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

// size prints a number of bytes.
func size(bytes float64) string {
	switch {
	case bytes < 1024:
		return strconv.FormatFloat(bytes, 'f', 0, 64) + " B"
	case bytes < 1<<20:
		return strconv.FormatFloat(bytes/1024, 'f', 1, 64) + " KiB"
	default:
		return strconv.FormatFloat(bytes/(1<<20), 'f', 1, 64) + " MiB"
	}
}

// times prints a ratio with its significant digits.
func times(ratio float64) string {
	if ratio < 10 {
		return strconv.FormatFloat(ratio, 'f', 2, 64) + " ×"
	}
	return thousands(int(ratio+0.5)) + " ×"
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// WriteBetweenMarkers replaces the text between the markers of the file and keeps the rest of the file.
func WriteBetweenMarkers(file, text string) error {
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
