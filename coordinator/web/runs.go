package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/markup"
)

const (
	// rowsShown is how many runs a page lists.
	rowsShown = 50
	// partShown is how many runs a part of the first page lists.
	partShown = 8
)

// tabs are the lists of runs by status.
var tabs = []struct {
	name, title string
	filter      wire.RunFilter
}{
	{"", "All", wire.RunFilter{}},
	{"waiting", "Waiting", wire.RunFilter{Status: []string{string(wire.Waiting)}}},
	{"running", "Running", wire.RunFilter{Status: activeStatuses}},
	{"blocked", "Blocked", wire.RunFilter{Blocked: true}},
	{"failed", "Failed", wire.RunFilter{Status: []string{string(wire.Failed), string(wire.Stopped)}}},
	{"hooks", "With hooks", wire.RunFilter{HasHooks: true}},
}

var activeStatuses = []string{string(wire.Pending), string(wire.Hooking), string(wire.Running)}

// row is one run in a list.
type row struct {
	wire.Run

	// why is the question that a waiting run asks.
	why string
}

// query says which runs a list has.
type query struct {
	tab, name, text, before string
	shown                   string // the hash of the rows that the page of a stream shows
}

func queryOf(values url.Values) query {
	return query{values.Get("show"), strings.TrimSpace(values.Get("name")), strings.TrimSpace(values.Get("q")), values.Get("before"), values.Get("shown")}
}

// address returns the address of a page below the list of runs.
func (q query) address(path string) string {
	values := url.Values{}
	for name, value := range map[string]string{"show": q.tab, "name": q.name, "q": q.text, "before": q.before, "shown": q.shown} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return prefix + path
	}
	return prefix + path + "?" + values.Encode()
}

// filter returns the filter of the query; ok is false for an unknown tab.
func (q query) filter() (f wire.RunFilter, ok bool) {
	i := slices.IndexFunc(tabs, func(t struct {
		name, title string
		filter      wire.RunFilter
	},
	) bool {
		return t.name == q.tab
	})
	if i < 0 {
		return f, false
	}
	f = tabs[i].filter
	f.AgentName, f.Query, f.Before, f.Limit = q.name, q.text, q.before, rowsShown
	return f, true
}

// readRows returns a page of runs, and its rows.
func (h *Handler) readRows(ctx context.Context, q query) (list wire.RunList, rows []row, err error) {
	f, ok := q.filter()
	if !ok {
		return list, nil, errUnknownList
	}
	if list, err = h.o.Coordinator.ListRuns(ctx, f); err != nil {
		return list, nil, err
	}
	rows, err = h.rowsOf(ctx, list.Runs)
	return list, rows, err
}

var errUnknownList = errors.New("there is no such list of runs")

