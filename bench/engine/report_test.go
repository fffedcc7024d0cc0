package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	resultsFile = "results.txt"
	readme      = "../README.md"
	begin       = "<!-- engine: begin (written by make engine) -->"
	end         = "<!-- engine: end -->"
)

// report collects what was measured.
type report struct {
	began   time.Time
	load    string
	sizes   sizes
	figures []string // in the order in which they are first reported
	rows    []row
	lines   []string // of results.txt
	version []string
}

// row is a row of the table.
type row struct {
	what, store, goal, result, load string
	reached                         bool
}

func newReport(t *testing.T, n sizes) *report {
	t.Helper()
	return &report{began: time.Now(), load: readLoad(), sizes: n}
}

// row adds a row to the table.
func (m *measuring) row(what, goal string, reached bool, result string, args ...any) {
	r := row{what: what, store: m.backend.name, goal: goal, result: fmt.Sprintf(result, args...), reached: reached, load: m.load}
	m.report.rows = append(m.report.rows, r)
	if !slices.Contains(m.report.figures, what) {
		m.report.figures = append(m.report.figures, what)
	}
	m.Logf("%s | %s | %s", r.what, r.goal, r.result)
}

// rounds adds what was compared to the results.
func (r *report) rounds(m *measuring, figure string, c compared) {
	m.Helper()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		for _, took := range c[name] {
			r.line(m, figure+"/side="+name, "%d ns/op", took.Nanoseconds())
		}
	}
}

// each adds times that were measured one by one to the results.
func (r *report) each(m *measuring, figure string, all []time.Duration) {
	m.Helper()
	r.line(m, figure, "%d ns/p50 %d ns/p90 %d ns/p99 %d ns/max", quantile(all, 50), quantile(all, 90), quantile(all, 99), slices.Max(all))
}

// line adds a line to the results, in the form of a benchmark of Go.
func (r *report) line(m *measuring, figure, values string, args ...any) {
	m.Helper()
	r.lines = append(r.lines, fmt.Sprintf("BenchmarkEngine/figure=%s/store=%s 1 ", figure, m.backend.key)+fmt.Sprintf(values, args...))
}

// note adds the version of a database.
func (r *report) note(version string) {
	if !slices.Contains(r.version, version) {
		r.version = append(r.version, version)
	}
}

// where describes the machine and the time.
func (r *report) where() string {
	text := fmt.Sprintf("%s, %s/%s, %d cores%s, %s. %s, %s; load average %s before, %s after.",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), strings.Join(r.version, ", "),
		r.began.UTC().Format("2006-01-02 15:04 UTC"), time.Since(r.began).Round(time.Second), r.load, readLoad())
	if load, err := strconv.ParseFloat(r.load, 64); err == nil && load >= float64(runtime.NumCPU()) {
		text += " Other work kept the cores busy: rely on ratios only."
	}
	return text
}

// table returns the rows, those of a figure together.
func (r *report) table() string {
	rows := slices.Clone(r.rows)
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Compare(slices.Index(r.figures, a.what), slices.Index(r.figures, b.what))
	})
	var b strings.Builder
	b.WriteString("| figure | store | goal | result | reached | load |\n| --- | --- | ---: | --- | --- | ---: |\n")
	for _, r := range rows {
		reached := "yes"
		if !r.reached {
			reached = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.what, r.store, r.goal, r.result, reached, r.load)
	}
	return b.String()
}

// write writes the results and the table.
func (r *report) write() error {
	head := fmt.Sprintf("# %s\ngoos: %s\ngoarch: %s\npkg: github.com/grapnel-go/grapnel/bench/engine\n", r.where(), runtime.GOOS, runtime.GOARCH)
	if err := os.WriteFile(resultsFile, []byte(head+strings.Join(r.lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	content, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	above, rest, found := strings.Cut(string(content), begin)
	_, below, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s lacks a line %q or, after it, a line %q", readme, begin, end)
	}
	return os.WriteFile(readme, []byte(above+begin+"\n\n"+r.where()+"\n\n"+r.table()+"\n"+end+below), 0o644)
}

// readLoad returns the load average of the last minute, where the system has it.
func readLoad() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	load, _, _ := strings.Cut(string(data), " ")
	return load
}

// processor returns the model of the processor, where the system has it.
func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return " of " + strings.TrimSpace(model)
		}
	}
	return ""
}
