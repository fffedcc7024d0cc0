package backtest

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

// mostRows is the maximum number of tools and rules in the text. The JSON form has all of them.
const mostRows = 25

// WriteText writes the report as text for a terminal. It cleans all text from recordings: see invisible.Clean.
func (r *Report) WriteText(w io.Writer, l Look) error {
	var out strings.Builder
	r.preface(&out, l)
	for _, p := range r.Policies {
		if p.Total.Runs > 0 {
			p.write(&out, l)
		}
	}
	if r.Plays > 0 {
		r.legend(&out, l)
	}
	r.afterword(&out, l)
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *Report) preface(w io.Writer, l Look) {
	if r.Interrupted {
		l.paragraph(w, red, fmt.Sprintf("Interrupted after %s: the numbers cover only these runs.", countNoun(r.Runs, "run")), "")
		fmt.Fprintln(w)
	}
}

// write writes one policy's tables.
func (p PolicyReport) write(w io.Writer, l Look) {
	fmt.Fprintln(w, l.paint(bold, line(p.Name, 80)))
	fmt.Fprintln(w)
	p.scores("suite", p.Suites).write(w, l)
	fmt.Fprintln(w)
	if len(p.Models) > 1 {
		p.scores("model", p.Models).write(w, l)
		fmt.Fprintln(w)
	}
	if len(p.Results) > 1 {
		p.resultTable().write(w, l)
		fmt.Fprintln(w)
	}
	p.toolTable().write(w, l)
	fmt.Fprintln(w)
	rules, hidden := p.rulesToShow(l)
	p.ruleTable(rules).write(w, l)
	if hidden > 0 {
		text := countNoun(hidden, "rule") + lo.Ternary(hidden == 1, " was never asked: --all shows it", " were never asked: --all shows them")
		l.paragraph(w, dim, text, "")
	}
	fmt.Fprintln(w)
	kinds := slices.SortedFunc(maps.Keys(p.Total.Left), func(a, b replay.DepartureKind) int {
		return cmp.Or(p.Total.Left[b]-p.Total.Left[a], strings.Compare(string(a), string(b)))
	})
	if len(kinds) > 0 {
		said := lo.Map(kinds, func(k replay.DepartureKind, _ int) string {
			return formatNumber(p.Total.Left[k]) + " " + strings.ReplaceAll(string(k), "_", " ")
		})
		l.paragraph(w, "", "first departures from the recording: "+strings.Join(said, ", "), "  ")
		fmt.Fprintln(w)
	}
}

// scores returns the table of suites or models.
func (p PolicyReport) scores(what string, list []Row) *table {
	t := &table{
		names: []string{
			what, "runs", "hit", "calls", "denied", "asked", "rewritten", "mocked", "redacted", "stopped", "failed", "shadow",
			"blocked", "", "broken", "", "twins denied", "", "left",
		},
		keep: map[string]bool{"runs": true, "calls": true, "denied": true},
	}
	list = slices.Clone(list)
	if len(list) > 1 {
		list = append(list, Row{"all", p.Total})
	}
	for _, r := range list {
		style := ""
		if r.Blocked.Of > 0 {
			style = lo.Ternary(r.Blocked.Count == r.Blocked.Of, green, red)
		}
		t.add(cell{line(cmp.Or(r.Name, "–"), 40), ""}, cell{formatNumber(r.Runs), ""}, cell{formatNumber(r.Hit), ""},
			cell{formatNumber(r.Calls), ""}, cell{formatNumber(r.Denied), ""},
			cell{formatNumber(r.Asked), ""}, cell{formatNumber(r.Rewritten), ""}, cell{formatNumber(r.Mocked), ""}, cell{formatNumber(r.Redacted), ""},
			cell{formatNumber(r.Stopped), ""}, cell{formatNumber(r.Failed), lo.Ternary(r.Failed > 0, red, "")}, cell{formatNumber(r.Shadow), ""},
			cell{r.Blocked.String(), style}, cell{r.Blocked.percent(), style},
			cell{r.Broken.String(), lo.Ternary(r.Broken.Count > 0, red, "")}, cell{r.Broken.percent(), lo.Ternary(r.Broken.Count > 0, red, "")},
			cell{r.Twins.String(), ""}, cell{r.Twins.percent(), ""}, cell{formatNumber(lo.Sum(slices.Collect(maps.Values(r.Left)))), ""})
	}
	return t
}

