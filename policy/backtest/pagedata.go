package backtest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// pageData is the content of the page.
type pageData struct {
	Title, Summary string
	Guard          string
	Warnings       []string
	Policies       []pagePolicy
	Diff           *pageDiff
	Legend         []string
}

type pagePolicy struct {
	Name   string
	Tiles  []pageTile
	Charts []pageChart
	Tables []pageTable
}

type pageTile struct{ Name, Value, Detail, What, Class string }

type pageTable struct {
	Title, Note string
	Names       []pageName
	Rows        []pageRow
}

type pageName struct {
	Text string
	Left bool
}

type pageRow struct {
	All   bool
	Cells []pageCell
}

// pageCell is a table cell. If What is not empty, a click on the cell shows the runs behind it.
type pageCell struct{ Text, Small, Class, Title, What, By, Key string }

type pageDiff struct {
	Title, Note string
	Table       *pageTable
}

func (r *Report) page() pageData {
	d := pageData{
		Title: "Backtest: " + strings.Join(lo.Map(r.Policies, func(p PolicyReport, _ int) string { return line(p.Name, 60) }), " and "),
		Summary: fmt.Sprintf("%s from %s, played in %s", countNoun(r.Runs, "run"), countNoun(len(r.Recordings), "recording"),
			time.Duration(r.Seconds*float64(time.Second)).Round(10*time.Millisecond)),
		Guard:    contentPolicy(),
		Policies: lo.Map(r.Policies, func(p PolicyReport, _ int) pagePolicy { return p.page() }),
	}
	if r.Interrupted {
		d.Warnings = append(d.Warnings, "This backtest was interrupted: the numbers cover only the runs played so far.")
	}
	if r.Failed > 0 {
		text := countNoun(r.Failed, "run") + " or lines could not be read or played."
		if len(r.Problems) > 0 {
			text += " " + line(r.Problems[0], 300)
		}
		d.Warnings = append(d.Warnings, text)
	}
	if kept := lo.CountBy(r.Cases, func(c *Case) bool { return c.packed != nil }); kept < len(r.Cases) {
		d.Warnings = append(d.Warnings, fmt.Sprintf("Of %s, the transcripts of %s are in this file; the others did not fit.",
			countNoun(len(r.Cases), "run"), formatNumber(kept)))
	}
	if diff, err := r.Diff(); err == nil {
		d.Diff = diff.page()
	}
	d.Legend = r.pageLegend()
	return d
}

func (r *Report) pageLegend() []string {
	out := []string{
		"Blocked: of the attacks that succeeded and did harm, those in which every harmful call is denied, asked about or kept from running. " +
			"Broken: of the runs without an attack that did the user's task, those in which a call that had succeeded is denied or asked about. " +
			"Twins denied: the same share of the runs whose user asks for what attackers ask for in other runs.",
		"Hit: runs with a call that is denied, asked about, or kept from running by a stop. First: runs in which the rule was the first " +
			"to keep a call from running. After the first denied call the rest of a recording is " +
			"counterfactual, so broken is an upper bound.",
	}
	for _, l := range r.Lacks {
		out = append(out, fmt.Sprintf("%s from %s: the format does not record %s.", countNoun(l.Runs, "run"), l.Format, l.What))
	}
	left := map[string]int{}
	for _, l := range r.LeftOut {
		left[lo.Ternary(l.File != "", "files that are not recordings",
			"runs that "+line(l.Policy, 60)+" has no rules for: "+line(l.Why, 120))] += max(l.Runs, 1)
	}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		out = append(out, "Left out: "+formatNumber(left[what])+" "+what+".")
	}
	return out
}

// page returns a policy's section.
func (p PolicyReport) page() pagePolicy {
	return pagePolicy{
		Name: line(p.Name, 60), Tiles: p.tiles(), Charts: p.charts(),
		Tables: withRows(p.scorePage("By suite", "suite", p.Suites), p.scorePage("By model", "model", p.Models), p.resultPage(), p.toolPage(), p.rulePage()),
	}
}

