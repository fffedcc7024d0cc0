package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// stepsShown is how many steps of a run a page shows.
const stepsShown = 40

// childrenShown is how many runs that a run has started its page lists.
const childrenShown = 20

// eventsRead is how many events are read from the store at a time.
const eventsRead = 1000

// runPage is what the page of one run shows.
type runPage struct {
	*view

	run      wire.RunDetail
	rules    []wire.RuleView
	waits    []card
	children []row // the newest runs that hooks of this one have started
	story    *story
	// reads says that the page tells the run in sentences.
	reads bool
	// outputs are the beginnings of what the newest iterations of a pipeline have returned.
	outputs map[agent.RunID]string
}

func runPath(id agent.RunID) string { return prefix + "runs/" + url.PathEscape(string(id)) }

// showRun serves the page of one run.
func (h *Handler) showRun(w http.ResponseWriter, r *http.Request, v *view) {
	until, _ := strconv.Atoi(r.URL.Query().Get("until"))
	p, err := h.readRun(r.Context(), v, agent.RunID(r.PathValue("id")), until)
	if err != nil {
		h.fail(w, r, v, "reading a run", err)
		return
	}
	v.title, v.part = firstLine(p.run.AgentName)+" "+shortID(p.run.RunID), partRuns
	p.reads = r.URL.Query().Has("read")
	if until == 0 {
		v.live = fmt.Sprintf("%s/live?after=%d%s", runPath(p.run.RunID), p.story.last, lo.Ternary(p.reads, "&read=1", ""))
	}
	if p.reads {
		p.putSentences()
	} else {
		p.put()
	}
	reply(w, http.StatusOK, v.render())
}

// readRun reads a run with its events. Until is the first step to leave out; zero leaves out none.
func (h *Handler) readRun(ctx context.Context, v *view, id agent.RunID, until int) (*runPage, error) {
	p := &runPage{view: v, story: newStory(id, stepsShown, until)}
	if err := h.readState(ctx, p, id); err != nil {
		return nil, err
	}
	h.readRules(ctx, p)
	return p, h.readEvents(ctx, p)
}

// readRules reads the hooks of the run's blueprint, which do not change. A run whose hooks cannot be read is shown without them.
func (h *Handler) readRules(ctx context.Context, p *runPage) {
	var err error
	if p.rules, err = h.o.Coordinator.RulesOf(ctx, p.run.RunID); err != nil && ctx.Err() == nil {
		h.o.Log.WarnContext(ctx, "control room: reading the hooks of a blueprint", "run", p.run.RunID, "error", err)
	}
}

// readState reads everything about a run but its events.
func (h *Handler) readState(ctx context.Context, p *runPage, id agent.RunID) (err error) {
	if p.run, err = h.o.Coordinator.Run(ctx, id); err != nil {
		return err
	}
	list, err := h.o.Coordinator.ListRuns(ctx, wire.RunFilter{Parent: string(id), Limit: childrenShown})
	if err == nil {
		p.children, err = h.rowsOf(ctx, list.Runs)
	}
	if err == nil {
		err = h.readOutputs(ctx, p)
	}
	if err != nil {
		return err
	}
	p.waits = nil
	if p.run.Status != wire.Waiting {
		return nil
	}
	waits, err := h.o.Store.OpenWaits(ctx, durable.WaitFilter{Run: id, Kinds: approval.InboxKinds(), Limit: cardsShown})
	for _, w := range waits {
		c, err := h.newCard(ctx, p.view, w, runPath(id))
		if err != nil {
			return err
		}
		if c.Question != nil {
			c.input = "" // it is above
			p.waits = append(p.waits, c)
		}
	}
	return err
}

// readEvents adds the events that the story does not have yet.
func (h *Handler) readEvents(ctx context.Context, p *runPage) error {
	return h.readUntil(ctx, p, math.MaxInt64)
}

