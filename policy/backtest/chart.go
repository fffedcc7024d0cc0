package backtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/markup"
)

// mostBars is the maximum number of bars in a chart.
const mostBars = 12

// pageChart is a bar chart or, if Plot is not empty, a plot.
type pageChart struct {
	Title, Note string
	Bars        []pageBar
	Legend      []string
	Plot        markup.HTML
}

type pageBar struct {
	Name, Value string
	Kind        bool   // Name is what the bar counts, such as "blocked", instead of a suite, tool or rule
	Head        string // the heading above the bar, such as the suite
	Parts       []pagePart
}

// pagePart is a segment of a bar. From and Width are percentages of the bar's width.
type pagePart struct {
	Class, Title string
	From, Width  string
}

func (p PolicyReport) charts() []pageChart {
	return lo.Filter([]pageChart{p.outcomes(), p.plot(), p.toolChart(), p.ruleChart()}, func(c pageChart, _ int) bool {
		return len(c.Bars) > 0 || c.Plot != ""
	})
}

// outcomes returns the chart of blocked attacks, broken good runs and denied twins by suite. Without labels, it
// returns the chart of decisions on calls.
func (p PolicyReport) outcomes() pageChart {
	c := pageChart{Title: "Outcomes, by suite", Note: "Shares of the attacks that did harm, of the good runs without an attack, and of the twins."}
	for i, r := range p.Suites {
		if i == mostBars {
			break
		}
		first := true
		for _, s := range []struct {
			name, class string
			share       Share
		}{{"blocked", "blocked", r.Blocked}, {"broken", "broken", r.Broken}, {"twins denied", "twins", r.Twins}} {
			if s.share.Of == 0 {
				continue
			}
			c.Bars = append(c.Bars, pageBar{
				Name: s.name, Kind: true, Head: lo.Ternary(first, line(cmp.Or(r.Name, "–"), 60), ""),
				Value: s.share.percent() + " · " + s.share.String(),
				Parts: []pagePart{part(s.class, 0, s.share.Count, s.share.Of, s.share.String())},
			})
			first = false
		}
	}
	if len(c.Bars) > 0 {
		return c
	}
	c = pageChart{Title: "Calls, by suite", Note: "Shares of all calls.", Legend: callEffects(p.Total.parts())}
	for _, r := range lo.Slice(p.Suites, 0, mostBars) {
		c.Bars = append(c.Bars, stackBars(cmp.Or(r.Name, "all runs"), r.parts(), r.Calls, r.Calls))
	}
	return c
}

// counted is the number of decisions with one effect.
type counted struct {
	effect string
	n      int
}

func (s Score) parts() []counted {
	return []counted{{"denied", s.Denied}, {"asked", s.Asked}, {"mocked", s.Mocked}, {"rewritten", s.Rewritten}, {"redacted", s.Redacted}}
}

func (t ToolRow) parts() []counted {
	return []counted{
		{"denied", t.Denied}, {"asked", t.Asked}, {"stopped", t.Stopped}, {"mocked", t.Mocked}, {"rewritten", t.Rewritten},
		{"redacted", t.Redacted}, {"shadow", t.Shadow},
	}
}

func (r Rule) parts() []counted {
	if r.Shadow {
		return []counted{{"shadow", r.total()}}
	}
	return lo.Map(effects(), func(e Effect, _ int) counted { return counted{string(e), r.Effects[e]} })
}

func callEffects(lists ...[]counted) []string {
	var out []string
	for _, list := range lists {
		for _, c := range list {
			if c.n > 0 && !slices.Contains(out, c.effect) {
				out = append(out, c.effect)
			}
		}
	}
	return out
}

// stackBars returns a bar with a segment for each effect. The bar's whole width stands for the number of.
func stackBars(name string, parts []counted, of, calls int) pageBar {
	b := pageBar{Name: line(name, 60)}
	at, n := 0, 0
	for _, c := range parts {
		if c.n > 0 {
			b.Parts = append(b.Parts, part(c.effect, at, c.n, of, formatNumber(c.n)+" "+strings.ReplaceAll(c.effect, "_", " ")))
			at, n = at+c.n, n+c.n
		}
	}
	b.Value = formatNumber(n)
	if calls > 0 {
		b.Value += " of " + formatNumber(calls)
	}
	return b
}

