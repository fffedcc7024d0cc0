package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/pipeline"
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

// clock is the form of times in decisions.
const clock = "15:04:05.000"

// tick is a time that the chart names. Its place is in percent.
type tick struct {
	at   float64
	text string
}

// tickRoom is the least distance between two ticks, in percent.
const tickRoom = 14

// ticks returns times since the beginning: the start of each span of work, and some within long ones.
func (a axis) ticks() (all []tick) {
	if len(a.busy) == 0 {
		return nil
	}
	begin, every := a.busy[0].from, niceStep(a.total/4)
	add := func(t time.Time, text string) {
		at := a.at(t)
		if at <= 100-tickRoom/2 && (len(all) == 0 || at >= all[len(all)-1].at+tickRoom) {
			all = append(all, tick{at, text})
		}
	}
	for i, b := range a.busy {
		if i > 0 {
			add(b.from, formatTick(b.from.Sub(begin)))
		}
		for t := begin.Add(b.from.Sub(begin).Truncate(every)); !t.After(b.to); t = t.Add(every) {
			if !t.Before(b.from) {
				add(t, formatTick(t.Sub(begin)))
			}
		}
	}
	return all
}

// formatTick returns a time since the beginning in short.
func formatTick(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// niceStep returns a step near a duration that people count in.
func niceStep(d time.Duration) time.Duration {
	steps := []time.Duration{
		time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	}
	for _, one := range steps {
		if one >= d {
			return one
		}
	}
	return d.Round(time.Hour)
}

// gaps returns where the idle time is, from and to in percent.
func (a axis) gaps() (all [][2]float64) {
	for i := 1; i < len(a.busy); i++ {
		all = append(all, [2]float64{a.at(a.busy[i-1].to), a.at(a.busy[i].from)})
	}
	return all
}

func percent(part, whole time.Duration) float64 { return 100 * min(1, float64(part)/float64(whole)) }

// x returns a percent as an attribute value.
func x(at float64) string { return fmt.Sprintf("%.2f%%", at) }

// mostMarks is how many decisions the chart shows.
const mostMarks = 300

// lane is one row of the chart. Passed is how often its hook passed without a mark.
type lane struct {
	hook, point string
	kind        string // of the hook's action
	marks       []*decision
	passed      int
}

// lanes returns a lane for each hook: first the blueprint's hooks, then others as they were called.
func (p *runPage) lanes() (all []*lane) {
	byHook := map[string]*lane{}
	of := func(hook, point string) *lane {
		if byHook[hook] == nil {
			byHook[hook] = &lane{hook: hook, point: point}
			all = append(all, byHook[hook])
		}
		return byHook[hook]
	}
	for _, r := range p.rules {
		of(r.Hook, r.Point).kind = r.Type
	}
	marks := p.story.decisions()
	for _, d := range marks[max(0, len(marks)-mostMarks):] {
		l := of(d.Hook, d.Point)
		l.marks = append(l.marks, d)
	}
	for _, hook := range slices.Sorted(maps.Keys(p.story.passes)) {
		of(hook, "").passed = p.story.passes[hook]
	}
	return all
}

// name returns the hook's name without its policy. Hooks without a name are called by the kind of their action, and after the first
// call by its target.
func (l *lane) name() string {
	name := l.hook[strings.LastIndexByte(l.hook, '/')+1:]
	if l.kind != "" && strings.HasPrefix(name, l.point+"-") {
		if len(l.marks) > 0 && l.marks[0].Target != "" {
			return cutText(l.marks[0].Target, lineLen)
		}
		name = l.kind + strings.TrimPrefix(name, l.point)
	}
	return cutText(strings.TrimSuffix(name, "-1"), lineLen)
}

// pointWords say when hooks are called. Other points have their names.
var pointWords = map[string]string{
	"on_run_start": "before the run", string(hooks.RunStart): "before the run", "on_result": "on the result", string(hooks.RunResult): "on the result",
	"on_run_finish": "after the run", string(hooks.RunFinish): "after the run", "on_error": "after a failure", string(hooks.RunFailed): "after a failure",
	"on_timeout": "after a timeout", string(hooks.RunTimeout): "after a timeout", string(hooks.PreToolUse): "before a call",
	string(hooks.PostToolUse): "after a call", string(hooks.Stop): "before the end", string(hooks.PreInference): "before the model",
	string(hooks.PostInference): "after the model", string(hooks.SessionStart): "before the pipeline", string(hooks.SessionComplete): "after the pipeline",
	string(hooks.IterationStart): "before an iteration", string(hooks.IterationComplete): "after an iteration",
	string(hooks.IterationFailed): "after a failed iteration", string(hooks.StageComplete): "after a stage",
}

// about says when the hook is called, and how often it passed.
func (l *lane) about() string {
	text := cutText(cmp.Or(pointWords[l.point], l.point), lineLen)
	if l.passed > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s · %d passed", text, l.passed), " · ")
	}
	return text
}