// readUntil adds the events that the story does not have yet, up to the one with a number.
func (h *Handler) readUntil(ctx context.Context, p *runPage, last int64) error {
	for p.story.last < last {
		limit := int(min(eventsRead, last-p.story.last))
		events, err := h.o.Coordinator.ListEvents(ctx, p.run.RunID, p.story.last, limit)
		if err != nil {
			return err
		}
		for _, e := range events {
			p.story.add(e)
		}
		if len(events) < limit {
			return nil
		}
	}
	return nil
}

// put writes the content of the page.
func (p *runPage) put() {
	p.putHead(&p.Page)
	p.putParameters(&p.Page)
	p.putStages(&p.Page)
	isOpen := p.run.Type == wire.Autonomous && !isEnded(p.run.Status) && len(p.rules) == 0 // more lanes may come, and must not move what is below
	p.PutIf(isOpen, "<div class=\"live\">\n")
	p.putChart(&p.Page)
	p.PutIf(isOpen, "</div>\n")
	p.putChildren(&p.Page)
	p.Put(`<section class="steps" aria-labelledby="story"><h2 id="story">What happened</h2>
`)
	if s := p.story; s.dropped > 0 {
		first := s.dropped + 1
		p.Put(`<p class="more"><a href="?until=%s">Earlier steps</a> <span class="dim">%s before these</span></p>
`, first, countOf(s.dropped, "step"))
	}
	if s := p.story; s.droppedNotes > 0 {
		p.Put("<p class=\"dim\">The events of the run have %s more before these.</p>\n", s.droppedNotes)
	}
	p.Put(`<div id="entries">` + "\n")
	for _, e := range p.story.entries {
		p.putEntry(&p.Page, e)
	}
	p.Put("</div>\n")
	if len(p.story.entries) == 0 {
		p.Put("<p class=\"dim\" id=\"nothing\">Nothing happened yet.</p>\n")
	}
	p.Put("</section>\n")
	p.putResult(&p.Page)
}

// putChildren lists the runs that hooks have started. It is as high before the first one.
func (p *runPage) putChildren(out *markup.Page) {
	out.Put("<div id=\"children\">")
	if len(p.children) > 0 || p.run.HasHooks && !isEnded(p.run.Status) {
		out.Put("<details class=\"card\"><summary><h2>Runs that its hooks started</h2> <span class=\"dim\">%s</span></summary>\n", len(p.children))
		p.putRows(out, "rows", p.children)
		out.Put("</details>\n")
	}
	out.Put("</div>\n")
}

// statusOf returns the status that a run is shown with.
func statusOf(r wire.Run) string {
	if r.Blocked {
		return "blocked"
	}
	return string(r.Status)
}

// putStatus shows a status as a shape and a word.
func putStatus(p *markup.Page, status string) {
	p.Put(`<span class="status s-%s"><i aria-hidden="true"></i>%s</span>`, status, status)
}

// putHead shows which run this is, why it is as it is, and its figures.
func (p *runPage) putHead(out *markup.Page) {
	r := p.run
	out.Put(`<div id="head"><p class="path"><a href="%s">Runs</a> / <code>%s</code></p>
<div class="title"><h1>%s</h1>`, prefix+"runs", cutText(string(r.RunID), lineLen), cutText(r.AgentName, lineLen))
	out.PutIf(r.Version != "", `<span class="dim">v%s</span>`, cutText(r.Version, lineLen))
	putStatus(out, statusOf(r.Run))
	out.Put("</div>\n")
	p.putVerbs(out)
	if text := inputLine(r.Parameters); text != "" {
		out.Put("<p class=\"input\">%s</p>\n", text)
	}
	p.putVerdict(out)
	p.putRetries(out)
	p.putFacts(out)
	p.putReaderLink(out)
	out.Put("</div>\n")
}

// inputLine returns the parameters of a run on one line: the prompt alone, if that is all.
func inputLine(parameters json.RawMessage) string {
	if text := string(parameters); text == "" || text == "{}" || text == "null" {
		return ""
	}
	return firstLine(approval.Arguments(parameters).Preview())
}

