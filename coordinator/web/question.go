package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// card is a question with what one person may do about it.
type card struct {
	approval.Page

	// input is what the run was asked to do.
	input string
	// group is the ID of its group in the inbox.
	group string
	// action is the address that an answer is posted to.
	action string
	// whole is set where all of the arguments are shown. Elsewhere, long ones cannot be approved.
	whole bool
}

// cardID returns the ID of a card on pages. Wait IDs may have any characters.
func cardID(run agent.RunID, wait string) string { return "w-" + hashOf(string(run) + " " + wait)[:12] }

func (c card) id() string { return cardID(c.Question.Run, c.Question.Wait) }

// waitPath returns the path of the page about a wait. An answer there leads to the page back, unless that is empty.
func waitPath(run agent.RunID, wait, back string) string {
	values := url.Values{"run": {string(run)}, "wait": {wait}}
	if back != "" {
		values.Set("back", back)
	}
	return inboxPath + "/wait?" + values.Encode()
}

// newCard returns the card of a wait for a person.
func (h *Handler) newCard(ctx context.Context, v *view, w durable.Wait, back string) (c card, err error) {
	who := v.who.principal()
	c.Page, err = approval.PageOf(ctx, h.o.Store, w, cmp.Or(who, &approval.Principal{}), false)
	if err != nil || c.Question == nil {
		return c, err
	}
	if who == nil {
		c.CannotApprove = "your token has the role " + string(v.who.Role) + ", and answers need the role operator"
		c.CannotReject = c.CannotApprove
	}
	c.action = waitPath(w.Run, w.ID, back)
	c.input, err = h.inputOf(ctx, w.Run)
	return c, err
}

// inputOf returns what a run was asked to do.
func (h *Handler) inputOf(ctx context.Context, id agent.RunID) (string, error) {
	about, err := h.o.Store.Run(ctx, id)
	if errors.Is(err, durable.ErrNotFound) { // it was deleted meanwhile
		err = nil
	}
	return firstLine(about.Summary), err
}

// showAnswer shows a response about one question: Options.Page of the handler of answers.
func (h *Handler) showAnswer(w http.ResponseWriter, r *http.Request, p approval.Page) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	v := viewOf(r.Context())
	isPost, back := r.Method == http.MethodPost, r.URL.Query().Get("back")
	if isPost && p.Status == http.StatusOK && v.who.Role != "" && p.Waiver == nil && (back == inboxPath || strings.HasPrefix(back, prefix+"runs/")) {
		http.Redirect(w, r, backOf(r.URL.Query()), http.StatusSeeOther) //nolint:gosec // backOf returns paths below /ui/ only
		return
	}
	c := card{Page: p, whole: true}
	if q := p.Question; q != nil && v.who.Role != "" {
		c.action = waitPath(q.Run, q.Wait, back)
		var err error
		if c.input, err = h.inputOf(r.Context(), q.Run); err != nil {
			h.fail(w, r, v, "reading what a run was asked to do", err)
			return
		}
	}
	v.title, v.part = answerTitle(p, isPost), partInbox
	switch {
	case v.who.Role != "":
		v.Put("<p class=\"path\"><a href=\"%s\">Inbox</a></p>\n", inboxPath)
	case h.canSignIn() && p.Question != nil:
		v.Put("<p class=\"path\"><a href=\"%s\">Sign in to answer as yourself</a></p>\n", signInBack(waitPath(p.Question.Run, p.Question.Wait, "")))
	}
	v.Put("<h1>%s</h1>\n", v.title)
	v.PutIf(p.Message != "", "<p class=\"note text\" role=\"status\">%s</p>\n", p.Message)
	if p.Question != nil {
		v.putQuestion(&v.Page, c)
	}
	reply(w, p.Status, v.render())
}

// answerTitle returns the title of a page about one question.
func answerTitle(p approval.Page, isPost bool) string {
	q := p.Question
	switch {
	case p.Status == http.StatusConflict && isPost:
		return "Answered or changed since you saw it"
	case q == nil:
		return "Nothing to decide"
	case q.Decided != nil:
		return "Decided"
	case q.Expired:
		return "Too late"
	}
	return waitTitle(q.Item)
}

