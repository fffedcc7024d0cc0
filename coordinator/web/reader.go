package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/markup"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// The reader's mode tells a run in sentences, for people who do not read JSON. Only tools and agents have their names there.

// putReaderLink leads to the other form of the page.
func (p *runPage) putReaderLink(out *markup.Page) {
	at, words := runPath(p.run.RunID)+"?read=1", "Read it as sentences"
	if p.reads {
		at, words = runPath(p.run.RunID), "Show the details"
	}
	out.Put("<p class=\"more\"><a class=\"button\" href=\"%s\">%s</a></p>\n", at, words)
}

// putSentences writes the content of the page in the reader's mode.
func (p *runPage) putSentences() {
	p.putHead(&p.Page)
	p.Put("<section class=\"steps reader\" aria-labelledby=\"story\"><h2 id=\"story\">What happened</h2>\n<div id=\"entries\">\n")
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

// putEntry shows an entry as the page does.
func (p *runPage) putEntry(out *markup.Page, e entry) {
	if !p.reads {
		p.story.putEntry(out, e, p.run.Status)
		return
	}
	out.Put(`<div class="said" id="%s">`+"\n", p.story.entryID(e))
	for _, text := range p.sentences(e) {
		out.Put("<p class=\"text\">%s</p>\n", cutText(text, reasonLen))
	}
	out.Put("</div>\n")
}

// sentences tells an entry.
func (p *runPage) sentences(e entry) (all []string) {
	switch {
	case e.decision != nil:
		return []string{aroundSentence(*e.decision, isEnded(p.run.Status))}
	case e.step == nil:
		return []string{capital(sentence(e.note))}
	}
	who := "The agent"
	if e.step.agent != "" {
		who = "The helper " + e.step.agent
	}
	for _, text := range e.step.input {
		all = append(all, "It was told: “"+strings.TrimSpace(text)+"”")
	}
	for _, d := range e.step.other {
		all = append(all, stepSentence(*d))
	}
	if text := strings.TrimSpace(e.step.text); text != "" {
		all = append(all, who+" said: “"+text+"”")
	}
	for _, c := range e.step.calls {
		all = append(all, who+" wanted to "+doing(c.tool)+argumentWords(c.original)+". "+strings.Join(c.sentences(), " "))
	}
	if e.step.err != "" {
		all = append(all, "This failed: "+sentence(e.step.err))
	}
	return all
}

// sentences tells what became of a call.
func (c *call) sentences() (all []string) {
	for _, d := range c.decisions {
		if d.kind == rewrote && d.After != "" && d.After != d.Before {
			all = append(all, fmt.Sprintf("This was changed%s, by %s.", changeWords(d.Before, d.After), ruleWords(*d)))
		}
		if d.kind == shadow {
			all = append(all, fmt.Sprintf("A rule that is being tried out, %s, would have objected%s", ruleWords(*d), because(d.Reason)))
		}
	}
	for i, q := range c.questions {
		if i == 0 {
			all = append(all, "People were asked"+because(q.Reason))
		}
	}
	for _, a := range c.answers {
		who := cmp.Or(a.Identity, a.By, "A person")
		said := lo.Ternary(a.Verdict == agent.Approve.String(), "agreed", "did not agree")
		all = append(all, who+" "+said+because(a.Reason))
	}
	return append(all, c.ending())
}

// ending tells how a call has ended.
func (c *call) ending() string {
	d := c.done
	why := ""
	for _, one := range c.decisions {
		if one.kind == denied || one.kind == withheld || one.kind == failed {
			why = one.Reason
		}
	}
	switch {
	case d == nil && c.look() == asked:
		return "It waits for an answer."
	case d == nil:
		return lo.Ternary(c.runs, "It is still at it.", "It did not happen.")
	case d.Reason == agent.ReasonRejected:
		return "It did not happen, because a person said no."
	case d.Reason == agent.ReasonNobodyToAsk:
		return "Stopped, because no person was there to ask."
	case d.Reason == agent.ReasonHookFailed:
		return "Stopped, because a rule could not decide."
	case d.Denied:
		return "Stopped" + because(cmp.Or(why, d.Text))
	case d.Reason == agent.ReasonWithheld:
		return "It happened, and the agent was not shown the answer" + because(why)
	case d.Status == agent.ToolUnknown:
		return "Whether it happened is unknown."
	case d.Status == agent.ToolMocked:
		return "It did not happen: a rule answered in its place."
	case d.Reason != "" || d.Status == agent.ToolFailed:
		return "It did not work: " + sentence(d.Text)
	case strings.TrimSpace(d.Text) == "":
		return "It happened."
	}
	return "It happened, and the answer was: " + sentence(firstLine(d.Text))
}

// because adds a reason to a sentence, and ends it.
func because(reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return "."
	}
	return ", because: " + sentence(reason)
}

// sentence ends text as a sentence.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?:") || strings.HasSuffix(text, "…") || strings.HasSuffix(text, "”") {
		return text
	}
	return text + "."
}