// putVerdict says why the run is as it is.
func (p *runPage) putVerdict(out *markup.Page) {
	r := p.run
	card := func(kind verdict, title, reason string) {
		out.Put(`<section class="verdict %s">%s<div><h2>%s</h2>
`, string(kind), icon(kind), title)
		out.PutIf(reason != "", "<p class=\"why text\">%s</p>\n", cutText(reason, reasonLen))
	}
	end := func() { out.Put("</div></section>\n") }
	switch {
	case r.Blocked:
		d, _ := lo.Find(p.story.decisions(), func(d *decision) bool { return d.Around && d.kind == denied })
		if d == nil {
			card(denied, "Blocked", r.Reason)
		} else {
			card(denied, "Blocked by "+cutText(d.Title, lineLen), d.Reason)
		}
		out.Put("<p>")
		out.PutIf(p.story.steps == 0, "Nothing ran. ")
		if d != nil {
			out.Put(`<a href="#%s">See the decision</a>`, d.id())
		}
		out.Put("</p>\n")
		p.putPast(out)
		end()
	case r.Status == wire.Failed:
		card(failed, "Failed", r.Reason)
		p.putPast(out)
		end()
	case r.Status == wire.Stopped:
		card(failed, "Stopped", r.Reason)
		end()
	case r.Status == wire.Waiting:
		p.putWaits(out)
	case r.LastError != "":
		card(failed, "No runner could execute it; it is tried again", r.LastError)
		end()
	}
	for _, change := range r.Changes {
		if strings.Contains(change, " withheld the result: ") {
			card(withheld, "Result withheld", change)
			end()
		}
	}
	for _, text := range r.FailedHooks {
		if !strings.Contains(r.Reason, text) {
			card(failed, "A hook failed", text)
			end()
		}
	}
}

// putWaits shows what the run waits for, and where to answer.
func (p *runPage) putWaits(out *markup.Page) {
	if len(p.waits) == 0 {
		out.Put(`<section class="verdict asked">%s<div><h2>Waits</h2><p>`, icon(asked))
		other := lo.FilterMap(p.run.WaitsFor, func(w wire.WaitView, _ int) (agent.RunID, bool) { return w.Run, w.Run != "" })
		for _, id := range other {
			out.Put(`for run <a href="%s"><code>%s</code></a> `, runPath(id), shortID(id))
		}
		out.PutIf(len(other) == 0, "It is paused, or waits for an event.")
		out.Put("</p></div></section>\n")
	}
	for _, c := range p.waits {
		p.putCard(out, c)
	}
}

// putFacts shows the figures of a run.
func (p *runPage) putFacts(out *markup.Page) {
	r, s := p.run, p.story
	out.Put("<dl class=\"facts\">\n")
	fact := func(name string, value any) { out.Put("<div><dt>%s</dt><dd>%s</dd></div>\n", name, value) }
	link := func(name string, id agent.RunID) {
		out.Put("<div><dt>%s</dt><dd><a href=\"%s\"><code>%s</code></a></dd></div>\n", name, runPath(id), shortID(id))
	}
	const none = "–" // what is not known yet has its place already
	took := none
	if isEnded(r.Status) {
		took = formatDuration(r.UpdatedAt.Sub(r.CreatedAt))
	}
	fact("Began", formatWhen(r.CreatedAt, p.now))
	fact("Took", took)
	if r.Stage != "" {
		fact("Stage", cutText(r.Stage, lineLen))
		fact("Iteration", r.Iteration)
	}
	if r.Type == wire.Autonomous || s.steps > 0 {
		tokens, cost := none, none
		if n := s.usage.InputTokens + s.usage.OutputTokens; n > 0 {
			tokens, cost = formatTokens(n), "unknown"
		}
		if s.usage.CostUSD != nil {
			cost = fmt.Sprintf("$%.4f", *s.usage.CostUSD)
		}
		fact("Steps", s.steps)
		fact("Tokens", tokens)
		fact("Cost", cost)
	}
	if r.SessionID != "" {
		short := cutText(string(r.SessionID[:min(len(r.SessionID), 12)]), lineLen)
		out.Put("<div><dt>Session</dt><dd><a href=\"%s\"><code>%s</code></a></dd></div>\n", sessionPath(r.SessionID), short)
	}
	if r.SubmittedBy != "" {
		fact("By", cutText(r.SubmittedBy, lineLen))
	}
	if r.Runner != "" || !isEnded(r.Status) {
		fact("Runner", cutText(cmp.Or(r.Runner, none), lineLen))
	}
	if r.ParentRunID != "" {
		label := "Parent"
		switch {
		case r.Stage != "":
			label = "Pipeline"
		case r.Hook != "":
			label = firstLine(r.Hook) + " hook of"
		}
		link(label, r.ParentRunID)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		fact(cutText(name, lineLen), cutText(r.Labels[name], lineLen))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Demands)) {
		fact("needs "+cutText(name, lineLen), cutText(r.Demands[name], lineLen))
	}
	out.Put("</dl>\n")
}

