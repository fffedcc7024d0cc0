package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/linediff"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/policy/backtest"
	"github.com/grapnel-go/grapnel/policy/library"
)

const whatIfPath = prefix + "whatif"

// whatIf is what the form of a replay says.
type whatIf struct {
	before, policy string
	file           string // the name of the file with the rules
	hook           string // the rule that the form is about; empty for none
	run            agent.RunID
	agent          string
	days           string
}

// whatIfDays are the times that the form offers, in days.
var whatIfDays = []string{"1", "7", "30", "90", ""}

// showWhatIf serves the form of a replay: of a decision's rule, of a blueprint, or empty.
func (h *Handler) showWhatIf(w http.ResponseWriter, r *http.Request, v *view) {
	q := r.URL.Query()
	in := whatIf{run: agent.RunID(q.Get("run")), agent: ifVisible(q.Get("agent")), days: "30"}
	err := h.readRulesFor(r.Context(), &in, q)
	if err != nil && !errors.Is(err, durable.ErrNotFound) {
		h.fail(w, r, v, "reading rules", err)
		return
	}
	v.beginWhatIf()
	v.putWhatIf(in)
	reply(w, http.StatusOK, v.render())
}

func (v *view) beginWhatIf() {
	v.title, v.part = "What if", partRules
	v.Put(`<h1>%s</h1>
<p>Change a rule, and see what it would have done to stored runs. Nothing that is in force changes. Rules are a policy file, a blueprint, or library:NAME.</p>
`, v.title)
}

// readRulesFor fills in the current rules from a library policy or a blueprint. Other policies are in an agent's program, and are left
// empty for the person to paste.
func (h *Handler) readRulesFor(ctx context.Context, in *whatIf, q url.Values) error {
	in.file, in.hook = ifVisible(q.Get("file")), ifVisible(q.Get("hook"))
	if name, _, ok := strings.Cut(in.hook, "/"); ok && in.file == "" && strings.HasPrefix(name, library.Prefix) {
		in.file = name
	}
	if strings.HasPrefix(in.file, library.Prefix) {
		p, err := library.Find(in.file)
		if err != nil {
			return nil //nolint:nilerr // a made-up name: people can write the rules
		}
		in.before, in.file = string(p.Text), p.Name+".yaml"
		in.policy = in.before
	}
	if in.run != "" {
		run, err := h.o.Coordinator.Run(ctx, in.run)
		if err != nil {
			return err
		}
		in.agent = cmp.Or(in.agent, ifVisible(run.AgentName))
	}
	if in.before != "" || in.agent == "" || in.file != "" && in.file != in.agent+".json" {
		return nil
	}
	b, err := h.o.Coordinator.Blueprint(ctx, in.agent, 0)
	if err != nil {
		return err
	}
	data, err := json.Marshal(b.Blueprint)
	if text := jsonText(data); err == nil && len(b.Hooks) > 0 && ifVisible(text) != "" {
		in.before, in.policy, in.file = text, text, b.Name+".yaml"
	}
	return err
}

// ifVisible returns text for a field, which shows no escapes; empty if it has invisible characters.
func ifVisible(text string) string { return lo.Ternary(invisible.Escape(text) == text, text, "") }