// waitTitle says in words what a question is about.
func waitTitle(i approval.Item) string {
	tool := "“" + firstLine(i.Tool) + "”"
	if len(i.Questions) > 0 && i.Tool == "gate" && i.Gate != nil {
		tool = "“" + firstLine(i.Questions[0].AskedBy) + "”"
	}
	switch {
	case i.Gate != nil:
		return tool + " waits for a " + firstLine(i.Gate.Kind)
	case i.Kind == string(durable.WaitInput):
		return tool + " asks for input"
	case i.Kind == string(durable.WaitDoubt):
		return "Run " + tool + " again?"
	case isBare(i):
		for _, q := range i.Questions {
			return firstLine(cmp.Or(q.Reason, q.AskedBy+" asks"))
		}
	}
	return "May " + tool + " run?"
}

// isBare reports whether a question is about no call: a gate of a pipeline, or what a runner asks.
func isBare(i approval.Item) bool {
	return i.Gate == nil && (i.Tool == "gate" && strings.HasPrefix(i.Call, "gate-") || i.Tool == "question" && i.Preview == "{}")
}

// previewOf returns the beginning of the arguments of a question's call; empty if it is about none.
func previewOf(i approval.Item) string {
	if isBare(i) {
		return ""
	}
	return i.Preview
}

// putQuestion shows everything about a question: its card, what else the step waits for, and the history.
func (v *view) putQuestion(out *markup.Page, c card) {
	q := c.Question
	v.putCard(out, c)
	if len(q.Others) > 0 {
		out.Put("<section class=\"card\"><h2>What else this step waits for</h2>\n" +
			"<p class=\"dim\">Nothing of the step runs before each of them is decided.</p>\n")
		for _, o := range q.Others {
			state := "waits"
			if o.Decided != nil {
				state = approval.VerdictText(o.Decided.Verdict)
			}
			out.Put("<details><summary><b class=\"cmd\">%s</b>: %s <span class=\"dim\">%s</span></summary>\n<pre tabindex=\"0\">%s</pre></details>\n",
				firstLine(o.Tool), state, firstLine(o.Reason), o.Arguments.Text())
		}
		out.Put("</section>\n")
	}
	if len(q.History) > 0 {
		out.Put("<section class=\"card\"><h2>Former decisions about like calls</h2>\n")
		v.putDecisions(out, q.History)
		out.Put("</section>\n")
	}
	if c.Waiver != nil {
		putWaiver(out, c)
	}
}

// putCard shows a question: what would run, who asks and why, and the form for an answer.
func (v *view) putCard(out *markup.Page, c card) {
	q := c.Question
	out.Put(`<section class="verdict asked ask" id="%s" tabindex="-1" data-card>%s<div>`, c.id(), icon(asked))
	out.PutIf(!c.whole, "<h2><a href=\"%s\">%s</a></h2>\n", c.action, waitTitle(q.Item))
	if q.Gate != nil {
		putEvent(out, q.Gate.Data)
	}
	isCut := !c.whole && len(q.Arguments)+len(q.Original) > shortArguments
	switch {
	case isBare(q.Item):
	case isCut:
		out.Put("<pre tabindex=\"0\">%s</pre>\n", cutText(q.Preview, lineLen*4))
	default:
		putArguments(out, q)
	}
	for _, one := range q.Questions {
		if one.Reason == "" && q.Input != nil || isBare(q.Item) && one.Reason != "" {
			continue // the tool says what it asks for, and the title what the gate does
		}
		reason := invisible.Escape(cmp.Or(one.Reason, "no reason was given"))
		out.Put("<p class=\"why text\">%s <span class=\"dim\">asked by %s</span></p>\n", reason, asker(one))
	}
	out.PutIf(q.Description != "", "<p class=\"text\"><span class=\"dim\">Its server says:</span> %s</p>\n", invisible.Escape(q.Description))
	out.PutIf(c.input != "", "<p class=\"text\"><span class=\"dim\">The run was asked:</span> %s</p>\n", c.input)
	v.putWhen(out, c)
	v.putDecisions(out, q.Answers)
	if q.Decided != nil {
		v.putDecisions(out, []approval.Decision{*q.Decided})
	}
	switch {
	case !q.Open():
	case isCut:
		out.Put("<p><a class=\"button\" href=\"%s\">Read all of it and answer</a></p>\n", c.action)
	default:
		putForm(out, c)
	}
	out.Put("</div></section>\n")
}

// shortArguments is how long arguments may be, in bytes, to be shown whole in a list.
const shortArguments = 2 << 10