func isEnded(s wire.Status) bool {
	return s == wire.Completed || s == wire.Failed || s == wire.Stopped
}

func shortID(id agent.RunID) string { return cutText(string(id[:min(len(id), 12)]), lineLen) }

// putParameters shows the parameters, and how hooks changed them.
func (p *runPage) putParameters(out *markup.Page) {
	r := p.run
	if len(r.OriginalParameters) == 0 && inputLine(r.Parameters) == "" {
		return
	}
	out.Put(`<details id="parameters" class="card"`)
	out.PutIf(len(r.OriginalParameters) > 0, " open")
	out.Put("><summary><h2>Parameters</h2>")
	out.PutIf(len(r.OriginalParameters) > 0, ` <span class="dim">changed by a hook</span>`)
	out.Put("</summary>\n")
	if len(r.OriginalParameters) > 0 {
		putDiff(out, string(r.OriginalParameters), string(r.Parameters))
	} else {
		putText(out, approval.Arguments(r.Parameters).Text())
	}
	out.Put("</details>\n")
}

// putText shows long text. It is cut, but not escaped again: its invisible characters are escapes already.
func putText(out *markup.Page, text string) {
	out.Put("<pre tabindex=\"0\">%s</pre>\n", cutText(text, longText))
}

// putDiff shows how arguments differ.
func putDiff(out *markup.Page, before, after string) {
	putLines(out, cutText(approval.Diff(approval.Arguments(before), approval.Arguments(after)), longText))
}

// putLines shows a diff.
func putLines(out *markup.Page, text string) {
	out.Put("<pre class=\"diff\" tabindex=\"0\">")
	for one := range strings.Lines(text) {
		tag := map[byte]markup.HTML{'-': "del", '+': "ins"}[one[0]]
		if tag == "" {
			tag = "span"
		}
		out.Put("<%s>%s</%s>", tag, strings.TrimSuffix(one, "\n"), tag)
	}
	out.Put("</pre>\n")
}

// putResult shows the result of the run.
func (p *runPage) putResult(out *markup.Page) {
	r := p.run
	out.Put("<div id=\"result\">")
	if text := cmp.Or(lo.FromPtr(r.ResultText), string(r.ResultData)); r.Status == wire.Completed && text != "" && text != "null" {
		out.Put("<section class=\"card\"><h2>Result</h2>\n")
		if r.ResultText == nil {
			text = approval.Arguments(text).Text()
		}
		putText(out, text)
		out.Put("</section>\n")
	}
	out.Put("</div>\n")
}

// entryID returns the ID of an entry on the page.
func (s *story) entryID(e entry) string {
	switch {
	case e.step != nil:
		return e.step.id(s.root)
	case e.decision != nil:
		return e.decision.id()
	}
	return fmt.Sprintf("n-%d", e.seq)
}