// putWhatIf shows the form.
func (v *view) putWhatIf(in whatIf) {
	v.PutIf(in.before == "" && in.hook != "",
		"<p>The rules of <code>%s</code> are in a file of its program: paste that twice, and change it on the right.</p>\n",
		cutText(in.hook, lineLen))
	v.Put(`<form method="post" action="%s" class="card whatif" autocomplete="off">
<p><label for="before">The rules as they are <span class="dim">may be empty</span></label>
<textarea id="before" name="before" rows="12" spellcheck="false" class="code">
%s</textarea></p>
<p><label for="policy">The rules to try</label>
<textarea id="policy" name="policy" rows="12" spellcheck="false" class="code" required>
%s</textarea></p>
<p><label for="file">File <span class="dim">the name that the patch has</span></label><input id="file" name="file" value="%s" maxlength="200"></p>
`, whatIfPath, in.before, in.policy, in.file)
	v.Put(`<p><label for="agent">Blueprint or agent <span class="dim">empty for all</span></label>
<input id="agent" name="agent" value="%s" maxlength="200"></p>
<p><label for="days">Runs of</label><select id="days" name="days">
`, in.agent)
	for _, days := range whatIfDays {
		n, _ := strconv.Atoi(days) // zero for all
		v.Put(`<option value="%s"`, days)
		v.PutIf(days == in.days, " selected")
		v.Put(">%s</option>\n", lo.Ternary(n == 0, "all times", "the last "+countOf(n, "day")))
	}
	v.Put("</select></p>\n")
	if in.run != "" {
		v.Put(`<p class="box"><input type="checkbox" id="run" name="run" value="%s" checked><label for="run">Only run <code>%s</code></label></p>
`, string(in.run), shortID(in.run))
	}
	v.Put("<p><button class=\"yes\">Replay the runs</button></p></form>\n")
}

// readWhatIf reads the form.
func readWhatIf(w http.ResponseWriter, r *http.Request) (in whatIf, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, 2*verbBytes)
	if err := r.ParseForm(); err != nil {
		return in, errForm
	}
	text := func(name string) string { return strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n") }
	return whatIf{
		before: text("before"), policy: text("policy"), file: text("file"), run: agent.RunID(text("run")), agent: text("agent"), days: text("days"),
	}, nil
}

// request returns the request of a form.
func (in whatIf) request(now time.Time) wire.WhatIfRequest {
	out := wire.WhatIfRequest{Policy: in.policy, Before: in.before, RunID: in.run, AgentName: in.agent}
	if days, err := strconv.Atoi(in.days); err == nil && days > 0 && days < 10_000 {
		out.Since = now.AddDate(0, 0, -days)
	}
	return out
}

// contentPlace is where the content of a streamed page is in its frame.
const contentPlace = "<!-- content -->"

// replayRuns replays runs, and sends its page as it goes on: how far it is, and then the result. It ends when the person leaves the page.
func (h *Handler) replayRuns(w http.ResponseWriter, r *http.Request, v *view) {
	in, err := readWhatIf(w, r)
	v.streams = true
	v.beginWhatIf()
	v.Put("%s", markup.HTML(contentPlace))
	above, below, _ := strings.Cut(v.render(), contentPlace)
	begun := false
	control := http.NewResponseController(w)
	send := func(text string) {
		if !begun {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			cancel := "<p class=\"cancel\"><a class=\"button\" href=\"" + whatIfPath + "\">Cancel</a></p>\n"
			text, begun = above+cancel+"<div class=\"progress\" role=\"status\">\n"+text, true
		}
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		_, _ = w.Write([]byte(text))
		_ = control.Flush()
	}
	var out wire.WhatIf
	if err == nil {
		out, err = h.o.Coordinator.WhatIf(r.Context(), in.request(v.now), func(p wire.WhatIfProgress) {
			var line markup.Page
			line.Put("<p>%s of %s replayed. Stopped calls: %s with the rules as they are, %s with those to try.</p>\n",
				p.Runs, countOf(p.Of, "run"), p.StoppedBefore, p.StoppedAfter)
			send(line.String())
		})
	}
	if err != nil && !begun {
		h.failWhatIf(w, r, v, in, err)
		return
	}
	v.Page = markup.Page{}
	if err != nil { // it is too late for a status
		h.logError(r, "replaying runs", err)
		v.Put("<p class=\"text bad\" role=\"alert\">The replay failed. Try again in a moment.</p>\n")
	} else {
		v.putReplayed(in, out)
	}
	v.putWhatIf(in)
	if !begun {
		send("")
	}
	send("</div>\n" + v.String() + below)
}

