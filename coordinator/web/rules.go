package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/markup"
)

const (
	rulesPath = prefix + "rules"
	// rulesShown is how many rules a page lists.
	rulesShown = 200
)

// rulesQuery says which rules, or which hits, a page shows.
type rulesQuery struct {
	hook, agent, decision, before string
	days                          int
}

func rulesQueryOf(values url.Values) rulesQuery {
	days, err := strconv.Atoi(values.Get("days"))
	if err != nil || days < 1 || days > 366 {
		days = coordinator.DefaultDays
	}
	return rulesQuery{values.Get("hook"), strings.TrimSpace(values.Get("agent")), values.Get("decision"), values.Get("before"), days}
}

// address returns the address of a page for the query.
func (q rulesQuery) address(path string) string {
	values := url.Values{"days": {strconv.Itoa(q.days)}}
	for name, value := range map[string]string{"hook": q.hook, "agent": q.agent, "decision": q.decision, "before": q.before} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return path + "?" + values.Encode()
}

// showRules serves the rules with what they have decided.
func (h *Handler) showRules(w http.ResponseWriter, r *http.Request, v *view) {
	q := rulesQueryOf(r.URL.Query())
	list, err := h.o.Coordinator.Rules(r.Context(), wire.RuleFilter{Days: q.days, AgentName: q.agent})
	if err != nil {
		h.fail(w, r, v, "reading rules", err)
		return
	}
	v.title, v.part = "Rules", partRules
	v.Put(`<div class="title"><h1>Rules</h1>
<form class="search" role="search" action="%s"><input type="hidden" name="days" value="%s">
<label class="wide"><span class="hide">Agent</span>
<input type="search" name="agent" value="%s" placeholder="Agent" autocomplete="off" spellcheck="false" data-slash></label>
<button>Search</button></form></div>
<nav class="tabs" aria-label="How many days"><ul>
`, rulesPath, q.days, cutText(q.agent, lineLen))
	for _, days := range []int{7, 30, 90} {
		v.Put(`<li><a href="%s"`, rulesQuery{agent: q.agent, days: days}.address(rulesPath))
		v.PutIf(days == q.days, ` aria-current="page"`)
		v.Put(">%s days</a></li>\n", days)
	}
	v.Put("</ul></nav>\n")
	if len(list.Rules) == 0 {
		v.Put("<p class=\"dim\" id=\"none\">No rule was called in these days, and no blueprint has hooks.</p>\n")
	}
	v.Put("<ul class=\"rows\" id=\"rules\">\n")
	for _, rule := range list.Rules[:min(rulesShown, len(list.Rules))] {
		v.putRule(rule, rulesQuery{hook: rule.Hook, agent: rule.AgentName, days: q.days})
	}
	v.Put("</ul>\n")
	v.PutIf(len(list.Rules) > rulesShown, "<p class=\"dim\">%s more rules have fewer hits. Search for their agent.</p>\n", len(list.Rules)-rulesShown)
	reply(w, http.StatusOK, v.render())
}

// putRule shows a rule with its counts.
func (v *view) putRule(r wire.Rule, hits rulesQuery) {
	name := cutText(cmp.Or(r.Hook, "other hooks"), lineLen)
	v.Put(`<li class="rule"><h2>`)
	if r.Hook == "" {
		v.Put("%s", name)
	} else {
		v.Put(`<a data-key href="%s">%s</a>`, hits.address(rulesPath+"/hits"), name)
	}
	v.Put("</h2>\n<p class=\"dim\">%s</p>\n", strings.Join(lo.Map(lo.Compact([]string{
		r.AgentName, r.Point, r.Type, r.Mode, r.Path,
	}), func(s string, _ int) string { return cutText(s, lineLen) }), " · "))
	if kind, text := noticeOf(r); text != "" {
		v.Put("<p class=\"notice %s\">%s<span>%s</span></p>\n", string(kind), icon(kind), text)
	}
	v.Put("<dl class=\"facts\">\n")
	for _, f := range []struct{ name, value string }{
		{"asked", formatCount(r.Asked)}, {"hits", formatCount(r.Hits)}, {"in shadow", formatCount(r.ShadowHits)},
		{"overridden", formatCount(r.Overridden)}, {"failed", formatCount(r.Failed + r.Timeouts)}, {"95% within", formatP95(r)},
	} {
		v.Put("<div><dt>%s</dt><dd>%s</dd></div>\n", f.name, f.value)
	}
	v.Put("<div><dt>last hit</dt><dd>")
	if r.LastHit.IsZero() {
		v.Put("none")
	} else {
		v.Put("%s", formatWhen(r.LastHit, v.now))
	}
	v.Put("</dd></div>\n</dl>\n")
	if marks := ruleMarks(r); marks != "" && r.Hook != "" {
		v.Put("<p class=\"badges\">%s</p>\n", marks)
	}
	whatIf := url.Values{"hook": {r.Hook}, "agent": {r.AgentName}}
	v.PutIf(r.AgentName != "", "<p><a class=\"button\" href=\"%s\">What if?</a></p>\n", whatIfPath+"?"+whatIf.Encode())
	v.Put("</li>\n")
}