// capital returns text with a capital at its beginning.
func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// aroundSentence tells what a hook around the run, or one of a pipeline, has done.
func aroundSentence(d decision, ended bool) string {
	when := cmp.Or(pointWords[d.Point], d.Point)
	who := capital(when) + ", " + ruleWords(d)
	switch {
	case d.kind == running:
		return who + lo.Ternary(ended, " was interrupted.", " is still deciding.")
	case d.kind == failed:
		return who + " could not decide: " + sentence(d.Error)
	case d.kind == denied:
		return who + " stopped the run" + because(d.Reason)
	case d.kind == withheld:
		return who + " held the result back" + because(d.Reason)
	case d.kind == rewrote && d.After != d.Before:
		return who + " changed what the run works with" + changeWords(d.Before, d.After) + "."
	case d.kind == rewrote:
		return who + " changed the result" + because(d.Reason)
	}
	return who + " had no objection."
}

// stepSentence tells what a hook of the agent has decided outside of calls.
func stepSentence(d decision) string {
	who := capital(ruleWords(d))
	switch d.kind {
	case denied:
		return who + " stopped this" + because(d.Reason)
	case withheld:
		return who + " held it back" + because(d.Reason)
	case failed:
		return who + " could not decide: " + sentence(d.Error)
	case rewrote:
		return who + " changed it" + because(d.Reason)
	case asked:
		return who + " asked people" + because(d.Reason)
	case shadow:
		return who + " is being tried out, and would have objected" + because(d.Reason)
	}
	return who + " had no objection."
}

// ruleWords names the rule or hook of a decision.
func ruleWords(d decision) string {
	switch {
	case d.Origin != nil && d.Origin.Rule != "":
		return "the rule “" + d.Origin.Rule + "”"
	case d.Around && d.Target != "":
		return "the hook “" + d.Target + "”"
	}
	return "the hook “" + d.name + "”"
}

var (
	humps    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	notWords = regexp.MustCompile(`[_\-./:\s]+`)
)

// toolWords returns the name of a tool as words: send_email, sendEmail and mail.send-email are read.
func toolWords(name string) string {
	name = humps.ReplaceAllString(name, "$1 $2")
	return strings.ToLower(strings.TrimSpace(notWords.ReplaceAllString(name, " ")))
}

// verbs begin the names of tools that say what they do.
var verbs = strings.Fields(`add approve ask assign book buy call cancel change check close comment commit copy create delete deploy download edit fetch
find forward get invite list look make merge move open order pay plan post publish pull push query read remove rename reply reserve restart run save
schedule search send set share start stop store submit summarize sync transfer update upload verify view write`)

// doing returns what a tool does: "send email", or "use bash" for one whose name does not say.
func doing(tool string) string {
	words := toolWords(tool)
	if first, _, _ := strings.Cut(words, " "); slices.Contains(verbs, first) {
		return words
	}
	return "use " + words
}

// wordsOf are how many members of arguments a sentence has.
const wordsOf = 5

// argumentWords returns arguments as words: ", with amount 20 and to “Carol”".
func argumentWords(text string) string {
	words := argumentsIn(text)
	if len(words) == 0 {
		return ""
	}
	names := make([]string, len(words))
	for i, m := range words {
		names[i] = toolWords(m.name) + " " + m.value
	}
	return ", with " + andList(names)
}

// argument is a member of arguments, as words.
type argument struct{ name, value string }

// argumentsIn returns the members of a JSON object, in order of their names, those with a value that people read first.
func argumentsIn(text string) (all []argument) {
	var object map[string]json.RawMessage
	if strictjson.Unmarshal([]byte(text), &object) != nil {
		return nil
	}
	names := lo.Keys(object)
	slices.Sort(names)
	for _, name := range names {
		if value := valueWords(object[name]); value != "" {
			all = append(all, argument{name, value})
		}
	}
	return all
}

// valueWords returns a value as words.
func valueWords(data json.RawMessage) string {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return lo.Ternary(v == "", "", "“"+firstLine(v)+"”")
	case []any:
		return countOf(len(v), "entry", "entries")
	case map[string]any:
		return countOf(len(v), "detail")
	case nil:
		return ""
	}
	return string(data)
}

// andList joins words; only the first ones are listed.
func andList(all []string) string {
	if rest := len(all) - wordsOf; rest > 0 {
		all = append(slices.Clone(all[:wordsOf]), fmt.Sprintf("%d more", rest))
	}
	if len(all) == 1 {
		return all[0]
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// changeWords tells how arguments were changed: ": amount from 300 to 100".
func changeWords(before, after string) string {
	was := lo.SliceToMap(argumentsIn(before), func(m argument) (string, string) { return m.name, m.value })
	var words []string
	is := map[string]bool{}
	for _, m := range argumentsIn(after) {
		is[m.name] = true
		switch old, had := was[m.name]; {
		case !had:
			words = append(words, toolWords(m.name)+" added as "+m.value)
		case old != m.value:
			words = append(words, toolWords(m.name)+" from "+old+" to "+m.value)
		}
	}
	for _, m := range argumentsIn(before) {
		if !is[m.name] {
			words = append(words, toolWords(m.name)+" removed")
		}
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + andList(words)
}