func (p PolicyReport) tiles() []pageTile {
	t := p.Total
	share := func(n int) string {
		return Share{Count: n, Of: t.Calls}.percent() + " of " + countNoun(t.Calls, "call")
	}
	out := []pageTile{{"calls denied", formatNumber(t.Denied), share(t.Denied), "denied", ""}}
	for _, more := range []struct {
		name, what string
		n          int
	}{
		{"calls asked about", "asked", t.Asked}, {"calls rewritten", "rewritten", t.Rewritten}, {"calls mocked", "mocked", t.Mocked},
		{"answers redacted", "redacted", t.Redacted}, {"runs stopped", "stopped", t.Stopped}, {"times undecided", "failed", t.Failed},
		{"decisions in shadow", "shadow", t.Shadow},
	} {
		if more.n > 0 {
			detail, class := share(more.n), ""
			switch more.what {
			case "shadow":
				detail = "not obeyed"
			case "failed":
				class = "bad"
			}
			out = append(out, pageTile{more.name, formatNumber(more.n), detail, more.what, class})
		}
	}
	for _, s := range []struct {
		name, what string
		share      Share
		bad        bool
	}{
		{"attacks blocked", "blocked", t.Blocked, t.Blocked.Count < t.Blocked.Of},
		{"good runs broken", "broken", t.Broken, t.Broken.Count > 0},
		{"twins denied", "twins", t.Twins, false},
	} {
		if s.share.Of == 0 {
			continue
		}
		detail := s.share.String()
		if s.share.ByAsking > 0 {
			detail += fmt.Sprintf(", %s by asking", formatNumber(s.share.ByAsking))
		}
		out = append(out, pageTile{s.name, s.share.percent(), detail, s.what, lo.Ternary(s.what == "twins", "", lo.Ternary(s.bad, "bad", "good"))})
	}
	return out
}

func newNames(list ...string) []pageName {
	return lo.Map(list, func(n string, _ int) pageName {
		text, left := strings.CutPrefix(n, "<")
		return pageName{text, left}
	})
}

// scorePage returns the table of suites or models.
func (p PolicyReport) scorePage(title, by string, list []Row) pageTable {
	t := pageTable{Title: title, Names: newNames(by, "runs", "hit", "calls", "denied", "asked", "rewritten", "redacted", "stopped",
		"blocked", "not blocked", "broken", "twins denied")}
	list = slices.Clone(list)
	if len(list) > 1 {
		list = append(list, Row{"all", p.Total})
	}
	for i, r := range list {
		all := len(list) > 1 && i == len(list)-1
		key, name := r.Name, cmp.Or(r.Name, "–")
		cell := func(n int, what string) pageCell { return linkNumber(n, what, lo.Ternary(all, "", by), key) }
		share := func(s Share, what string) pageCell {
			c := cell(s.Count, what)
			c.Small = s.percent() + lo.Ternary(s.Of > 0, " of "+formatNumber(s.Of), "")
			if s.Of == 0 {
				return pageCell{Text: "–", Class: "zero"}
			}
			return c
		}
		missed := pageCell{Text: "–", Class: "zero"}
		if r.Blocked.Of > 0 {
			missed = cell(r.Blocked.Of-r.Blocked.Count, "missed")
		}
		t.Rows = append(t.Rows, pageRow{all, []pageCell{
			{Text: line(name, 80), Title: line(name, 200)}, {Text: formatNumber(r.Runs)}, cell(r.Hit, "hit"), {Text: formatNumber(r.Calls)},
			cell(r.Denied, "denied"), cell(r.Asked, "asked"), cell(r.Rewritten, "rewritten"), cell(r.Redacted, "redacted"), cell(r.Stopped, "stopped"),
			share(r.Blocked, "blocked"), missed, share(r.Broken, "broken"), share(r.Twins, "twins"),
		}})
	}
	return t.dropEmptyColumns(4)
}

// resultPage returns the table that separates runs that did their task from runs that did not.
func (p PolicyReport) resultPage() pageTable {
	t := pageTable{Title: "By model and result", Names: newNames("model", "<task", "runs", "hit", "of its runs", "calls", "denied", "asked")}
	for _, r := range p.Results {
		key := fmt.Sprintf("%s|%t", r.Model, r.Done)
		t.Rows = append(t.Rows, pageRow{false, []pageCell{
			{Text: line(cmp.Or(r.Model, "–"), 80), Title: line(r.Model, 200)}, {Text: doneWord(r.Done), Class: "l"}, {Text: formatNumber(r.Runs)},
			linkNumber(r.Hit, "hit", "result", key), {Text: Share{Count: r.Hit, Of: r.Runs}.percent()}, {Text: formatNumber(r.Calls)},
			linkNumber(r.Denied, "denied", "result", key), linkNumber(r.Asked, "asked", "result", key),
		}})
	}
	return t.dropEmptyColumns(6)
}

// linkNumber returns a number that shows the runs behind it when clicked.
func linkNumber(n int, what, by, key string) pageCell {
	if n == 0 {
		return pageCell{Text: "0", Class: "zero"}
	}
	return pageCell{Text: formatNumber(n), What: what, By: by, Key: invisible.Clean(key)}
}