// decisionWords are the decisions that a rule shows, with their icons and words.
var decisionWords = []struct {
	decision durable.Decision
	kind     verdict
	word     string
}{
	{durable.DecisionBlocked, denied, "blocked"}, {durable.DecisionDenied, denied, "denied"}, {durable.DecisionAsked, asked, "asked people"},
	{durable.DecisionRewritten, rewrote, "changed"}, {durable.DecisionWithheld, withheld, "withheld"}, {durable.DecisionFailed, failed, "failed"},
	{durable.DecisionTimeout, failed, "too slow"}, {durable.DecisionShadow, shadow, "in shadow"},
}

// ruleMarks returns the decisions of a rule with their numbers.
func ruleMarks(r wire.Rule) markup.HTML {
	var p markup.Page
	for _, w := range decisionWords {
		if n := r.Decisions[w.decision]; n > 0 {
			p.Put(`<span class="count %s">%s%s %s</span>`, string(w.kind), icon(w.kind), formatCount(n), w.word)
		}
	}
	return markup.HTML(p.String())
}

// noticeOf returns what stands out about a rule, with its icon.
func noticeOf(r wire.Rule) (verdict, string) {
	switch r.Notice {
	case wire.RuleUnused:
		return shadow, "Not called in these days."
	case wire.RuleNever:
		return shadow, "Never hit in " + formatCount(r.Asked) + " calls: it may be dead, or too narrow."
	case wire.RuleOverridden:
		return failed, "People override it nearly always: it may be too strict."
	}
	return "", ""
}

// formatP95 returns how long nearly all calls took.
func formatP95(r wire.Rule) string {
	switch {
	case r.P95MS == 0:
		return "–"
	case r.P95MS < 0:
		return "over 20 s"
	case r.P95MS < 1000:
		return fmt.Sprintf("%d ms", r.P95MS)
	}
	return fmt.Sprintf("%d s", r.P95MS/1000)
}

// formatCount returns a number with its thousands apart.
func formatCount(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// showHits serves what a rule has decided.
func (h *Handler) showHits(w http.ResponseWriter, r *http.Request, v *view) {
	q := rulesQueryOf(r.URL.Query())
	if q.decision != "" && !slices.Contains(durable.Decisions, durable.Decision(q.decision)) || q.hook == "" {
		h.fail(w, r, v, "reading hits", errUnknownList)
		return
	}
	list, err := h.o.Coordinator.RuleHits(r.Context(), q.hook, wire.HitFilter{
		Days: q.days, AgentName: q.agent, Decision: q.decision, Before: q.before, Limit: partShown,
	})
	if err != nil {
		h.fail(w, r, v, "reading hits", err)
		return
	}
	v.title, v.part = "Hits of "+firstLine(q.hook), partRules
	v.Put("<p class=\"path\"><a href=\"%s\">Rules</a> / %s</p>\n<div class=\"title\"><h1>%s</h1> <span class=\"dim\">%s</span></div>\n",
		rulesQuery{agent: q.agent, days: q.days}.address(rulesPath), cutText(cmp.Or(q.agent, "all agents"), lineLen), cutText(q.hook, lineLen),
		fmt.Sprintf("runs of %d days", q.days))
	v.Put("<nav class=\"tabs\" aria-label=\"Which decisions\"><ul>\n")
	tab := func(decision, word string) {
		one := q
		one.decision, one.before = decision, ""
		v.Put(`<li><a href="%s"`, one.address(rulesPath+"/hits"))
		v.PutIf(decision == q.decision, ` aria-current="page"`)
		v.Put(">%s</a></li>\n", word)
	}
	tab("", "All")
	for _, w := range decisionWords {
		tab(string(w.decision), w.word)
	}
	tab(string(durable.DecisionOverridden), "overridden")
	v.Put("</ul></nav>\n")
	if len(list.Runs) == 0 {
		v.Put("<p class=\"dim\" id=\"none\">No run has such a decision. It may have been deleted: counts stay.</p>\n")
	}
	v.Put("<ul class=\"rows tree\" id=\"hits\">\n")
	for _, of := range list.Runs {
		v.putRow(&v.Page, row{Run: of.Run})
		v.Put("<li><ul class=\"rows\">\n")
		for _, hit := range of.Hits {
			v.putHit(of.Run, hit)
		}
		v.Put("</ul>")
		v.PutIf(of.More, "<p class=\"dim\">The run may have more.</p>")
		v.Put("</li>\n")
	}
	v.Put("</ul>\n")
	if list.Next != "" {
		older := q
		older.before = list.Next
		v.Put("<p class=\"more\"><a class=\"button\" href=\"%s\">Older runs</a></p>\n", older.address(rulesPath+"/hits"))
	}
	reply(w, http.StatusOK, v.render())
}

// putHit shows one decision, which leads to its place in the run.
func (v *view) putHit(r wire.Run, hit wire.Hit) {
	kind := hitKind(hit)
	v.Put(`<li><a class="hit" href="%s?d=%s#d-%s"><span class="%s">%s</span><span><b>%s</b> %s<span class="why">%s</span></span>%s</a></li>
`, runPath(r.RunID), hit.Seq, hit.Seq, string(kind), icon(kind), cutText(hit.Decision, lineLen), firstLine(cmp.Or(hit.Tool, hit.Point)), firstLine(hit.Reason),
		formatWhen(hit.Time, v.now))
}

// hitKind returns the kind of a decision.
func hitKind(hit wire.Hit) verdict {
	return kindOf(coordinator.HookCall{
		Outcome: hit.Outcome, Decision: hit.Decision, Shadow: hit.Shadow, Point: hit.Point, Around: strings.HasPrefix(hit.Point, "on_"),
	})
}