// spans returns when the run did something.
func (s *story) spans(lanes []*lane, now time.Time) (all []span) {
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
	for _, l := range lanes {
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

// putChart shows when steps, tools and hooks ran, and each decision as a mark that leads to its text. What will have a place
// has it from the beginning.
func (p *runPage) putChart(out *markup.Page) {
	s, lanes := p.story, p.lanes()
	out.Put(`<section id="chart" class="card" aria-labelledby="decisions">
<div class="cardhead"><h2 id="decisions">Decisions</h2><p class="tally">%s</p></div>
`, s.tally())
	hasSteps := s.steps > 0 || p.run.Type == wire.Autonomous && !p.run.Blocked
	var stages []pipeline.StageProgress
	if p.run.Pipeline != nil {
		stages = p.run.Pipeline.Stages
	}
	if len(lanes)+len(stages) == 0 && !hasSteps {
		out.Put("<p class=\"dim\">No hook decided anything%s.</p>\n</section>\n", lo.Ternary(isEnded(p.run.Status), "", " yet"))
		return
	}
	a := newAxis(append(s.spans(lanes, p.now), iterationSpans(stages, p.now)...))
	ticks := a.ticks()
	back := func() {
		for _, g := range a.gaps() {
			out.Put(`<rect class="gap" x="%s" width="%s" height="100%%"/>`, x(g[0]), x(g[1]-g[0]))
		}
		for _, t := range ticks {
			out.Put(`<rect class="grid" x="%s" width="1" height="100%%"/>`, x(t.at))
		}
	}
	out.Put("<div class=\"lanes\"><p class=\"lane axis\"><span></span><svg height=\"18\" aria-hidden=\"true\">")
	for _, t := range ticks {
		out.Put(`<text x="%s" y="13">%s</text>`, x(t.at), t.text)
	}
	out.Put("</svg></p>\n<div role=\"list\">\n")
	if hasSteps {
		out.Put(`<div class="lane" role="listitem"><p class="name">Model and tools</p><svg class="bars" height="36" aria-hidden="true">`)
		back()
		for _, e := range s.entries {
			if e.step != nil {
				e.step.putBars(out, a, p.now)
			}
		}
		out.Put("</svg></div>\n")
	}
	putStageLanes(out, stages, a, p.now, back)
	for _, l := range lanes {
		out.Put(`<div class="lane" role="listitem"><p class="name">%s<span>%s</span></p><svg height="28">`, l.name(), l.about())
		back()
		for _, d := range l.marks {
			from, to := a.at(d.from), a.at(d.at)
			if d.kind == running {
				to = a.at(p.now)
			}
			if to-from > .5 {
				out.Put(`<rect class="took %s" x="%s" y="11" width="%s" height="6" rx="3"/>`, string(d.kind), x(from), x(to-from))
			}
			out.Put(`<a href="#%s" aria-label="%s"><svg x="%s" y="6" width="16" height="16" class="mark %s" overflow="visible">`+
				`<use href="#i-%s" x="-8"/></svg></a>`,
				d.id(), firstLine(d.Title+": "+d.Words()+" "+cmp.Or(d.Reason, d.Error)), x(to), string(d.kind), string(d.kind))
		}
		out.Put("</svg></div>\n")
	}
	out.Put("</div></div>\n</section>\n")
}

// putBars shows when the model and the tools of a step worked.
func (s *step) putBars(out *markup.Page, a axis, now time.Time) {
	bar := func(kind markup.HTML, from, to, y float64, text string) {
		width := max(.3, to-from)
		out.Put(`<rect class="%s" x="%s" y="%s" width="%s" height="14" rx="2"/>`, kind, x(from), int(y), x(width))
		out.PutIf(width*narrowest > float64(8*len(text)+8), `<svg x="%s" y="%s"><text x="5" y="11">%s</text></svg>`, x(from), int(y), text)
	}
	end := s.thought
	if end.IsZero() {
		end = s.end(now)
	}
	bar("model", a.at(s.from), a.at(end), 2, strconv.Itoa(s.key.step+1))
	for _, c := range s.calls {
		if !c.from.IsZero() {
			bar(markup.HTML("tool "+string(c.look())), a.at(c.from), a.at(cmp.Or(c.to, c.from)), 19, cutText(c.tool, lineLen))
		}
	}
}

// narrowest is the least width of the chart, in hundredths of a pixel of its percent.
const narrowest = 2.56

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
