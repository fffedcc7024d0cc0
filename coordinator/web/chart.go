package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/internal/markup"
)

// span is a part of time.
type span struct{ from, to time.Time }

// axis maps times to percents of the chart's width. Idle time is squeezed.
type axis struct {
	busy  []span
	idle  time.Duration // the width of each gap
	total time.Duration
}

// newAxis returns the axis for spans of work.
func newAxis(spans []span) axis {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var a axis
	for _, s := range spans {
		if s.to.Before(s.from) {
			s.to = s.from
		}
		last := len(a.busy) - 1
		if last >= 0 && s.from.Sub(a.busy[last].to) < time.Second {
			if s.to.After(a.busy[last].to) {
				a.busy[last].to = s.to
			}
			continue
		}
		a.busy = append(a.busy, s)
	}
	for _, b := range a.busy {
		a.total += b.to.Sub(b.from)
	}
	a.total = max(a.total, time.Millisecond)
	a.idle = a.total / 20
	a.total += time.Duration(max(0, len(a.busy)-1)) * a.idle
	return a
}

// at returns the place of a time in percent.
func (a axis) at(t time.Time) float64 {
	var before time.Duration
	for i, b := range a.busy {
		if i > 0 {
			before += a.idle
		}
		if !t.After(b.to) {
			return percent(before+max(0, t.Sub(b.from)), a.total)
		}
		before += b.to.Sub(b.from)
	}
	return 100
}

// clock is the form of times on the chart and in decisions.
const clock = "15:04:05.000"

func (a axis) begin() time.Time { return a.busy[0].from.UTC() }
func (a axis) end() time.Time   { return a.busy[len(a.busy)-1].to.UTC() }

func percent(part, whole time.Duration) float64 { return 100 * min(1, float64(part)/float64(whole)) }

// x returns a percent as an attribute value.
func x(at float64) string { return fmt.Sprintf("%.2f%%", at) }

// mostMarks is how many decisions the chart shows.
const mostMarks = 300

// lane is one row of the chart.
type lane struct {
	name, about string
	marks       []*decision
}

// lanes returns one lane for each hook, in the order in which they were called first.
func (s *story) lanes() (all []*lane) {
	byName := map[string]*lane{}
	marks := s.decisions()
	for _, d := range marks[max(0, len(marks)-mostMarks):] {
		key := d.Point + " " + d.name
		if byName[key] == nil {
			byName[key] = &lane{name: d.name, about: d.Point}
			all = append(all, byName[key])
		}
		byName[key].marks = append(byName[key].marks, d)
	}
	return all
}

// spans returns when the run did something.
func (s *story) spans(now time.Time) (all []span) {
	for _, e := range s.entries {
		if e.step == nil {
			continue
		}
		all = append(all, span{e.step.from, e.step.end(now)})
		for _, c := range e.step.calls { // a call that waited runs later
			if !c.from.IsZero() {
				all = append(all, span{c.from, cmp.Or(c.to, c.from)})
			}
		}
	}
	for _, l := range s.lanes() {
		for _, d := range l.marks {
			end := d.at
			if d.kind == running {
				end = now
			}
			all = append(all, span{d.from, end})
		}
	}
	return all
}

// end returns when the step's work ended: with a call that waits for a person, that is when the question was asked.
func (s *step) end(now time.Time) time.Time {
	switch {
	case !s.thought.IsZero() && len(s.calls) > 0:
		return s.thought
	case !s.to.IsZero():
		return s.to
	case !s.thought.IsZero():
		return s.thought
	}
	return now
}

// putChart shows when steps, tools and hooks ran, and each decision as a mark that leads to its text.
func (s *story) putChart(p *markup.Page, now time.Time) {
	p.Put(`<section id="chart" class="card" aria-labelledby="decisions">
<div class="cardhead"><h2 id="decisions">Decisions</h2><p class="tally">%s</p></div>
`, s.tally())
	lanes := s.lanes()
	if len(lanes) == 0 && s.steps == 0 {
		p.Put("<p class=\"dim\">No hook decided anything yet.</p>\n</section>\n")
		return
	}
	a := newAxis(s.spans(now))
	p.Put("<div class=\"lanes\" role=\"list\">\n")
	if s.steps > 0 {
		p.Put(`<div class="lane" role="listitem"><p class="name">Model and tools</p><svg class="bars" height="36" aria-hidden="true">`)
		for _, e := range s.entries {
			if e.step != nil {
				e.step.putBars(p, a, now)
			}
		}
		p.Put("</svg></div>\n")
	}
	for _, l := range lanes {
		p.Put(`<div class="lane" role="listitem"><p class="name">%s<span>%s</span></p><svg height="28">`, cutText(l.name, lineLen), cutText(l.about, lineLen))
		for _, d := range l.marks {
			from, to := a.at(d.from), a.at(d.at)
			if d.kind == running {
				to = a.at(now)
			}
			if to-from > .5 {
				p.Put(`<rect class="took %s" x="%s" y="11" width="%s" height="6" rx="3"/>`, string(d.kind), x(from), x(to-from))
			}
			p.Put(`<a href="#%s" aria-label="%s"><svg x="%s" y="6" width="16" height="16" class="mark %s" overflow="visible">`+
				`<use href="#i-%s" x="-8"/></svg></a>`,
				d.id(), firstLine(d.Title+": "+d.Words()+" "+cmp.Or(d.Reason, d.Error)), x(to), string(d.kind), string(d.kind))
		}
		p.Put("</svg></div>\n")
	}
	p.Put("</div>\n")
	if len(a.busy) > 0 {
		p.Put("<p class=\"dim axis\"><span>%s</span><span>%s</span></p>\n", a.begin().Format(clock), a.end().Format(clock))
	}
	p.Put("</section>\n")
}

// putBars shows when the model and the tools of a step worked.
func (s *step) putBars(p *markup.Page, a axis, now time.Time) {
	end := s.thought
	if end.IsZero() {
		end = s.end(now)
	}
	from, to := a.at(s.from), a.at(end)
	p.Put(`<rect class="model" x="%s" y="2" width="%s" height="14" rx="2"/>`, x(from), x(max(.3, to-from)))
	for _, c := range s.calls {
		if c.from.IsZero() {
			continue
		}
		from, to = a.at(c.from), a.at(cmp.Or(c.to, c.from))
		p.Put(`<rect class="tool %s" x="%s" y="19" width="%s" height="14" rx="2"/>`, string(c.look()), x(from), x(max(.3, to-from)))
	}
}

// tally returns how often hooks decided, by kind.
func (s *story) tally() markup.HTML {
	var p markup.Page
	for _, v := range verdicts {
		if n := s.counts[v.kind]; n > 0 {
			p.Put(`<span class="count %s">%s%s %s</span> `, string(v.kind), icon(v.kind), n, v.word)
		}
	}
	return markup.HTML(p.String())
}

// icon returns the icon of a kind of decision.
func icon(v verdict) markup.HTML {
	var p markup.Page
	p.Put(`<svg class="icon" width="16" height="16" aria-hidden="true"><use href="#i-%s"/></svg>`, string(v))
	return markup.HTML(p.String())
}