// putEvent shows the event that a gate waits for.
func putEvent(out *markup.Page, data json.RawMessage) {
	var text bytes.Buffer
	if json.Indent(&text, data, "", "  ") != nil {
		text.Reset()
		text.Write(data)
	}
	out.PutIf(text.Len() > 0, "<pre tabindex=\"0\">%s</pre>\n", cutText(text.String(), longText))
}

// putArguments shows exactly what would run, and how hooks changed it.
func putArguments(out *markup.Page, q *approval.Detail) {
	text := q.Arguments.Text()
	var object map[string]json.RawMessage
	var only string
	if json.Unmarshal([]byte(q.Arguments), &object) == nil && len(object) == 1 {
		for name, value := range object {
			if json.Unmarshal(value, &only) == nil && only == invisible.Escape(only) && only != "" {
				out.Put("<p class=\"dim\"><code>%s</code></p>\n", invisible.Escape(name))
				text = only
			}
		}
	}
	if q.Diff == "" {
		out.Put("<pre tabindex=\"0\">%s</pre>\n", text)
		return
	}
	out.Put("<p class=\"dim\">What would run, and how hooks changed what the model asked for:</p>\n")
	putLines(out, q.Diff)
}

// asker returns who asks a question: the hook, with the rule unless its name ends in that.
func asker(q approval.MessageQuestion) string {
	text := cmp.Or(q.AskedBy, "the agent")
	if q.Kind == string(agent.QuestionDoubt) {
		text = "the framework"
	}
	if q.Rule != "" && q.Rule != q.AskedBy && !strings.HasSuffix(q.AskedBy, "/"+q.Rule) {
		text += ", rule " + q.Rule
	}
	if q.AnsweredBy != "" {
		text += ", answered by " + q.AnsweredBy
	}
	return cutText(text, lineLen)
}

// putWhen shows who may answer until when, and which run waits.
func (v *view) putWhen(out *markup.Page, c card) {
	q := c.Question
	if q.Decided == nil {
		for _, one := range q.Questions {
			who := ""
			if len(one.Approvers) > 0 {
				who = "for " + strings.Join(one.Approvers, " or ")
			}
			if one.Quorum > 1 {
				who = strings.TrimPrefix(fmt.Sprintf("%s · %d of %d approvals", who, one.Approvals, one.Quorum), " · ")
			}
			out.PutIf(who != "" && one.AnsweredBy == "", "<p>%s</p>\n", cutText(who, reasonLen))
		}
	}
	out.Put("<p class=\"dim\">")
	out.PutIf(q.AgentText() != "", "%s · ", firstLine(q.AgentText()))
	if v.readsRuns() {
		out.Put(`<a href="%s">%s</a>`, runPath(q.Run), shortID(q.Run))
	} else {
		out.Put("<code>%s</code>", cutText(string(q.Run), lineLen))
	}
	out.PutIf(q.Host != "", " · on host %s", cutText(q.Host, lineLen))
	out.Put(" · asked %s", formatWhen(q.Asked, v.now))
	if !q.Deadline.IsZero() {
		left := "its time has passed"
		if d := q.Deadline.Sub(v.now); d > 0 {
			left = formatLeft(d) + " left"
		}
		out.Put(` · <span title="%s">%s</span>, then %s`, q.Deadline.UTC().Format("2006-01-02 15:04:05 UTC"), left, approval.VerdictText(q.Timeout))
	}
	out.Put("</p>\n")
}

// putDecisions shows answers: the verdict, who, when, and why.
func (v *view) putDecisions(out *markup.Page, all []approval.Decision) {
	for _, d := range all {
		out.Put("<div class=\"answer\"><p><b>%s</b>", approval.VerdictText(d.Verdict))
		out.PutIf(d.Arguments != "", " with other arguments")
		out.PutIf(d.Author == agent.AuthorEvent, " by the event of")
		out.PutIf(d.Author != agent.AuthorEvent && d.By != "", " by")
		out.PutIf(d.By != "", " %s", cutText(d.By, lineLen))
		out.PutIf(d.Identity != "" && d.Identity == d.By, ` <span class="dim">verified</span>`)
		out.PutIf(d.Identity != "" && d.Identity != d.By, ` <span class="dim">verified as %s</span>`, cutText(d.Identity, lineLen))
		out.Put(` <span class="dim">%s`, formatWhen(d.At, v.now))
		if d.Run != "" && v.readsRuns() {
			out.Put(` · <a href="%s">%s</a>`, runPath(d.Run), shortID(d.Run))
		}
		out.Put("</span></p>\n")
		out.PutIf(d.Preview != "", "<p><code>%s</code></p>\n", d.Preview)
		out.PutIf(d.Reason != "", "<p class=\"text\">%s</p>\n", cutText(d.Reason, reasonLen))
		if d.Arguments != "" {
			putText(out, d.Arguments.Text())
		}
		out.Put("</div>\n")
	}
}