// rowsOf adds to runs the questions that waiting ones ask.
func (h *Handler) rowsOf(ctx context.Context, runs []wire.Run) ([]row, error) {
	rows := lo.Map(runs, func(r wire.Run, _ int) row { return row{Run: r} })
	for i := range rows {
		if rows[i].Status != wire.Waiting {
			continue
		}
		items, _, err := approval.Inbox(ctx, h.o.Store, durable.WaitFilter{Run: rows[i].RunID, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(items) > 0 {
			rows[i].why = strings.TrimSpace(waitTitle(items[0]) + " " + previewOf(items[0]))
		}
	}
	return rows, nil
}

// reason returns why a run is as it is, on one line.
func (r row) reason() string {
	switch {
	case r.why != "":
		return firstLine(r.why)
	case r.Reason != "":
		return firstLine(r.Reason)
	case len(r.Changes)+len(r.FailedHooks) > 0:
		return firstLine(strings.Join(slices.Concat(r.FailedHooks, r.Changes), "; "))
	}
	return ""
}

// showRuns serves a list of runs.
func (h *Handler) showRuns(w http.ResponseWriter, r *http.Request, v *view) {
	q := queryOf(r.URL.Query())
	if strings.HasPrefix(q.text, "run_") {
		if _, err := h.o.Coordinator.Run(r.Context(), agent.RunID(q.text)); err == nil {
			http.Redirect(w, r, runPath(agent.RunID(q.text)), http.StatusSeeOther)
			return
		}
	}
	list, rows, err := h.readRows(r.Context(), q)
	if err != nil {
		h.fail(w, r, v, "listing runs", err)
		return
	}
	v.title, v.part = "Runs", partRuns
	if q.before == "" && q.text == "" {
		live := q
		live.shown = hashRows(rows)
		v.live = live.address("runs/live")
	}
	v.Put("<div class=\"title\"><h1>Runs</h1>")
	v.putNew()
	v.Put(`<form class="search" role="search" action="%s"><input type="hidden" name="show" value="%s">
<label><span class="hide">Agent</span><input name="name" value="%s" placeholder="Agent" autocomplete="off" spellcheck="false" size="10"></label>
<label class="wide"><span class="hide">Text, label or run ID</span>
<input type="search" name="q" value="%s" placeholder="Text, label or run ID" autocomplete="off" data-slash></label>
<button>Search</button></form></div>
<nav class="tabs" aria-label="Which runs"><ul>
`, prefix+"runs", cutText(q.tab, lineLen), cutText(q.name, lineLen), cutText(q.text, lineLen))
	for _, t := range tabs {
		v.Put(`<li><a href="%s"`, query{tab: t.name, name: q.name, text: q.text}.address("runs"))
		v.PutIf(t.name == q.tab, ` aria-current="page"`)
		v.Put(">%s</a></li>\n", t.title)
	}
	v.Put("</ul></nav>\n")
	v.putRows(&v.Page, "rows", rows)
	if len(rows) == 0 {
		var first []wire.Stored
		if q == (query{}) {
			first = h.readFirst(r.Context(), v)
		}
		v.putNone(q, list.Next, first)
	}
	if list.Next != "" {
		older := q
		older.before = list.Next
		text := "Older runs"
		if q.text != "" {
			text = "Search older runs"
			age := lo.Ternary(q.before == "", "newest", "next")
			v.Put("<p class=\"dim\" id=\"searched\">This page searched the %s %d runs.</p>\n", age, list.Searched)
		}
		v.Put(`<p class="more"><a class="button" href="%s">%s</a></p>
`, older.address("runs"), text)
	}
	reply(w, http.StatusOK, v.render())
}

// putNew leads an operator to the forms that submit runs.
func (v *view) putNew() {
	v.PutIf(v.isOperator(), "<a class=\"button\" href=\"%s\">New run</a>", submitPath)
}

// putNone says that a list is empty, and what to do.
func (v *view) putNone(q query, next string, first []wire.Stored) {
	switch {
	case next != "":
		v.Put("<p class=\"dim\" id=\"none\">None of these runs match.</p>\n")
	case q != (query{}):
		v.Put("<p class=\"dim\" id=\"none\">No run matches. <a href=\"%s\">Show all runs</a></p>\n", prefix+"runs")
	default:
		v.putFirst(&v.Page, first)
	}
}

// putRows shows runs as a list.
func (v *view) putRows(p *markup.Page, id string, rows []row) {
	p.Put("<ul class=\"rows\" id=\"%s\">\n", id)
	for _, r := range rows {
		v.putRow(p, r)
	}
	p.Put("</ul>\n")
}

// putRow shows a run in a list.
func (v *view) putRow(p *markup.Page, r row) {
	took := ""
	if isEnded(r.Status) {
		took = formatDuration(r.UpdatedAt.Sub(r.CreatedAt))
	}
	p.Put(`<li id="r-%s"><a class="row" data-key href="%s"><span class="what"><b>%s</b> <span class="input">%s</span>`,
		cutText(string(r.RunID), lineLen), runPath(r.RunID), cutText(r.AgentName, lineLen), firstLine(r.Summary))
	look := "s-" + statusOf(r.Run)
	if r.Status == wire.Completed { // it says what hooks did
		look = lo.Ternary(len(r.FailedHooks) > 0, "failed", "dim")
	}
	p.PutIf(r.reason() != "", `<span class="why %s">%s</span>`, look, r.reason())
	p.Put("</span>")
	putStatus(p, statusOf(r.Run))
	p.Put(`<span class="badges">%s</span><span class="took">%s</span><span class="when">%s</span></a></li>
`, badges(r.Run), took, formatWhen(r.CreatedAt, v.now))
}

// hashRows returns a hash over what rows show, whatever the time is.
func hashRows(rows []row) string {
	var p markup.Page
	for _, r := range rows {
		(&view{now: r.CreatedAt}).putRow(&p, r)
	}
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:8])
}

// badges returns a mark for each kind of decision of hooks about the run.
func badges(r wire.Run) markup.HTML {
	var p markup.Page
	badge := func(kind verdict, n int, word string) {
		if n > 0 {
			p.Put(`<span class="count %s" title="%s">%s<span class="hide">%s</span>%s</span>`,
				string(kind), fmt.Sprintf("%d %s", n, word), icon(kind), word+" ", n)
		}
	}
	of := func(kinds ...durable.Decision) (n int) {
		for _, k := range kinds {
			n += int(r.Decisions[k])
		}
		return n
	}
	held := lo.CountBy(r.Changes, func(c string) bool { return strings.Contains(c, " withheld the result: ") })
	badge(denied, max(of(durable.DecisionBlocked, durable.DecisionDenied), lo.Ternary(r.Blocked, 1, 0)), "denied")
	badge(withheld, max(of(durable.DecisionWithheld), held), "withheld")
	badge(asked, of(durable.DecisionAsked), "asked")
	badge(rewrote, max(of(durable.DecisionRewritten), len(r.Changes)-held), "changed")
	badge(failed, max(of(durable.DecisionFailed, durable.DecisionTimeout), len(r.FailedHooks)), "failed hooks")
	badge(shadow, of(durable.DecisionShadow), "in shadow")
	return markup.HTML(p.String())
}

