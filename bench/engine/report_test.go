package engine_test

import (
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

// row is a result of a figure on a store.
type row struct {
	what, store, goal, result string
	reached                   bool
}

func newReport(t *testing.T, n sizes) *report {
	t.Helper()
	return &report{began: time.Now(), load: readLoad(), sizes: n}
}

// row adds a result to the table.
func (m *measuring) row(what, goal string, reached bool, result string, args ...any) {
	r := row{what: what, store: m.backend.name, goal: goal, result: fmt.Sprintf(result, args...), reached: reached}
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

// columns lists the stores that have a column of the table. Results of other settings have rows of their own.
var columns = []string{"SQLite, full sync", "PostgreSQL"}

// table returns a row for each figure, with a column for each store.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| figure | goal | %s |\n| --- | --- | --- | --- |\n", strings.Join(columns, " | "))
	for _, what := range r.figures {
		var goals []string
		cells := make([]string, len(columns))
		var others []row
		for _, one := range r.rows {
			column := slices.Index(columns, one.store)
			switch {
			case one.what != what:
			case column < 0:
				others = append(others, one)
			default:
				cells[column] = one.cell()
				if !slices.Contains(goals, one.goal) {
					goals = append(goals, one.goal)
				}
			}
		}
		if len(goals) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", what, strings.Join(goals, "; "), strings.Join(cells, " | "))
		}
		for _, one := range others {
			fmt.Fprintf(&b, "| %s, %s | %s | %s | |\n", what, one.store, one.goal, one.cell())
		}
	}
	return b.String()
}

// cell returns the result, and says so if the goal was not reached.
func (r row) cell() string {
	if r.reached {
		return r.result
	}
	return "**missed**: " + r.result
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