// resultTable returns the table that separates runs that did their task from runs that did not.
func (p PolicyReport) resultTable() *table {
	t := &table{names: []string{"model", "task", "runs", "hit", "", "calls", "denied", "asked"}, keep: map[string]bool{"hit": true, "denied": true}}
	for _, r := range p.Results {
		t.add(cell{line(cmp.Or(r.Model, "–"), 40), ""}, cell{doneWord(r.Done), "left"}, cell{formatNumber(r.Runs), ""}, cell{formatNumber(r.Hit), ""},
			cell{Share{Count: r.Hit, Of: r.Runs}.percent(), ""}, cell{formatNumber(r.Calls), ""},
			cell{formatNumber(r.Denied), ""}, cell{formatNumber(r.Asked), ""})
	}
	return t
}

func doneWord(is bool) string { return lo.Ternary(is, "done", "not done") }

func (p PolicyReport) toolTable() *table {
	t := &table{
		names: []string{"tool", "calls", "denied", "asked", "rewritten", "mocked", "redacted", "stopped", "shadow"},
		keep:  map[string]bool{"calls": true, "denied": true},
	}
	for i, r := range p.Tools {
		if i == mostRows {
			t.add(append([]cell{{"… and " + countNoun(len(p.Tools)-i, "more tool"), dim}}, make([]cell, 8)...)...)
			break
		}
		t.add(cell{line(r.Name, 40), ""}, cell{formatNumber(r.Calls), ""}, cell{formatNumber(r.Denied), ""},
			cell{formatNumber(r.Asked), ""}, cell{formatNumber(r.Rewritten), ""},
			cell{formatNumber(r.Mocked), ""}, cell{formatNumber(r.Redacted), ""}, cell{formatNumber(r.Stopped), ""}, cell{formatNumber(r.Shadow), ""})
	}
	return t
}

// rulesToShow returns the rules that were asked, and the number of rules that it omits.
func (p PolicyReport) rulesToShow(l Look) (shown []Rule, hidden int) {
	if l.All {
		return p.Rules, 0
	}
	shown = lo.Filter(p.Rules, func(r Rule, _ int) bool { return r.Judged > 0 || r.Runs > 0 || r.Undone })
	return shown, len(p.Rules) - len(shown)
}

func (p PolicyReport) ruleTable(rules []Rule) *table {
	t := &table{
		names: []string{"rule", "asked about", "denied", "asked", "rewritten", "mocked", "redacted", "stopped", "failed", "runs", "first", "harm", "where"},
		keep:  map[string]bool{"asked about": true, "denied": true, "runs": true, "first": true},
	}
	for i, r := range rules {
		if i == mostRows {
			t.add(append([]cell{{"… and " + countNoun(len(rules)-i, "more rule"), dim}}, make([]cell, 12)...)...)
			break
		}
		where := ""
		if r.File != "" {
			where = fmt.Sprintf("%s:%d", line(filepath.Base(r.File), 30), r.Line)
		}
		effect := func(e Effect) cell { return cell{formatNumber(r.Effects[e]), ""} }
		mark := lo.Ternary(r.Shadow, " (shadow)", "") + lo.Ternary(r.Undone, " (not judged)", "")
		t.add(cell{line(r.Name, 40) + mark, ""}, cell{formatNumber(r.Judged), ""}, effect(Denied), effect(Asked), effect(Rewritten),
			effect(Mocked), effect(Redacted), effect(Stopped), effect(Failed),
			cell{formatNumber(r.Runs), ""}, cell{formatNumber(r.First), ""}, cell{formatNumber(r.Harm), ""}, cell{where, "left"})
	}
	return t
}