// failWhatIf shows the form again, with what is wrong.
func (h *Handler) failWhatIf(w http.ResponseWriter, r *http.Request, v *view, in whatIf, err error) {
	status := http.StatusUnprocessableEntity
	invalid, isInvalid := errors.AsType[*coordinator.InvalidError](err)
	switch {
	case isInvalid:
		err = invalid
	case errors.Is(err, coordinator.ErrBusy):
		status = http.StatusTooManyRequests
	case errors.Is(err, durable.ErrNotFound):
		status, err = http.StatusNotFound, errors.New("there is no such run")
	case !errors.Is(err, errForm):
		h.fail(w, r, v, "replaying runs", err)
		return
	}
	v.streams, v.Page = false, markup.Page{}
	v.beginWhatIf()
	v.Put("<p class=\"text bad\" role=\"alert\">%s</p>\n", cutText(err.Error(), longText))
	v.putWhatIf(in)
	reply(w, status, v.render())
}

// putReplayed shows what the rules would have done.
func (v *view) putReplayed(in whatIf, out wire.WhatIf) {
	v.Put("<section class=\"replayed\" aria-labelledby=\"result\"><h2 id=\"result\">What would change</h2>\n<dl class=\"facts\">\n")
	fact := func(name string, n int) { v.Put("<div><dt>%s</dt><dd>%s</dd></div>\n", name, n) }
	fact("Newly denied", out.NewlyDenied)
	fact("Newly asked", out.NewlyAsked)
	fact("Newly allowed", out.NewlyAllowed)
	fact("Changed", out.Changed)
	fact("Good runs broken", out.Broken)
	fact("Good runs mended", out.Mended)
	fact("Runs", out.Runs)
	fact("Calls", out.Calls)
	v.Put("</dl>\n<p class=\"dim\">Good runs were completed: %s. "+
		"Broken ones have a call that had succeeded and is now denied or asked about. It took %s.</p>\n",
		out.Good, formatDuration(time.Duration(out.Seconds*float64(time.Second))))
	v.PutIf(out.Cut, "<p>Only the newest %s: there are older ones.</p>\n", countOf(out.Runs, "run"))
	v.PutIf(out.Interrupted, "<p>It was stopped before its end.</p>\n")
	if len(out.Groups) == 0 {
		v.Put("<p><b>No call would be treated differently.</b></p>\n")
	}
	v.Put("<ul class=\"changes\">\n")
	for _, g := range out.Groups {
		v.putChange(in, g)
	}
	v.Put("</ul>\n")
	if len(out.NotJudged) > 0 {
		v.Put("<h3>What a replay cannot tell</h3>\n<ul class=\"dim\">\n")
		for _, n := range out.NotJudged {
			v.Put("<li>%s", cutText(n.Why, reasonLen))
			v.PutIf(n.Runs > 0, " (%s)", countOf(n.Runs, "run"))
			v.PutIf(len(n.Rules) > 0, " <code>%s</code>", cutText(strings.Join(n.Rules, ", "), reasonLen))
			v.Put("</li>\n")
		}
		v.Put("</ul>\n")
	}
	if before := in.before; before != in.policy {
		v.Put(`<form method="post" action="%s/patch" class="card"><textarea name="before" hidden>
%s</textarea><textarea name="policy" hidden>
%s</textarea><input type="hidden" name="file" value="%s">
<p>The patch changes the file of the rules. Who puts it in force decides so elsewhere.</p><p><button>Download the patch</button></p></form>
`, whatIfPath, before, in.policy, in.file)
	}
	v.Put("</section>\n")
}

// caseWords are the words of files of cases for the effects of rules.
var caseWords = map[string]string{
	string(backtest.Allowed): "pass", string(backtest.Denied): "deny", string(backtest.Asked): "ask", string(backtest.Rewritten): "rewrite",
	string(backtest.Mocked): "mock", string(backtest.Stopped): "stop",
}