func part(class string, from, n, of int, title string) pagePart {
	percent := func(n int) string { return fmt.Sprintf("%.2f", 100*float64(n)/float64(max(of, 1))) }
	return pagePart{Class: class, Title: title, From: percent(from), Width: percent(n)}
}

func (p PolicyReport) toolChart() pageChart {
	c := pageChart{Title: "Decisions, by tool"}
	tools := lo.Filter(p.Tools, func(t ToolRow, _ int) bool { return lo.SumBy(t.parts(), countOf) > 0 })
	slices.SortStableFunc(tools, func(a, b ToolRow) int { return lo.SumBy(b.parts(), countOf) - lo.SumBy(a.parts(), countOf) })
	for i, t := range tools {
		if i == mostBars {
			c.Note = fmt.Sprintf("The table below has %s.", countNoun(len(tools)-i, "more tool"))
			break
		}
		c.Bars = append(c.Bars, stackBars(t.Name, t.parts(), lo.SumBy(tools[0].parts(), countOf), t.Calls))
	}
	c.Legend = callEffects(lo.Map(tools, func(t ToolRow, _ int) []counted { return t.parts() })...)
	return c
}

func countOf(c counted) int { return c.n }

func (p PolicyReport) ruleChart() pageChart {
	c := pageChart{Title: "Decisions, by rule"}
	rules := lo.Filter(p.Rules, func(r Rule, _ int) bool { return r.total() > 0 })
	for i, r := range rules {
		if i == mostBars {
			c.Note = fmt.Sprintf("The table below has %s.", countNoun(len(rules)-i, "more rule"))
			break
		}
		c.Bars = append(c.Bars, stackBars(r.Name, r.parts(), rules[0].total(), 0))
	}
	c.Legend = callEffects(lo.Map(rules, func(r Rule, _ int) []counted { return r.parts() })...)
	return c
}

// plot returns a plot with a point for each model: blocked attacks against broken good runs. The best corner is at
// the top left.
func (p PolicyReport) plot() pageChart {
	models := lo.Filter(p.Models, func(r Row, _ int) bool { return r.Blocked.Of > 0 && r.Broken.Of > 0 })
	if len(models) < 2 {
		return pageChart{}
	}
	const left, top, width, height = 46.0, 12.0, 380.0, 210.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 450 270" role="img" aria-label="blocked and broken, by model">`)
	for _, tick := range []float64{0, 25, 50, 75, 100} {
		x, y := left+width*tick/100, top+height*(1-tick/100)
		fmt.Fprintf(&b, `<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%.0f %%</text>`,
			left, y, left+width, y, left-6, y+4, tick)
		fmt.Fprintf(&b, `<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%.0f %%</text>`,
			x, top, x, top+height, x, top+height+16, tick)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">good runs broken</text>`, left+width/2, top+height+34)
	fmt.Fprintf(&b, `<text transform="translate(11 %.1f) rotate(-90)" text-anchor="middle">attacks blocked</text>`, top+height/2)
	most := lo.Max(lo.Map(models, func(r Row, _ int) int { return r.Blocked.Of }))
	for _, r := range models {
		x := left + width*float64(r.Broken.Count)/float64(r.Broken.Of)
		y := top + height*(1-float64(r.Blocked.Count)/float64(r.Blocked.Of))
		radius := 4 + 6*float64(r.Blocked.Of)/float64(most)
		fmt.Fprintf(&b, `<circle class="dot" cx="%.1f" cy="%.1f" r="%.1f"><title>%s</title></circle>`, x, y, radius, markup.Escape(fmt.Sprintf(
			"%s: %s blocked, %s broken", line(cmp.Or(r.Name, "–"), 80), r.Blocked.String(), r.Broken.String())))
	}
	b.WriteString("</svg>")
	return pageChart{
		Title: "Blocked and broken, by model", Plot: markup.HTML(b.String()), // names are escaped, the rest is numbers
		Note: "Each point is a model; a larger point stands for more attacks that did harm. The best corner is at the top left.",
	}
}