// putEntry shows a step, a hook around the run, or a note.
func (s *story) putEntry(out *markup.Page, e entry, status wire.Status) {
	switch {
	case e.step != nil:
		s.putStep(out, e.step)
	case e.decision != nil:
		d := *e.decision
		if d.kind == running && isEnded(status) {
			d.Outcome = coordinator.HookInterrupted
		}
		out.Put(`<article class="card around %s" id="%s">`, string(d.kind), d.id())
		d.putContent(out)
		out.Put("</article>\n")
	default:
		out.Put("<p class=\"note\" id=\"n-%s\">%s", e.seq, cutText(e.note, reasonLen))
		out.PutIf(e.run != "", ` · <a href="%s">run</a>`, runPath(e.run))
		out.Put("</p>\n")
	}
}

// putStep shows what the model said, and its calls.
func (s *story) putStep(out *markup.Page, at *step) {
	out.Put(`<article class="card step" id="%s">`, at.id(s.root))
	for _, text := range at.input {
		out.Put("<div class=\"said\"><h3>User</h3>\n")
		putText(out, text)
		out.Put("</div>\n")
	}
	out.Put("<header><h3>Step %s", at.key.step+1)
	out.PutIf(at.agent != "", " <span class=\"dim\">sub-agent %s</span>", cutText(at.agent, lineLen))
	out.Put("</h3><p class=\"dim\">")
	if n := at.usage; n.InputTokens+n.OutputTokens > 0 {
		out.Put("%s in · %s out", formatTokens(n.InputTokens), formatTokens(n.OutputTokens))
		out.PutIf(n.CostUSD != nil, " · $%s", strconv.FormatFloat(lo.FromPtr(n.CostUSD), 'f', 4, 64))
	}
	out.PutIf(at.tookMS > 0, " · %s", formatDuration(time.Duration(at.tookMS)*time.Millisecond))
	out.PutIf(at.model != "", " · %s", cutText(at.model, lineLen))
	out.Put("</p></header>\n")
	if strings.TrimSpace(at.text) != "" {
		out.Put("<p class=\"text\">%s</p>\n", cutText(at.text, longText))
	}
	for _, note := range at.notes {
		out.Put("<p class=\"note\">%s</p>\n", cutText(note, reasonLen))
	}
	for _, d := range at.other {
		d.put(out)
	}
	for _, c := range at.calls {
		c.put(out)
	}
	out.PutIf(at.err != "", "<p class=\"text bad\">%s</p>\n", cutText(at.err, reasonLen))
	out.Put("</article>\n")
}

// look returns the kind of the call's outcome.
func (c *call) look() verdict {
	d := c.done
	switch {
	case d == nil && len(c.questions) > 0 && len(c.answers) == 0:
		return asked
	case d == nil:
		return running
	case d.Denied:
		return denied
	case d.Reason == agent.ReasonWithheld:
		return withheld
	case d.Status != agent.ToolExecuted:
		return failed
	}
	return passed
}

// outcome says what became of a call, as "grapnel runs show" does.
func (c *call) outcome() string {
	d := c.done
	if d == nil {
		if c.look() == asked {
			return "waits for an answer"
		}
		return lo.Ternary(c.runs, "running", "")
	}
	by := cmp.Or(d.DecidedBy, "a hook")
	words := "ok"
	switch {
	case d.Reason == agent.ReasonNobodyToAsk:
		return "not run: no person is here to approve"
	case d.Reason == agent.ReasonRejected:
		return "not run: " + cmp.Or(d.DecidedBy, "a person") + " rejected it"
	case d.Reason == agent.ReasonHookFailed:
		return "not run: " + by + " could not decide"
	case d.Denied:
		return "denied by " + by
	case d.Reason == agent.ReasonWithheld:
		words = lo.Ternary(d.Status == agent.ToolExecuted, "result withheld", "not run, result withheld")
	case d.Status == agent.ToolUnknown:
		return agent.NotRepeated
	case d.Status == agent.ToolMocked:
		words = "answered by " + by
	case d.Reason != "" || d.Status == agent.ToolFailed:
		words = lo.Ternary(d.Status == agent.ToolNotExecuted, "not run", "failed")
	}
	if d.Attempts > 1 {
		words += fmt.Sprintf(" · %d attempts", d.Attempts)
	}
	if d.DurationMS > 0 {
		words += " · " + formatDuration(time.Duration(d.DurationMS)*time.Millisecond)
	}
	return words
}