// legend writes the meaning of the terms in the tables.
func (r *Report) legend(w io.Writer, l Look) {
	total := Score{}
	for _, p := range r.Policies {
		total = total.add(p.Total)
	}
	lines := []string{"hit: runs with a call that is denied, asked about, or kept from running by a stop"}
	if total.Blocked.Of > 0 {
		lines = append(lines, "blocked: attacks that did harm and in which every harmful call is now denied"+byAsking(total.Blocked))
	}
	if total.Refused > 0 {
		lines = append(lines, fmt.Sprintf("refused: %s that had worked and that the tool's schema refuses now; harmful ones among them count as stopped",
			countNoun(total.Refused, "call")))
	}
	if total.Broken.Of > 0 {
		lines = append(lines, "broken: good runs without an attack in which a call that had worked is denied; an upper bound, because the models "+
			"did not learn of the denial"+byAsking(total.Broken))
	}
	if total.Twins.Of > 0 {
		lines = append(lines, "twins denied: runs whose user asks for what attackers ask for, in which a call that had worked is denied"+byAsking(total.Twins))
	}
	if len(total.Left) > 0 {
		lines = append(lines, "left: runs that departed from their recording; the recorded model did not know of the departure")
	}
	lines = append(lines, "first: runs in which the rule was the first to keep a call from running; the rest of such a run is counterfactual")
	for _, text := range lines {
		l.paragraph(w, dim, text, "  ")
	}
	fmt.Fprintln(w)
}

func byAsking(s Share) string {
	if s.ByAsking == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s only because a person is asked)", formatNumber(s.ByAsking))
}

func (r *Report) afterword(w io.Writer, l Look) {
	var files []string
	suites := map[string]map[string]int{} // by policy
	for _, left := range r.LeftOut {
		if left.File != "" {
			files = append(files, line(filepath.Base(left.File), 60))
			continue
		}
		if suites[left.Policy] == nil {
			suites[left.Policy] = map[string]int{}
		}
		suites[left.Policy][cmp.Or(left.Suite, "–")] += left.Runs
	}
	for _, policy := range slices.Sorted(maps.Keys(suites)) {
		said := lo.Map(slices.Sorted(maps.Keys(suites[policy])), func(suite string, _ int) string {
			return line(suite, 40) + " " + formatNumber(suites[policy][suite])
		})
		l.paragraph(w, "", "runs left out because "+line(policy, 60)+" has no rules for their suite: "+strings.Join(said, ", "), "  ")
	}
	if len(files) > 0 {
		l.paragraph(w, "", "files left out because they are not recordings: "+strings.Join(files, ", "), "  ")
	}
	for _, p := range r.Policies {
		undone := lo.FilterMap(p.Rules, func(r Rule, _ int) (string, bool) { return line(r.Name, 60), r.Undone })
		if len(undone) > 0 {
			l.paragraph(w, "", "not judged, because their actions are not performed in a backtest: "+strings.Join(undone, ", "), "  ")
		}
	}
	for _, lack := range r.Lacks {
		l.paragraph(w, "", fmt.Sprintf("%s from %s: the format does not record %s", countNoun(lack.Runs, "run"), lack.Format, lack.What), "  ")
	}
	if r.Failed > 0 {
		l.paragraph(w, red, "runs and lines that could not be read or played: "+formatNumber(r.Failed), "  ")
	}
	took := time.Duration(r.Seconds * float64(time.Second))
	took = took.Round(lo.Ternary(took > time.Second, 100*time.Millisecond, time.Millisecond))
	l.paragraph(w, "", fmt.Sprintf("%s and %s in %s: %s plays a second",
		countNoun(r.Runs, "run"), countNoun(r.Plays, "play"), took, formatNumber(int(float64(r.Plays)/max(r.Seconds, 1e-9)))), "")
}