// overview is what the first page lists.
type overview struct {
	waits                   []approval.Item
	running, failed, recent []row
	// first are blueprints for the first run: see readFirst.
	first []wire.Stored
}

func (o *overview) isEmpty() bool {
	return len(o.running)+len(o.failed)+len(o.recent)+len(o.waits) == 0
}

// readOverview reads what waits, what runs, what failed, and what was submitted last.
func (h *Handler) readOverview(ctx context.Context, v *view) (o overview, err error) {
	if o.waits, _, err = approval.Inbox(ctx, h.o.Store, durable.WaitFilter{Limit: partShown}); err != nil {
		return o, err
	}
	for _, part := range []struct {
		into *[]row
		f    wire.RunFilter
	}{
		{&o.running, wire.RunFilter{Status: activeStatuses}},
		{&o.failed, wire.RunFilter{Status: []string{string(wire.Failed), string(wire.Stopped)}}},
		{&o.recent, wire.RunFilter{Status: []string{string(wire.Completed)}}},
	} {
		part.f.Limit = partShown
		list, err := h.o.Coordinator.ListRuns(ctx, part.f)
		if err != nil {
			return o, err
		}
		if *part.into, err = h.rowsOf(ctx, list.Runs); err != nil {
			return o, err
		}
	}
	if o.isEmpty() {
		o.first = h.readFirst(ctx, v)
	}
	return o, nil
}

// showOverview serves the first page.
func (h *Handler) showOverview(w http.ResponseWriter, r *http.Request, v *view) {
	o, err := h.readOverview(r.Context(), v)
	if err != nil {
		h.fail(w, r, v, "reading what happens", err)
		return
	}
	v.title, v.part, v.live = "Now", partNow, prefix+"live"
	v.Put("<div class=\"title\"><h1>Now</h1>")
	v.putNew()
	v.Put("</div>\n")
	v.putOverview(&v.Page, o)
	reply(w, http.StatusOK, v.render())
}

func (v *view) putOverview(p *markup.Page, o overview) {
	p.Put("<div id=\"now\">\n<section id=\"waits\"><h2>Waits for people</h2>\n")
	if len(o.waits) == 0 {
		p.Put("<p class=\"dim\">Nothing waits for a person.</p>\n")
	}
	p.Put("<ul class=\"rows\">\n")
	for _, i := range o.waits {
		reason := ""
		if len(i.Questions) > 0 && !isBare(i) { // whose title it is
			reason = i.Questions[0].Reason
		}
		p.Put(`<li><a class="row" data-key href="%s"><span class="what"><b>%s</b> <code class="input">%s</code><span class="why s-waiting">%s</span></span>`+
			`<span class="status s-waiting"><i aria-hidden="true"></i>%s</span><span class="badges"></span><span class="took"></span>`+
			`<span class="when">%s</span></a></li>
`, runPath(i.Run), waitTitle(i), firstLine(previewOf(i)), firstLine(reason), firstLine(i.AgentText()), formatWhen(i.Asked, v.now))
	}
	p.Put("</ul>\n")
	p.PutIf(len(o.waits) > 0, "<p class=\"more\"><a href=\"%s\">Answer in the inbox</a></p>\n", inboxPath)
	p.Put("</section>\n")
	for _, part := range []struct {
		id, title, none, tab string
		rows                 []row
	}{
		{"running", "Running", "Nothing runs.", "running", o.running},
		{"failed", "Blocked, failed or stopped", "No run was blocked, failed or stopped.", "failed", o.failed},
		{"recent", "Completed", "No run is completed yet.", "", o.recent},
	} {
		p.Put("<section id=\"%s\"><h2>%s</h2>\n", part.id, part.title)
		p.PutIf(len(part.rows) == 0, "<p class=\"dim\">%s</p>\n", part.none)
		v.putRows(p, "rows-"+part.id, part.rows)
		p.PutIf(len(part.rows) == partShown, "<p class=\"more\"><a href=\"%s\">More</a></p>\n", query{tab: part.tab}.address("runs"))
		p.Put("</section>\n")
	}
	if o.isEmpty() {
		v.putFirst(p, o.first)
	}
	p.Put("</div>\n")
}