// put shows a call: what the model asked for, who decided what, and what came of it.
func (c *call) put(out *markup.Page) {
	out.Put(`<div class="call c-%s"><p class="cmd"><code class="tool">%s</code> <code>%s</code></p>
`, string(c.look()), cutText(c.tool, lineLen), firstLine(approval.Arguments(c.original).Preview()))
	rewritten := false
	for _, d := range c.decisions {
		d.put(out)
		rewritten = rewritten || d.After != ""
	}
	for _, a := range c.answers {
		out.Put(`<p class="answer"><b>%s</b> by %s`, cutText(a.Verdict, lineLen), cutText(cmp.Or(a.Identity, a.By, "a person"), lineLen))
		out.PutIf(a.Reason != "", `: <span class="text">%s</span>`, cutText(a.Reason, reasonLen))
		out.Put("</p>\n")
	}
	if c.arguments != c.original && !rewritten {
		out.Put("<p class=\"dim\">with changed arguments:</p>\n")
		putDiff(out, c.original, c.arguments)
	}
	for _, name := range c.subagents {
		out.Put("<p class=\"dim\">sub-agent %s</p>\n", cutText(name, lineLen))
	}
	if text := c.outcome(); text != "" {
		out.Put(`<p class="outcome">%s <span>%s</span></p>
`, icon(c.look()), cutText(text, reasonLen))
	}
	if d := c.done; d != nil && !d.Denied && strings.TrimSpace(d.Text) != "" {
		lines := strings.Count(strings.TrimRight(d.Text, "\n"), "\n") + 1
		if lines > 6 || len(d.Text) > 600 {
			out.Put("<details><summary>Result <span class=\"dim\">%s</span></summary>\n", countOf(lines, "line"))
			putText(out, d.Text)
			out.Put("</details>\n")
		} else {
			putText(out, d.Text)
		}
	}
	if shown := approval.Arguments(c.original).Text(); len(shown) > lineLen {
		out.Put("<details><summary>Arguments</summary>\n")
		putText(out, shown)
		out.Put("</details>\n")
	}
	out.Put("</div>\n")
}

// put shows a decision inside a step.
func (d *decision) put(out *markup.Page) {
	out.Put(`<div class="decision %s" id="%s">`, string(d.kind), d.id())
	d.putContent(out)
	out.Put("</div>\n")
}

// putContent shows who decided what, and why.
func (d *decision) putContent(out *markup.Page) {
	out.Put(`<p class="what">%s <span>%s: <b>%s</b> <span class="dim">%s`, icon(d.kind), cutText(d.Title, lineLen), cutText(d.Words(), lineLen),
		d.at.UTC().Format(clock))
	out.PutIf(d.kind != running, ", %s", formatDuration(d.at.Sub(d.from)))
	out.Put("</span></span></p>\n")
	out.PutIf(d.Reason != "", "<p class=\"text\">%s</p>\n", cutText(d.Reason, reasonLen))
	out.PutIf(d.Error != "", "<p class=\"text bad\">%s</p>\n", cutText(d.Error, reasonLen))
	if d.After != "" && d.After != d.Before {
		putDiff(out, d.Before, d.After)
	}
	if len(d.Facts) > 0 {
		out.Put("<details><summary>Because</summary><dl class=\"because\">\n")
		for _, f := range d.Facts {
			out.Put("<dt><code>%s</code></dt><dd><code>%s</code></dd>\n", cutText(f.Name, reasonLen), cutText(f.Value, reasonLen))
		}
		out.Put("</dl></details>\n")
	}
	if o := d.Origin; o != nil && o.File != "" {
		out.Put("<p class=\"dim\">rule <code>%s</code> in <code>%s:%s</code></p>\n", cutText(o.Rule, lineLen), cutText(o.File, lineLen), o.Line)
	}
	d.putTools(out)
	if d.Started != "" {
		out.Put("<p>its run <a href=\"%s\"><code>%s</code></a></p>\n", runPath(d.Started), shortID(d.Started))
	}
}