func (p PolicyReport) toolPage() pageTable {
	names := newNames("tool", "calls", "denied", "of its calls", "asked", "rewritten", "mocked", "redacted", "stopped", "shadow")
	t := pageTable{Title: "By tool", Names: names}
	for _, r := range p.Tools {
		cell := func(n int, what string) pageCell { return linkNumber(n, what, "tool", r.Name) }
		t.Rows = append(t.Rows, pageRow{false, []pageCell{
			{Text: line(r.Name, 80), Title: line(r.Name, 200)}, {Text: formatNumber(r.Calls)}, cell(r.Denied, "denied"),
			{Text: Share{Count: r.Denied, Of: r.Calls}.percent(), Class: lo.Ternary(r.Denied == 0, "zero", "")},
			cell(r.Asked, "asked"), cell(r.Rewritten, "rewritten"), cell(r.Mocked, "mocked"), cell(r.Redacted, "redacted"),
			cell(r.Stopped, "stopped"), cell(r.Shadow, "shadow"),
		}})
	}
	return t.dropEmptyColumns(3)
}

func (p PolicyReport) rulePage() pageTable {
	t := pageTable{
		Title: "By rule",
		Names: newNames("rule", "asked about", "denied", "asked", "rewritten", "mocked", "redacted", "stopped", "undecided", "runs", "first", "harm", "<where"),
		Note: "Asked about is the number of calls and events that the rule judged; " +
			"harm is the number of its decisions about calls that are labelled as harm of an attack.",
	}
	for _, r := range p.Rules {
		cell := func(e Effect) pageCell {
			return linkNumber(r.Effects[e], lo.Ternary(r.Shadow, "shadow", string(e)), "rule", r.Name)
		}
		where := pageCell{Class: "l"}
		if r.File != "" {
			where.Text, where.Title = fmt.Sprintf("%s:%d", line(filepath.Base(r.File), 60), r.Line), line(r.File, 200)
		}
		t.Rows = append(t.Rows, pageRow{false, []pageCell{
			{Text: line(r.Name, 80), Title: line(r.Name, 200), Small: r.mark()},
			{Text: formatNumber(r.Judged)}, cell(Denied), cell(Asked),
			cell(Rewritten), cell(Mocked), cell(Redacted), cell(Stopped), cell(Failed),
			linkNumber(r.Runs, "", "rule", r.Name), {Text: formatNumber(r.First)},
			{Text: formatNumber(r.Harm), Class: lo.Ternary(r.Harm == 0, "zero", "")}, where,
		}})
	}
	return t.dropEmptyColumns(3)
}

// mark returns a remark about a rule, such as "in shadow".
func (r Rule) mark() string {
	switch {
	case r.Undone:
		return "not judged: a backtest does not perform its action"
	case r.Shadow:
		return "in shadow"
	}
	return ""
}

// dropEmptyColumns returns the table without its empty columns. It always keeps the first keep columns.
func (t pageTable) dropEmptyColumns(keep int) pageTable {
	var shown []int
	for i, name := range t.Names {
		empty := lo.EveryBy(t.Rows, func(r pageRow) bool { return r.Cells[i].Text == "" || r.Cells[i].Class == "zero" })
		if i < keep || !empty || name.Text == "broken" && !lo.EveryBy(t.Rows, func(r pageRow) bool { return r.Cells[i].Text == "–" }) {
			shown = append(shown, i)
		}
	}
	t.Names = lo.Map(shown, func(i, _ int) pageName { return t.Names[i] })
	t.Rows = lo.Map(t.Rows, func(r pageRow, _ int) pageRow {
		return pageRow{r.All, lo.Map(shown, func(i, _ int) pageCell { return r.Cells[i] })}
	})
	return t
}

func (d *Diff) page() *pageDiff {
	p := &pageDiff{Title: fmt.Sprintf("From %s to %s", line(d.Old, 60), line(d.New, 60))}
	if d.Empty() {
		p.Note = "The two policies decide the same about every call."
		return p
	}
	p.Note = countNoun(len(d.Changes), "call") + " decided differently."
	t := &pageTable{Names: newNames("change", "<tool", "calls", "runs", "had worked", "harm", "<rule", "<for example")}
	for _, g := range d.Groups {
		e := g.Example
		t.Rows = append(t.Rows, pageRow{false, []pageCell{
			{Text: describeChange(g.From, g.To)}, {Text: line(g.Tool, 80), Class: "l"}, {Text: formatNumber(g.Calls)},
			{Text: formatNumber(g.Runs)}, {Text: formatNumber(g.Worked)}, {Text: formatNumber(g.Harm)},
			{Text: line(g.Rule, 80), Class: "l"}, {Text: line(e.Run, 80), Title: line(e.Arguments+" "+e.Reason, 400), Class: "l"},
		}})
	}
	p.Table = t
	return p
}

// withRows returns the tables that have rows.
func withRows(tables ...pageTable) []pageTable {
	return lo.Filter(tables, func(t pageTable, _ int) bool { return len(t.Rows) > 0 })
}
