package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
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
	p.PutIf(r.Forward != "", `<p><a href="%s">What waits for people</a></p>
`, r.Forward)
	if r.SignIn {
		p.Put(`<form method="post" action="sign-in" autocomplete="off">
<label for="token">Your token</label>
<input id="token" name="token" type="password" required autofocus>
<div class="buttons"><button class="yes">Sign in</button></div>
</form>
`)
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
		p.Put(`<p class="who"><a href="sign-in">Sign in</a></p>
`)
	}
}

// putInbox shows the list of what waits.
func (r reply) putInbox(p *markup.Page) {
	if len(r.Inbox.Waits) == 0 {
		p.Put("<p class=\"dim\">Nothing waits for a person.</p>\n")
		return
	}
	p.Put("<ul class=\"waits\">\n")
	for _, i := range r.Inbox.Waits {
		p.Put(`<li><a href="%s"><code>%s</code> <span class="kind">%s</span>`, i.address(), visible(i.Tool), i.Kind)
		p.PutIf(i.Expired, ` <span class="mark">expired</span>`)
		p.Put("</a>\n")
		for _, q := range i.Questions {
			p.PutIf(q.Reason != "", `<p class="text">%s</p>
`, visible(q.Reason))
			p.Put(`<p class="dim">asked by %s%s</p>
`, asker(q), progress(q))
		}
		p.Put(`<p class="dim">%s run <code>%s</code>, waits for %s`, visible(i.Agent), visible(string(i.Run)), formatAge(i.now.Sub(i.Asked)))
		p.PutIf(i.Host != "", `, on host %s`, visible(i.Host))
		p.PutIf(!i.Deadline.IsZero() && !i.Expired, `, %s left`, formatAge(i.Deadline.Sub(i.now)))
		p.Put("</p>\n")
		p.PutIf(i.Needs != "", `<p class="dim">%s</p>
`, visible(i.Needs))
		p.Put("</li>\n")
	}
	p.Put("</ul>\n")
	p.PutIf(r.Inbox.Next != "", `<p><a href="?after=%s">More</a></p>
`, r.Inbox.Next)
}

// asker returns who asks a question.
func asker(q MessageQuestion) string {
	text := "the agent"
	if q.AskedBy != "" {
		text = visible(q.AskedBy)
	}
	if q.Rule != "" {
		text += ", rule " + visible(q.Rule)
	}
	return text
}

// progress returns how many of the required people have approved, and who answered instead of a person.
func progress(q MessageQuestion) string {
	text := ""
	if q.Quorum > 1 {
		text = fmt.Sprintf(", %d of %d approvals", q.Approvals, q.Quorum)
	}
	if q.AnsweredBy != "" {
		text += " (answered by " + visible(q.AnsweredBy) + ")"
	}
	return text
}

// putQuestion shows a wait.
func (r reply) putQuestion(p *markup.Page) {
	q := r.Question
	if q.Decided != nil {
		p.Put("<section class=\"decided\">\n<h2>What was decided</h2>\n")
		putDecision(p, *q.Decided)
		p.Put("</section>\n")
	}
	r.putFacts(p)
	if q.Gate != nil {
		p.Put("<section>\n<h2>What it waits for</h2>\n<pre tabindex=\"0\">%s</pre>\n</section>\n", gateText(q.Gate.Data))
	}
	running := "What would run"
	if q.Begun {
		running = "What may have happened"
	}
	if q.Input != nil {
		running = "What is running"
	}
	p.Put("<section class=\"sides\">\n<div>\n<h2>The model asked for</h2>\n<pre tabindex=\"0\">%s</pre>\n</div>\n<div>\n<h2>%s", q.Original.Text(), running)
	p.PutIf(q.Diff != "", ` <span class="mark">changed</span>`)
	p.Put("</h2>\n<pre tabindex=\"0\">%s</pre>\n</div>\n</section>\n", q.Arguments.Text())
	putDiff(p, "What was changed", q.Original, q.Arguments)
	if q.Decided != nil && q.Decided.Arguments != "" {
		p.Put("<section>\n<h2>What was decided to run</h2>\n<pre tabindex=\"0\">%s</pre>\n</section>\n", q.Decided.Arguments.Text())
	}
	putDecisions(p, "The answers so far", q.Answers)
	putDecisions(p, "Former decisions about this tool", q.History)
	putOthers(p, q.Others)
	if q.Open() {
		r.putForm(p)
	}
}