// putChange shows a group of calls that would be treated differently.
func (v *view) putChange(in whatIf, g wire.WhatIfGroup) {
	kind := map[string]verdict{
		string(backtest.Allowed): passed, string(backtest.Denied): denied, string(backtest.Asked): asked, string(backtest.Redacted): withheld,
	}[g.To]
	look := cmp.Or(kind, rewrote)
	v.Put(`<li class="card"><p class="what"><span class="%s">%s</span> <span><b>%s → %s</b>: %s in %s`,
		string(look), icon(look), g.From, g.To, countOf(g.Calls, "call"), countOf(g.Runs, "run"))
	v.PutIf(g.Tool != "", " of <code>%s</code>", cutText(g.Tool, lineLen))
	v.PutIf(g.Worked > 0, ", %s had succeeded", g.Worked)
	v.Put(` <span class="dim">by %s</span></span></p>
<p class="cmd"><code>%s</code></p>
`, cutText(g.Rule, lineLen), firstLine(approval.Arguments(g.Arguments).Preview()))
	v.PutIf(g.Reason != "", "<p class=\"text\">%s</p>\n", cutText(g.Reason, reasonLen))
	v.Put(`<p>such as in <a href="%s">run <code>%s</code></a>`, runPath(g.RunID), shortID(g.RunID))
	if word := caseWords[g.To]; word != "" && g.CallID != "" {
		v.Put(` · <a href="%s">test case</a>`, runPath(g.RunID)+"/case?"+url.Values{"call": {g.CallID}, "expect": {word}, "file": {in.file}}.Encode())
	}
	v.Put("</p></li>\n")
}

// servePatch serves the patch between two sets of rules.
func (h *Handler) servePatch(w http.ResponseWriter, r *http.Request, v *view) {
	in, err := readWhatIf(w, r)
	if err != nil {
		h.failWhatIf(w, r, v, in, err)
		return
	}
	name := fileName(in.file)
	w.Header().Set("Content-Type", "text/x-diff; charset=utf-8")
	w.Header().Set("Content-Disposition", attachment(strings.TrimSuffix(name, ".yaml")+".patch"))
	_, _ = w.Write([]byte(linediff.Patch(name, in.before, in.policy)))
}

// attachment returns the Content-Disposition of a file to download.
func attachment(name string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)})
}

// fileName returns a name that is safe in a patch.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune { return lo.Ternary(r > ' ' && r < 0x7f && r != '\\' && r != '"', r, -1) }, name)
	return cmp.Or(strings.TrimLeft(strings.ReplaceAll(name, "..", ""), "/"), "policy.yaml")
}

// serveCase serves a test case for a decision or a call.
func (h *Handler) serveCase(w http.ResponseWriter, r *http.Request, v *view) {
	q := r.URL.Query()
	number, _ := strconv.ParseInt(q.Get("d"), 10, 64) // zero for a call
	name, text, err := h.o.Coordinator.Case(r.Context(), agent.RunID(r.PathValue("id")), wire.CaseRequest{
		Decision: number, Call: q.Get("call"), Expect: q.Get("expect"), Policy: fileOf(q.Get("file")),
	})
	invalid, isInvalid := errors.AsType[*coordinator.InvalidError](err)
	switch {
	case isInvalid:
		v.title = "There is no test case"
		v.Put("<h1>%s</h1>\n<p class=\"text bad\" role=\"alert\">%s</p>\n", v.title, cutText(invalid.Error(), reasonLen))
		reply(w, http.StatusUnprocessableEntity, v.render())
	case err != nil:
		h.fail(w, r, v, "making a test case", err)
	default:
		w.Header().Set("Content-Type", "application/yaml")
		w.Header().Set("Content-Disposition", attachment(name))
		_, _ = w.Write(text) //nolint:gosec // a file to download
	}
}

// fileOf returns the name of the file of a policy as a test case names it; empty for none.
func fileOf(name string) string { return lo.Ternary(name == "", "", fileName(name)) }

// putTools shows what a policy author may do with a decision about a call.
func (d *decision) putTools(out *markup.Page) {
	if d.run == "" || d.Origin == nil {
		return
	}
	out.Put(`<p class="tools"><a href="%s">What if?</a>`, whatIfPath+"?"+url.Values{"run": {string(d.run)}, "file": {d.Origin.File}}.Encode())
	out.PutIf(d.Call != "", ` · <a href="%s">Test case</a>`, fmt.Sprintf("%s/case?d=%d", runPath(d.run), d.seq))
	out.Put("</p>\n")
}
