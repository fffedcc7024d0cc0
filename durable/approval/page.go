package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// page returns the reply as HTML.
func (r reply) page() string {
	var p markup.Page
	p.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
`)
	p.PutIf(r.Forward != "", `<meta http-equiv="refresh" content="0; url=%s">
`, r.Forward)
	p.Put(`<title>%s</title>
<style>%s</style>
</head>
<body>
<main>
`, r.title(), markup.HTML(styleText))
	r.putHeader(&p)
	p.Put("<h1>%s</h1>\n", r.title())
	p.PutIf(r.Message != "", `<p class="message text" role="status">%s</p>
`, r.Message)
	p.PutIf(r.Forward != "", `<p><a href="%s">Continue</a></p>
`, r.Forward)
	if r.SignIn {
		r.putSignIn(&p)
	}
	if r.Inbox != nil {
		r.putInbox(&p)
	}
	if r.Question != nil {
		r.putQuestion(&p)
	}
	p.Put("</main>\n</body>\n</html>\n")
	return p.String()
}

// title returns the title of the page.
func (r reply) title() string {
	q := r.Question
	switch {
	case r.Inbox != nil:
		return "What waits for people"
	case r.SignIn:
		return "Sign in"
	case r.Forward != "":
		return "Signed in"
	case q == nil:
		return "Nothing to decide"
	case q.State == stateDecided:
		return "Decided"
	case q.State == stateExpired:
		return "Too late"
	case q.Gate != nil:
		return "“" + visible(q.Tool) + "” waits for a " + visible(q.Gate.Kind)
	case q.Input != nil:
		return "“" + visible(q.Tool) + "” asks for input"
	case q.Begun:
		return "Run “" + visible(q.Tool) + "” again?"
	}
	return "May “" + visible(q.Tool) + "” run?"
}

// putHeader shows who is signed in.
func (r reply) putHeader(p *markup.Page) {
	switch {
	case r.who != nil:
		p.Put(`<form method="post" action="sign-out" class="who">`)
		p.PutIf(r.Inbox == nil, `<a href="./">All that waits</a> `)
		p.Put(`<span>%s</span>`, visible(r.who.Name))
		p.PutIf(len(r.who.Roles) > 0, ` <span class="dim">%s</span>`, visible(strings.Join(r.who.Roles, ", ")))
		p.PutIf(r.canSignIn, ` <button>Sign out</button>`)
		p.Put("</form>\n")
	case r.canSignIn && !r.SignIn && r.Forward == "" && r.Question != nil:
		p.Put(`<p class="who"><a href="%s">Sign in</a></p>
`, r.Question.name().address(pathSignIn))
	}
}

// putSignIn shows the form for a token.
func (r reply) putSignIn(p *markup.Page) {
	p.Put(`<form method="post" action="sign-in" autocomplete="off">
<label for="token">Your token <span class="dim">of “grapnel approvals token”</span></label>
<input id="token" name="token" type="password" required autofocus>
`)
	p.PutIf(r.back != (waitName{}), `<input type="hidden" name="run" value="%s">
<input type="hidden" name="wait" value="%s">
`, r.back.run, r.back.wait)
	p.Put(`<div class="buttons"><button class="yes">Sign in</button></div>
</form>
`)
}

// putInbox shows the list of what waits.
func (r reply) putInbox(p *markup.Page) {
	if len(r.Inbox.Waits) == 0 {
		p.Put("<p class=\"dim\">Nothing waits for a person.</p>\n")
		return
	}
	p.Put("<ul class=\"waits\">\n")
	for _, i := range r.Inbox.Waits {
		p.Put(`<li><a href="%s"><code>%s</code> <code class="preview">%s</code></a>
<p>`, i.name().address(pathWait), visible(i.Tool), i.Preview)
		p.PutIf(i.Kind != string(durable.WaitApproval), `<span class="kind">%s</span> `, kindNames[durable.WaitKind(i.Kind)])
		p.PutIf(i.Expired, `<span class="mark">expired</span> `)
		p.PutIf(!i.Deadline.IsZero() && !i.Expired, `<span class="kind">%s left</span> `, formatAge(i.Deadline.Sub(i.now)))
		for _, q := range i.Questions {
			p.PutIf(q.Quorum > 1, `<span class="kind">%s of %s approvals</span> `, q.Approvals, q.Quorum)
		}
		p.Put("</p>\n")
		for _, q := range i.Questions {
			p.Put(`<p class="text">%s <span class="dim">asked by %s`, reasonOf(q), asker(q))
			p.PutIf(len(q.Approvers) > 0, ", for %s", visible(strings.Join(q.Approvers, ", ")))
			p.Put("%s</span></p>\n", answeredBy(q))
		}
		p.Put(`<p class="dim">%s, waits for %s`, visible(i.AgentText()), formatAge(i.now.Sub(i.Asked)))
		p.PutIf(i.Host != "", `, on host %s`, visible(i.Host))
		p.Put(`, <code>%s</code></p>
</li>
`, visible(string(i.Run)))
	}
	p.Put("</ul>\n")
	p.PutIf(r.Inbox.Next != "", `<p><a href="?after=%s">More</a></p>
`, r.Inbox.Next)
}

// kindNames are the kinds of waits in words.
var kindNames = map[durable.WaitKind]string{
	durable.WaitDoubt: "may have happened", durable.WaitCallback: "waits for a callback", durable.WaitFile: "waits for a file",
	durable.WaitCommand: "waits for a command",
}

// asker returns who asks a question: the hook, with the rule unless its name ends in that.
func asker(q MessageQuestion) string {
	text := "the agent"
	switch {
	case q.Kind == string(agent.QuestionDoubt):
		text = "the framework"
	case q.AskedBy != "":
		text = visible(q.AskedBy)
	}
	if q.Rule != "" && q.Rule != q.AskedBy && !strings.HasSuffix(q.AskedBy, "/"+q.Rule) {
		text += ", rule " + visible(q.Rule)
	}
	return text
}

// reasonOf returns why a question is asked.
func reasonOf(q MessageQuestion) string {
	if q.Reason == "" {
		return "no reason was given"
	}
	return visible(q.Reason)
}

// answeredBy names the hook that answered instead of a person.
func answeredBy(q MessageQuestion) string {
	if q.AnsweredBy == "" {
		return ""
	}
	return ", answered by " + visible(q.AnsweredBy)
}

// whoMayAnswer says in words who may answer a question of a call.
func whoMayAnswer(q MessageQuestion) string {
	switch {
	case q.Kind == string(agent.QuestionGate):
		return "an event; people can only reject it"
	case len(q.Approvers) == 0 && q.Quorum < 2:
		return "anyone who can open this page"
	case len(q.Approvers) == 0:
		return fmt.Sprintf("%d people who are signed in; %d approved so far", q.Quorum, q.Approvals)
	}
	text := visible(strings.Join(q.Approvers, " or "))
	if q.Quorum > 1 {
		return fmt.Sprintf("%d people who are %s, signed in; %d approved so far", q.Quorum, text, q.Approvals)
	}
	return text + ", signed in"
}

// putQuestion shows a wait: first what would run, then who asks and why, then the form.
func (r reply) putQuestion(p *markup.Page) {
	q := r.Question
	if q.Decided != nil {
		p.Put("<section class=\"decided\">\n<h2>What was decided</h2>\n")
		putDecision(p, *q.Decided)
		if q.Decided.Arguments != "" {
			p.Put("<h2>What was decided to run</h2>\n")
			putDiff(p, q.Arguments, q.Decided.Arguments)
		}
		p.Put("</section>\n")
	}
	if q.Gate != nil {
		p.Put("<section>\n<h2>What it waits for</h2>\n<pre tabindex=\"0\">%s</pre>\n</section>\n", gateText(q.Gate.Data))
	}
	putCall(p, q)
	r.putFacts(p)
	putDecisions(p, "The answers so far", q.Answers)
	putOthers(p, q.Others)
	if q.Open() {
		r.putForm(p)
	}
	if r.canWaive {
		r.putWaiver(p)
	}
	putDecisions(p, "Former decisions about like calls", q.History)
}

// putCall shows what would run, and how that differs from what the model asked for.
func putCall(p *markup.Page, q *Detail) {
	title := "What would run"
	switch {
	case q.Input != nil:
		title = "What is running"
	case q.Begun:
		title = "What may have happened"
	case q.Decided != nil:
		title = "What was asked about"
	}
	p.Put("<section>\n<h2>%s", title)
	p.PutIf(q.Diff != "", ` <span class="mark">changed</span>`)
	p.Put("</h2>\n")
	if q.Diff == "" {
		p.Put("<pre tabindex=\"0\">%s</pre>\n<p class=\"dim\">exactly as the model asked for it</p>\n</section>\n", q.Arguments.Text())
		return
	}
	p.Put("<pre tabindex=\"0\">%s</pre>\n<h2>How hooks changed what the model asked for</h2>\n", q.Arguments.Text())
	putDiff(p, q.Original, q.Arguments)
	p.Put("<details>\n<summary>The model asked for</summary>\n<pre tabindex=\"0\">%s</pre>\n</details>\n</section>\n", q.Original.Text())
}

// putFacts shows who asks, why, and until when.
func (r reply) putFacts(p *markup.Page) {
	q := r.Question
	p.Put("<section>\n<dl>\n")
	for _, one := range q.Questions {
		p.Put("<dt>Why</dt><dd class=\"text\">%s</dd>\n<dt>Asked by</dt><dd>%s", reasonOf(one), asker(one))
		p.PutIf(q.Decided == nil, "%s", answeredBy(one))
		p.Put("</dd>\n")
		p.PutIf(one.AnsweredBy == "" && q.Decided == nil, "<dt>Who may answer</dt><dd>%s</dd>\n", whoMayAnswer(one))
	}
	p.Put("<dt>Deadline</dt><dd>")
	if q.OnTimeout == "" {
		p.Put("none")
	} else {
		left := "over"
		if d := q.Deadline.Sub(q.now); d > 0 {
			left = formatAge(d) + " left"
		}
		p.Put("%s <span class=\"dim\">(%s)</span><br>\nafter it: %s", left, formatTime(q.Deadline), verdictNames[q.Timeout])
	}
	p.Put("</dd>\n<dt>Asked</dt><dd>%s ago <span class=\"dim\">(%s)</span></dd>\n", formatAge(q.now.Sub(q.Asked)), formatTime(q.Asked))
	p.PutIf(q.Description != "", "<dt>Its server says</dt><dd class=\"text\">%s</dd>\n", visible(q.Description))
	p.PutIf(q.Agent != "", "<dt>Agent</dt><dd>%s</dd>\n", visible(q.AgentText()))
	p.PutIf(q.Host != "", "<dt>Host</dt><dd>%s</dd>\n", visible(q.Host))
	p.Put("<dt>Run</dt><dd><code>%s</code> <span class=\"dim\">call <code>%s</code></span></dd>\n</dl>\n</section>\n", visible(string(q.Run)), visible(q.Call))
}

// gateText returns the description of an event in the form that people see.
func gateText(data json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, data, "", "  ") != nil {
		return visible(string(data))
	}
	return visible(out.String())
}

// putDiff shows how arguments differ.
func putDiff(p *markup.Page, before, after Arguments) {
	p.Put("<pre class=\"diff\" tabindex=\"0\">")
	for _, line := range diffLines(before.Text(), after.Text()) {
		tag := map[byte]markup.HTML{'-': "del", '+': "ins", ' ': "span"}[line.mark]
		p.Put("<%s>%s %s</%s>\n", tag, string(line.mark), line.text, tag)
	}
	p.Put("</pre>\n")
}

func putDecisions(p *markup.Page, title string, all []Decision) {
	if len(all) == 0 {
		return
	}
	p.Put("<section>\n<h2>%s</h2>\n", title)
	for _, d := range all {
		putDecision(p, d)
	}
	p.Put("</section>\n")
}

// putDecision shows a decision as a line: the verdict, who, when, and why.
func putDecision(p *markup.Page, d Decision) {
	p.Put("<div class=\"decision\">\n<p><span class=\"verdict\">%s</span>", verdictNames[d.Verdict])
	p.PutIf(d.Arguments != "", " with other arguments")
	p.PutIf(d.Author == agent.AuthorEvent, " by the event of")
	p.PutIf(d.Author != agent.AuthorEvent && d.By != "", " by")
	p.PutIf(d.By != "", " %s", visible(d.By))
	p.PutIf(d.Identity != "" && d.Identity == d.By, ` <span class="dim">verified</span>`)
	p.PutIf(d.Identity != "" && d.Identity != d.By, ` <span class="dim">verified as %s</span>`, visible(d.Identity))
	p.Put(` <span class="dim">%s</span></p>
`, formatTime(d.At))
	p.PutIf(d.Preview != "", "<p><code>%s</code></p>\n", d.Preview)
	p.PutIf(d.Reason != "", "<p class=\"text\">%s</p>\n", visible(d.Reason))
	p.Put("</div>\n")
}

func putOthers(p *markup.Page, others []Other) {
	if len(others) == 0 {
		return
	}
	p.Put("<section>\n<h2>What else this step waits for</h2>\n<p class=\"dim\">Nothing of the step runs before each of them is decided.</p>\n")
	for _, o := range others {
		state := "waits"
		if o.Decided != nil {
			state = verdictNames[o.Decided.Verdict]
		}
		p.Put("<details>\n<summary><code>%s</code>: %s\n<span class=\"dim\">%s <code>%s</code></span></summary>\n",
			visible(o.Tool), state, o.Kind, visible(o.Wait))
		p.PutIf(o.Reason != "", "<p class=\"text\">%s</p>\n", visible(o.Reason))
		p.Put("<pre tabindex=\"0\">%s</pre>\n</details>\n", o.Arguments.Text())
	}
	p.Put("</section>\n")
}

// putCannot says why a person cannot approve.
func (r reply) putCannot(p *markup.Page) {
	switch {
	case r.who == nil && r.canSignIn:
		p.Put(`<p class="message">Only people who are signed in can answer this. <a href="%s">Sign in to answer</a></p>
`, r.Question.name().address(pathSignIn))
	case r.who == nil:
		p.Put("<p class=\"message\">Only people whose identity is verified can answer this.</p>\n")
	default:
		p.Put("<p class=\"message\">You cannot approve this: %s.</p>\n", visible(r.cannotApprove))
	}
}

// putForm shows the form for a decision. The first button of a form is the one that the Enter key presses in a text field, so
// it is one that does nothing.
func (r reply) putForm(p *markup.Page) {
	q := r.Question
	if r.cannotApprove != "" && q.Gate == nil {
		r.putCannot(p)
	}
	if r.cannotReject != "" {
		return
	}
	p.Put(`<form method="post"`)
	p.PutIf(r.action != "", ` action="%s"`, r.action)
	p.Put(` autocomplete="off">
<button disabled hidden></button>
<input type="hidden" name="wait" value="%s">
`, q.Wait)
	for _, one := range durable.OpenQuestions(r.asked.kept, r.asked.asked) {
		p.Put(`<input type="hidden" name="question" value="%s">
`, one.ID())
	}
	if r.who == nil {
		p.Put(`<label for="by">Your name</label>
<input id="by" name="by" maxlength="200" value="%s">
`, r.said.By)
	}
	p.Put(`<label for="reason">Reason <span class="dim">the model is told it when you reject</span></label>
<textarea id="reason" name="reason" rows="2" maxlength="8000">
%s</textarea>
`, r.said.Reason)
	goOn, end := "Reject, and go on without it", "Reject, and end the run"
	switch {
	case q.Gate != nil:
		p.Put("<p class=\"dim\">An event decides this. People can only reject it.</p>\n<div class=\"buttons\">\n")
	case r.cannotApprove != "":
		p.Put("<div class=\"buttons\">\n")
	case q.Input != nil:
		goOn, end = "Decline, and go on", "End the run"
		r.putInput(p, q.Input)
		p.Put("<div class=\"buttons\">\n<button name=\"verdict\" value=\"approve\" class=\"yes\">%s</button>\n", acceptLabel(q.Input))
	case q.Begun:
		goOn, end = "Do not repeat it, and go on", "Do not repeat it, and end the run"
		p.Put(`<p class="dim">This call began before the run was cut off. It may have happened: it is repeated as it was, or not at all.</p>
<div class="buttons">
<button name="verdict" value="approve" class="yes">Repeat it</button>
`)
	default:
		r.putEditor(p)
		p.Put("<div class=\"buttons\">\n<button name=\"verdict\" value=\"approve\" class=\"yes\">Approve</button>\n")
	}
	p.Put(`<button name="verdict" value="reject_and_continue">%s</button>
<button name="verdict" value="reject" class="no">%s</button>
</div>
</form>
`, goOn, end)
}

// putEditor shows the arguments for changing them, if the person may.
func (r reply) putEditor(p *markup.Page) {
	changed := agent.Approval{Verdict: agent.Approve, Arguments: "{} "}
	if r.who != nil {
		changed.Identity, changed.Roles = r.who.Name, r.who.Roles
	}
	if !r.asked.asked.Takes(changed) {
		return
	}
	text, open := r.Question.Arguments.Text(), markup.HTML("")
	if r.said.text != nil && *r.said.text != text {
		text, open = *r.said.text, " open"
	}
	p.Put(`<details%s>
<summary>Change the arguments</summary>
<textarea id="arguments" name="arguments" rows="10" spellcheck="false" aria-label="arguments" class="code">
%s</textarea>
<button name="verdict" value="edit">Approve with these arguments</button>
</details>
`, open, text)
}
