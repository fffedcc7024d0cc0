package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/pipeline"
)

// iterationsShown is how many iterations of a stage a page shows before it is asked for all.
const iterationsShown = 10

// showPipeline serves the page of a run of a pipeline. It is the run's page: other runs have none here.
func (h *Handler) showPipeline(w http.ResponseWriter, r *http.Request, v *view) {
	at, err := h.o.Coordinator.Run(r.Context(), agent.RunID(r.PathValue("id")))
	if err == nil && at.Pipeline == nil {
		err = durable.ErrNotFound
	}
	if err != nil {
		h.fail(w, r, v, "reading a pipeline", err)
		return
	}
	h.showRun(w, r, v)
}

// readOutputs reads how the newest iterations have ended.
func (h *Handler) readOutputs(ctx context.Context, p *runPage) error {
	if p.run.Pipeline == nil {
		return nil
	}
	runs, err := h.o.Store.List(ctx, durable.Filter{Parent: p.run.RunID, Limit: 4 * iterationsShown})
	p.outputs = lo.SliceToMap(runs, func(r durable.Run) (agent.RunID, string) { return r.ID, r.Outcome })
	return err
}

// stageStatus returns the status that a stage or an iteration is shown with.
func stageStatus(s pipeline.StageState) string {
	switch s {
	case pipeline.StageRunning:
		return string(wire.Running)
	case pipeline.StageComplete:
		return string(wire.Completed)
	case pipeline.StageFailed:
		return string(wire.Failed)
	}
	return string(wire.Pending)
}

// putStages shows the stages of a pipeline, with their iterations.
func (p *runPage) putStages(out *markup.Page) {
	at := p.run.Pipeline
	if at == nil {
		return
	}
	out.Put("<section id=\"stages\" class=\"card\" aria-labelledby=\"stages-h\">\n<div class=\"cardhead\"><h2 id=\"stages-h\">Stages</h2></div>\n")
	p.putUsed(out)
	out.Put("<ul class=\"stages\">\n")
	for _, s := range at.Stages {
		p.putStage(out, s)
	}
	out.Put("</ul>\n</section>\n")
}

// putUsed shows what the pipeline has used of its limits.
func (p *runPage) putUsed(out *markup.Page) {
	at, most := p.run.Pipeline, p.run.Pipeline.Limits
	var words []string
	add := func(limited bool, used, limit string) {
		if limited {
			words = append(words, used+" of at most "+limit)
		}
	}
	add(most.Steps > 0, strconv.Itoa(at.Steps), countOf(most.Steps, "step"))
	add(most.Tokens > 0, formatTokens(at.Tokens), formatTokens(most.Tokens)+" tokens")
	add(most.CostUSD > 0, fmt.Sprintf("$%.2f", at.Cost), fmt.Sprintf("$%.2f", most.CostUSD))
	end := p.now
	if !at.Ended.IsZero() {
		end = at.Ended
	}
	add(most.Seconds > 0, formatDuration(end.Sub(at.Began).Truncate(time.Second)), formatDuration(time.Duration(most.Seconds*float64(time.Second))))
	out.PutIf(len(words) > 0, "<p class=\"dim\">Used: %s</p>\n", strings.Join(words, ", "))
}

// putStage shows a stage: its state, its newest iterations, and the stages in it.
func (p *runPage) putStage(out *markup.Page, s pipeline.StageProgress) {
	out.Put(`<li><p class="stage"><b>%s</b> `, cutText(s.Name, lineLen))
	putStatus(out, stageStatus(s.State))
	if s.Iteration > 0 {
		out.Put(` <span class="dim">iteration %s of at most %s</span>`, s.Iteration, s.MaxIterations)
	}
	out.PutIf(s.Note != "", ` <span class="dim text">%s%s</span>`,
		lo.Ternary(s.State == pipeline.StagePending || s.State == pipeline.StageRunning, "ends: ", ""), cutText(s.Note, reasonLen))
	out.Put("</p>\n")
	newest := s.Iterations[max(0, len(s.Iterations)-iterationsShown):]
	p.putIterations(out, newest)
	if earlier := s.Iterations[:len(s.Iterations)-len(newest)]; len(earlier) > 0 {
		out.Put("<details><summary>Earlier iterations <span class=\"dim\">%s</span></summary>\n", len(earlier)+s.Earlier)
		p.putIterations(out, earlier)
		out.PutIf(s.Earlier > 0, "<p class=\"dim\">The events of the run have the %s before these.</p>\n", countOf(s.Earlier, "iteration"))
		out.Put("</details>\n")
	}
	if len(s.Parts) > 0 {
		out.Put("<ul class=\"stages\">\n")
		for _, part := range s.Parts {
			p.putStage(out, part)
		}
		out.Put("</ul>\n")
	}
	out.Put("</li>\n")
}

// putIterations shows iterations, the newest first.
func (p *runPage) putIterations(out *markup.Page, all []pipeline.IterationProgress) {
	if len(all) == 0 {
		return
	}
	out.Put("<ul class=\"iterations\">\n")
	for _, one := range slices.Backward(all) {
		out.Put(`<li><a href="%s">Iteration %s</a> `, runPath(one.Run), one.Number)
		putStatus(out, stageStatus(one.State))
		took := "–"
		if !one.Ended.IsZero() {
			took = formatDuration(one.Ended.Sub(one.Began))
		}
		out.Put(` <span class="dim">%s · %s</span>`, formatWhen(one.Began, p.now), took)
		words := cmp.Or(strings.Trim(strings.TrimSpace(one.Decision)+": "+one.Why, ": "), p.outputs[one.Run])
		out.PutIf(words != "", ` <span class="what">%s</span>`, firstLine(words))
		out.Put("</li>\n")
	}
	out.Put("</ul>\n")
}