// words are the labels of the buttons of a form. Approve is empty where people can only reject.
type words struct{ approve, goOn, end string }

func (c card) words() words {
	q := c.Question
	w := words{"Approve", "Reject", "Reject, and end the run"}
	switch {
	case q.Gate != nil:
		w = words{"", "Do not wait, and go on without it", "Do not wait, and end the run"}
	case q.Input != nil:
		w = words{lo.Ternary(q.Input.Schema == "", "Accept", "Send this"), "Decline, and go on", "End the run"}
	case q.Begun:
		w = words{"Repeat it", "Do not repeat it, and go on", "Do not repeat it, and end the run"}
	case isBare(q.Item):
		w = words{"Yes", "No", "No, and end the run"}
	}
	if c.CannotApprove != "" {
		w.approve = ""
	}
	return w
}

// putForm shows the form for an answer. The first button of a form is the one that the Enter key presses in a text field,
// so it is one that does nothing.
func putForm(out *markup.Page, c card) {
	q, w := c.Question, c.words()
	switch {
	case q.Gate != nil:
		out.Put("<p class=\"dim\">An event decides this. People can only reject it.</p>\n")
	case c.CannotApprove != "" && c.Who == nil && c.action == "":
		out.Put("<p class=\"bad\">Only people who are signed in can approve this: %s.</p>\n", cutText(c.CannotApprove, reasonLen))
	case c.CannotApprove != "":
		out.Put("<p class=\"bad\">You cannot approve this: %s.</p>\n", cutText(c.CannotApprove, reasonLen))
	case q.Begun:
		out.Put("<p class=\"dim\">This call began before the run was cut off. It may have happened: it is repeated as it was, or not at all.</p>\n")
	}
	if c.CannotReject != "" {
		return
	}
	id := c.id()
	out.Put(`<form method="post"`)
	out.PutIf(c.action != "", ` action="%s"`, c.action)
	out.Put(` class="reply" autocomplete="off">
<button disabled hidden></button>
<input type="hidden" name="wait" value="%s">
`, q.Wait)
	for _, one := range c.Open {
		out.Put("<input type=\"hidden\" name=\"question\" value=\"%s\">\n", one)
	}
	if w.approve != "" && q.Input != nil {
		putInput(out, c, id)
	}
	if c.action == "" {
		out.Put(`<p><label for="by-%s">Your name</label><input id="by-%s" name="by" maxlength="200" value="%s"></p>
`, id, id, c.Form.Get("by"))
	}
	out.Put(`<p><label for="reason-%s">Reason <span class="dim">which the agent is told when you reject</span></label>
<textarea id="reason-%s" name="reason" rows="1" maxlength="8000" data-reason>
%s</textarea></p>
`, id, id, c.Form.Get("reason"))
	if w.approve != "" && c.CanEdit && q.Input == nil && !isBare(q.Item) {
		putEditor(out, c)
	}
	out.Put("<p class=\"buttons\">")
	out.PutIf(w.approve != "", `<button name="verdict" value="approve" class="yes">%s</button> `, w.approve)
	out.Put(`<button name="verdict" value="reject_and_continue" class="no">%s</button> <button name="verdict" value="reject" class="no">%s</button>`,
		w.goOn, w.end)
	if wv := c.Waiver; wv != nil && wv.WhyNot == "" && !c.whole && !isBare(q.Item) {
		out.Put(` <a class="button" href="%s#waiver" data-until>Yes, until %s …</a>`, c.action, wv.Until.UTC().AddDate(0, 0, -1).Format("Monday"))
	}
	out.Put("</p>\n</form>\n")
}

