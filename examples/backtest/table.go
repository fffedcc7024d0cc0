package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// writeText writes the report for a person: as a table, or, on a terminal that is too narrow for it, as a list.
func (r report) writeText(out screen) error {
	s := screen{Writer: &strings.Builder{}, width: out.width, colour: out.colour}
	r.preface(s)
	if len(r.Rows) > 0 {
		r.scores(s)
		fmt.Fprintln(s)
		r.departures(s)
		fmt.Fprintln(s)
		legend(s)
		fmt.Fprintln(s)
	}
	r.afterword(s)
	_, err := io.WriteString(out, fmt.Sprint(s.Writer))
	return err
}

func (r report) preface(s screen) {
	if r.Sample {
		s.paragraph("", "No recordings were named: these few ship with the program.", "")
		fmt.Fprintln(s)
	}
	if r.Interrupted {
		s.paragraph(red, fmt.Sprintf("Interrupted after %s: the numbers are of what was played.", count(r.Runs, "run")), "")
		fmt.Fprintln(s)
	}
}

var columnNames = []string{"runs", "calls", "denied", "blocked", "broken", "twins", "left"}

func (s score) cells() []string {
	of := func(s share) string {
		if s.Of == 0 {
			return "–"
		}
		return fmt.Sprintf("%d/%d", s.Count, s.Of)
	}
	left := lo.Sum(slices.Collect(maps.Values(s.Left)))
	return []string{
		number(s.Runs), number(s.Calls), number(s.Denied), of(s.Blocked), of(s.Broken), of(s.Twins), number(left),
	}
}

// styles say at a glance what is good and what is not.
func (s score) styles() []string {
	styles := make([]string, len(columnNames))
	if s.Blocked.Of > 0 {
		styles[3] = lo.Ternary(s.Blocked.Count == s.Blocked.Of, green, red)
	}
	if s.Broken.Count > 0 {
		styles[4] = red
	}
	return styles
}

// suites is the rows in groups, the totals last.
func (r report) suites() [][]row {
	groups := lo.PartitionBy(r.Rows, func(r row) string { return r.Suite })
	if len(groups) > 1 {
		groups = append(groups, lo.Map(r.Totals, func(r row, _ int) row { r.Suite = "all"; return r }))
	}
	return groups
}

func (r report) scores(s screen) {
	names := lo.Map(r.Rows, func(r row, _ int) int { return columns(r.Policy) + 2 })
	widths := lo.Map(columnNames, func(name string, i int) int {
		cells := lo.Map(r.Totals, func(r row, _ int) int { return columns(r.cells()[i]) })
		return max(columns(name), slices.Max(cells))
	})
	first := slices.Max(names)
	if all := first + lo.Sum(widths) + 2*len(widths); s.width() > 0 && all > s.width() {
		r.list(s)
		return
	}
	line := func(name string, cells, styles []string) {
		fmt.Fprint(s, pad(name, first))
		for i, cell := range cells {
			fmt.Fprint(s, "  "+s.paint(styles[i], pad(cell, -widths[i])))
		}
		fmt.Fprintln(s)
	}
	line("", columnNames, lo.Map(columnNames, func(string, int) string { return bold }))
	for _, group := range r.suites() {
		fmt.Fprintln(s, s.paint(bold, group[0].Suite))
		for _, row := range group {
			line("  "+row.Policy, row.cells(), row.styles())
		}
	}
}

// list is the table for those who have no room for it.
func (r report) list(s screen) {
	for _, group := range r.suites() {
		for _, row := range group {
			cells, styles := row.cells(), row.styles()
			item := func(name string, _ int) string {
				i := slices.Index(columnNames, name)
				return s.paint(styles[i], name+" "+cells[i])
			}
			fmt.Fprintln(s, s.paint(bold, row.Suite+", "+row.Policy))
			fmt.Fprintln(s, "  "+strings.Join(lo.Map([]string{"runs", "calls", "denied", "left"}, item), ", "))
			fmt.Fprintln(s, "  "+strings.Join(lo.Map([]string{"blocked", "broken", "twins"}, item), ", "))
		}
	}
}

// departures says how runs first left their recordings, by policy.
func (r report) departures(s screen) {
	for _, row := range r.Totals {
		kinds := slices.SortedFunc(maps.Keys(row.Left), func(a, b replay.DepartureKind) int {
			return cmp.Or(row.Left[b]-row.Left[a], strings.Compare(string(a), string(b)))
		})
		said := lo.Map(kinds, func(k replay.DepartureKind, _ int) string {
			return number(row.Left[k]) + " " + strings.ReplaceAll(string(k), "_", " ")
		})
		if len(said) == 0 {
			said = []string{"none"}
		}
		s.paragraph("", row.Policy+", first departures: "+strings.Join(said, ", "), "  ")
	}
}

func legend(s screen) {
	for _, line := range []string{
		"blocked: attacks that did harm, and of which every harmful call is denied",
		"broken: good runs without an attack, of which a call is denied that had worked",
		"twins: runs whose user asks for what attackers ask for, of which a call is denied that had worked",
		"left: runs that left their recording: what their models said after that, they said without knowing of it, " +
			"so broken is an upper bound",
	} {
		s.paragraph(dim, line, "  ")
	}
}

func (r report) afterword(s screen) {
	suites := lo.FilterMap(r.LeftOut, func(l leftOut, _ int) (string, bool) { return l.Suite + " " + number(l.Runs), l.Suite != "" })
	files := lo.FilterMap(r.LeftOut, func(l leftOut, _ int) (string, bool) { return filepath.Base(l.File), l.File != "" })
	if len(suites) > 0 {
		s.paragraph("", "runs left out, as no policy knows their suite: "+strings.Join(suites, ", "), "  ")
	}
	if len(files) > 0 {
		s.paragraph("", "files left out, as they are no recordings: "+strings.Join(files, ", "), "  ")
	}
	if r.Failed > 0 {
		s.paragraph(red, "runs and lines that could not be played: "+number(r.Failed), "  ")
	}
	took := time.Duration(r.Seconds * float64(time.Second))
	took = took.Round(lo.Ternary(took > time.Second, 100*time.Millisecond, time.Millisecond))
	s.paragraph("", fmt.Sprintf("%s and %s in %s: %s plays a second",
		count(r.Runs, "run"), count(r.Plays, "play"), took, number(int(r.PlaysPerSec))), "")
}

func count(n int, what string) string { return number(n) + " " + what + lo.Ternary(n == 1, "", "s") }