// iterationSpans returns when iterations ran.
func iterationSpans(all []pipeline.StageProgress, now time.Time) (spans []span) {
	for _, s := range all {
		for _, one := range s.Iterations {
			spans = append(spans, span{one.Began, cmp.Or(one.Ended, now)})
		}
		spans = append(spans, iterationSpans(s.Parts, now)...)
	}
	return spans
}

// putStageLanes shows when the iterations of each stage ran.
func putStageLanes(out *markup.Page, all []pipeline.StageProgress, a axis, now time.Time, back func()) {
	for _, s := range all {
		out.Put(`<div class="lane" role="listitem"><p class="name">%s<span>stage</span></p><svg class="bars" height="28" aria-hidden="true">`,
			cutText(s.Name, lineLen))
		back()
		for _, one := range s.Iterations {
			from, to := a.at(one.Began), a.at(cmp.Or(one.Ended, now))
			out.Put(`<rect class="tool %s" x="%s" y="7" width="%s" height="14" rx="2"/>`, stageStatus(one.State), x(from), x(max(.3, to-from)))
			number := strconv.Itoa(one.Number)
			out.PutIf((to-from)*narrowest > float64(8*len(number)+8), `<svg x="%s" y="7"><text x="5" y="11">%s</text></svg>`, x(from), number)
		}
		out.Put("</svg></div>\n")
		putStageLanes(out, s.Parts, a, now, back)
	}
}

// putPausing shows how an operator pauses a run, or resumes it with words for its next iteration or step.
func (p *runPage) putPausing(begin func(name, path string), end func(name string), out *markup.Page) {
	if p.run.Type == wire.Procedural {
		return
	}
	if !p.run.Paused {
		begin("Pause", runPath(p.run.RunID)+"/pause")
		out.Put(`<p class="dim">It pauses after its current step or iteration.</p>
<p><label for="pause-why">Reason</label><input id="pause-why" name="text" maxlength="1000"></p>
`)
		end("Pause the run")
		return
	}
	begin("Resume", runPath(p.run.RunID)+"/resume")
	out.Put(`<p><label for="resume-text">What it is told next <span class="dim">may be empty</span></label>
<textarea id="resume-text" name="text" rows="3"></textarea></p>
`)
	end("Resume the run")
}

// signalRun returns the verb that pauses a run, or resumes it.
func (h *Handler) signalRun(kind durable.SignalKind) verb {
	return func(ctx context.Context, v *view, id string, form url.Values) (string, error) {
		run := agent.RunID(id)
		text := strings.TrimSpace(strings.ReplaceAll(form.Get("text"), "\r\n", "\n"))
		return runPath(run), h.o.Coordinator.Signal(ctx, run, durable.Signal{Kind: kind, Text: text, By: v.who.Name})
	}
}

// signalDetail returns what the audit log says about the form that pauses a run or resumes it.
func signalDetail(r *http.Request) string {
	kind := path.Base(r.URL.Path)
	if !strings.HasPrefix(r.URL.Path, prefix+"runs/") || kind != string(durable.SignalPause) && kind != string(durable.SignalResume) {
		return ""
	}
	return strings.TrimSpace(kind + " " + r.PostForm.Get("text"))
}

// addPipeline adds what happened to a pipeline.
func (s *story) addPipeline(e wire.EventView) {
	var in struct {
		Stage     string      `json:"stage"`
		Iteration int         `json:"iteration"`
		Run       agent.RunID `json:"run"`
		Decision  string      `json:"decision"`
		Why       string      `json:"why"`
		Error     string      `json:"error"`
	}
	if json.Unmarshal(e.Data, &in) != nil {
		return
	}
	of := fmt.Sprintf("iteration %d of stage %s", in.Iteration, in.Stage)
	colon := func(text string) string { return lo.Ternary(text == "", "", ": ") + text }
	var note string
	switch strings.TrimPrefix(e.Type, pipelineEvents) {
	case "iteration_start":
		note = of + " began"
	case "iteration_complete":
		note = of + " is complete" + lo.Ternary(in.Decision == "", "", ", and decided "+in.Decision) + colon(in.Why)
	case "iteration_failed":
		note = of + " failed" + colon(in.Error)
	case "stage_complete":
		note = "stage " + in.Stage + " is complete" + colon(in.Why)
	case "stage_restart":
		note = "stage " + in.Stage + " was restarted"
	case "waiting":
		note = "the pipeline waits" + colon(in.Why)
	case "spawned":
		note = "a hook started " + in.Why
	default:
		return
	}
	s.entries = append(s.entries, entry{note: note, seq: e.Seq, run: in.Run})
	s.trimNotes()
}

// pipelineEvents begins the names of the events of pipelines.
const pipelineEvents = "pipeline."

// notesKept is how many notes, and hooks of a pipeline, a page shows.
const notesKept = 200

// trimNotes drops the oldest note or hook of a pipeline when there are more than the story keeps.
func (s *story) trimNotes() {
	isSmall := func(e entry) bool { return e.step == nil && (e.decision == nil || e.decision.Stage != "") }
	if s.keep == 0 || lo.CountBy(s.entries, isSmall) <= notesKept {
		return
	}
	i := slices.IndexFunc(s.entries, isSmall)
	s.entries = slices.Delete(s.entries, i, i+1)
	s.droppedNotes++
}