// putFacts shows who asks, why, and until when.
func (r reply) putFacts(p *markup.Page) {
	q := r.Question
	p.Put("<section>\n<dl>\n")
	for _, one := range q.Questions {
		reason := "no reason was given"
		if one.Reason != "" {
			reason = visible(one.Reason)
		}
		by := "the agent"
		if one.AskedBy != "" {
			by = visible(one.AskedBy)
		}
		p.Put(`<dt>Asked by</dt><dd>%s`, by)
		p.PutIf(one.Rule != "", ` <span class="dim">rule <code>%s</code></span>`, visible(one.Rule))
		p.PutIf(one.Kind == string(agent.QuestionGate), ` <span class="dim">an event answers it</span>`)
		p.Put("</dd>\n<dt>Why</dt><dd class=\"text\">%s", reason)
		p.PutIf(progress(one) != "", ` <span class="dim">%s</span>`, strings.TrimLeft(progress(one), ", "))
		p.Put("</dd>\n")
	}
	p.PutIf(q.Needs != "", "<dt>Who may answer</dt><dd>%s</dd>\n", visible(q.Needs))
	p.PutIf(q.Agent != "", "<dt>Agent</dt><dd>%s</dd>\n", visible(q.Agent))
	p.Put("<dt>Run</dt><dd><code>%s</code></dd>\n", visible(string(q.Run)))
	p.Put("<dt>Tool</dt><dd><code>%s</code> <span class=\"dim\">call <code>%s</code></span></dd>\n", visible(q.Tool), visible(q.Call))
	p.PutIf(q.Host != "", "<dt>Host</dt><dd>%s</dd>\n", visible(q.Host))
	p.Put("<dt>Asked at</dt><dd>%s</dd>\n<dt>Deadline</dt><dd>", formatTime(q.Asked))
	if q.OnTimeout == "" {
		p.Put("none")
	} else {
		left := "over"
		if d := q.Deadline.Sub(q.now); d > 0 {
			left = formatAge(d) + " left"
		}
		p.Put("%s <span class=\"dim\">(%s)</span><br>\nafter it: %s", formatTime(q.Deadline), left, verdictNames[q.Timeout])
	}
	p.Put("</dd>\n</dl>\n</section>\n")
}

// gateText returns the description of an event in the form that people see.
func gateText(data json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, data, "", "  ") != nil {
		return visible(string(data))
	}
	return visible(out.String())
}

// putDiff shows how arguments differ, if they do.
func putDiff(p *markup.Page, title string, before, after Arguments) {
	lines := diffLines(before.Text(), after.Text())
	if len(lines) == 0 {
		return
	}
	p.Put("<section>\n<h2>%s</h2>\n<pre class=\"diff\" tabindex=\"0\">", title)
	for _, line := range lines {
		tag := map[byte]markup.HTML{'-': "del", '+': "ins", ' ': "span"}[line.mark]
		p.Put("<%s>%s %s</%s>\n", tag, string(line.mark), line.text, tag)
	}
	p.Put("</pre>\n</section>\n")
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

func putDecision(p *markup.Page, d Decision) {
	p.Put("<dl>\n<dt>Verdict</dt><dd>%s", verdictNames[d.Verdict])
	p.PutIf(d.Arguments != "", ", with other arguments")
	p.Put("</dd>\n")
	p.PutIf(d.By != "", "<dt>By</dt><dd>%s", visible(d.By))
	p.PutIf(d.Identity != "" && d.Identity == d.By, ` <span class="dim">verified</span>`)
	p.PutIf(d.Identity != "" && d.Identity != d.By, ` <span class="dim">verified as %s</span>`, visible(d.Identity))
	p.PutIf(d.By != "", "</dd>\n")
	p.Put("<dt>At</dt><dd>%s</dd>\n", formatTime(d.At))
	p.PutIf(d.Run != "", "<dt>Run</dt><dd><code>%s</code></dd>\n", visible(string(d.Run)))
	p.PutIf(d.Reason != "", "<dt>Reason</dt><dd class=\"text\">%s</dd>\n", visible(d.Reason))
	p.Put("</dl>\n")
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
		p.Put("<details>\n<summary><code>%s</code>: %s\n<span class=\"dim\">%s <code>%s</code></span></summary>\n", visible(o.Tool), state, o.Kind, visible(o.Wait))
		p.PutIf(o.Reason != "", "<p class=\"text\">%s</p>\n", visible(o.Reason))
		p.Put("<pre tabindex=\"0\">%s</pre>\n</details>\n", o.Arguments.Text())
	}
	p.Put("</section>\n")
}

// putForm shows the form for a decision. The first button of a form is the one that the Enter key presses in a text field, so
// it is one that does nothing.
func (r reply) putForm(p *markup.Page) {
	q := r.Question
	p.Put(`<form method="post" autocomplete="off">
<button disabled hidden></button>
<input type="hidden" name="hash" value="%s">
`, q.Hash)
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