// putEditor shows the arguments for changing them.
func putEditor(out *markup.Page, c card) {
	text, open := c.Question.Arguments.Text(), markup.HTML("")
	if c.Form.Has("arguments") && c.Form.Get("arguments") != text {
		text, open = c.Form.Get("arguments"), " open"
	}
	out.Put(`<details%s><summary>Change the arguments</summary>
<textarea id="arguments-%s" name="arguments" rows="%s" spellcheck="false" aria-label="Arguments" class="code">
%s</textarea>
<p><button name="verdict" value="edit">Approve with these arguments</button></p></details>
`, open, c.id(), min(12, 1+strings.Count(text, "\n")), text)
}

// putWaiver shows the form that approves a call and like calls until a day, with the effect that this would have had.
func putWaiver(out *markup.Page, c card) {
	given := c.Waiver
	if given.WhyNot != "" {
		out.Put("<p class=\"dim\" id=\"waiver\">Like calls cannot be approved in advance: %s.</p>\n", cutText(given.WhyNot, reasonLen))
		return
	}
	out.Put(`<form id="waiver" method="post" action="%s#waiver" class="card" autocomplete="off">
<h2>Approve this and like calls until a day</h2>
<button name="verdict" value="preview" hidden>Show the effect</button>
<p class="dim">Until then, <code>%s</code> does not ask about calls of <code>%s</code> whose arguments match. * stands for any text.</p>
<input type="hidden" name="wait" value="%s"><input type="hidden" name="seen" value="%s">
`, c.action, cutText(given.Scope.Rule, lineLen), cutText(given.Scope.Tool, lineLen), c.Question.Wait, given.Fingerprint())
	for _, one := range c.Open {
		out.Put("<input type=\"hidden\" name=\"question\" value=\"%s\">\n", one)
	}
	for n, path := range slices.Sorted(maps.Keys(given.Scope.Arguments)) {
		field := approval.WaiverField + path
		text := cmp.Or(c.Form.Get(field), given.Scope.Arguments[path])
		out.Put(`<p><label for="arg%s"><code>%s</code></label><textarea id="arg%s" name="%s" rows="%s" spellcheck="false" class="code">
%s</textarea></p>
`, n, cutText(path, lineLen), n, field, min(8, 1+strings.Count(text, "\n")), text)
	}
	for _, name := range given.Free {
		out.Put("<p class=\"bad\"><code>%s</code> may have any value: no pattern can describe it.</p>\n", cutText(name, lineLen))
	}
	last := given.Until.UTC().AddDate(0, 0, -1)
	out.Put(`<p><label for="until">The last day, in UTC</label><input id="until" name="until" type="date" required value="%s"></p>
<p><label for="because">Reason <span class="dim">for the audit log</span></label><input id="because" name="reason" maxlength="8000" value="%s"></p>
`, last.Format(time.DateOnly), given.Scope.Reason)
	if e := given.Effect; e != nil {
		out.Put("<p>In the last %s days, people answered %s about this tool. It would have given %s of these answers; people rejected %s of them.</p>\n",
			approval.EffectDays, countOf(e.Answers, "question"), len(e.Covered), e.Rejected)
		for _, a := range e.Covered[:min(len(e.Covered), coveredLines)] {
			out.Put("<p class=\"dim\">%s by %s: <code>%s</code></p>\n",
				approval.VerdictText(a.Verdict), cutText(a.By, lineLen), approval.Arguments(a.Call.Arguments).Preview())
		}
	}
	out.Put("<p class=\"buttons\"><button name=\"verdict\" value=\"waive\" class=\"yes\">Approve until %s</button> "+
		"<button name=\"verdict\" value=\"preview\">Show the effect</button></p></form>\n", last.Format(dayForm))
}

// dayForm is how a day is written on a button.
const dayForm = "Monday 2 January"

// coveredLines is how many answers are listed that a waiver would have given.
const coveredLines = 10

// person is who has signed in, or has sent a token.
type person struct {
	wire.Token

	// roles are the roles of one of Options.People.
	roles []string
}

// approver is the role of Options.People: they see the inbox and answer.
const approver wire.Role = "approver"

// principal returns who answers; nil when that needs another role.
func (p person) principal() *approval.Principal {
	switch p.Role {
	case approver:
		return &approval.Principal{Name: p.Name, Roles: p.roles}
	case wire.Operator, wire.Admin:
		return &approval.Principal{Name: p.Name, Roles: []string{string(p.Role)}}
	}
	return nil
}
