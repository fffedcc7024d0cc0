package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/internal/markup"
)

const (
	// waiverDays is the default lifetime of a waiver, mostWaiverDays the longest, in days.
	waiverDays, mostWaiverDays = 30, 365
	// previewedAnswers is the maximum number of recorded answers that the effect is computed from, and coveredLines that of
	// the lines that show it.
	previewedAnswers, coveredLines = 10_000, 10
	// argumentField begins the names of form fields with patterns of arguments.
	argumentField = "arg."
)

// waiving is a waiver that a person describes in the form below a question.
type waiving struct {
	scope  waiver.Scope
	days   int
	effect *waiver.Effect // nil before it was computed
}

// waivable returns the rule and the scope of a waiver for exactly the call of a question; ok is false when waivers cannot
// answer all of its open questions, or those of several rules.
func (q *question) waivable() (s waiver.Scope, ok bool) {
	open := q.asked.Questions.Open()
	rules := lo.Uniq(lo.Map(open, func(one agent.Question, _ int) string { return one.By }))
	if len(rules) != 1 || rules[0] == "" || !lo.EveryBy(open, waiver.CanAnswer) {
		return s, false
	}
	s = waiver.Scope{Rule: rules[0], Tool: q.asked.Call.Name, Arguments: map[string]string{}}
	var arguments map[string]any
	if json.Unmarshal([]byte(q.asked.Call.Arguments), &arguments) == nil {
		for name, value := range arguments {
			if text, ok := value.(string); ok && len(text) <= reasonBytes {
				s.Arguments[name] = text
			}
		}
	}
	return s, true
}

// waive shows the effect of the waiver in a form, or makes it.
func (h *handler) waive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytes))
	form, invalid := url.ParseQuery(string(body))
	if err != nil || invalid != nil {
		h.reply(w, r, reply{Status: http.StatusBadRequest, Message: "The body is not a form, or too large. Nothing was decided."})
		return
	}
	name := waitNameOf(form)
	q, err := findWait(r.Context(), h.store, agent.RunID(name.run), name.wait)
	if err != nil {
		h.replyFailure(w, r, "looking for a question", err)
		return
	}
	given, message, err := h.applyWaiver(r.Context(), q, form)
	status := http.StatusOK
	if refused, ok := errors.AsType[*refusal](err); ok {
		status, message = refused.status, refused.message
	} else if err != nil {
		h.replyFailure(w, r, "making a waiver", err)
		return
	}
	answer, err := h.replyWith(r.Context(), q, status, message)
	if err != nil {
		h.replyFailure(w, r, "showing a question", err)
		return
	}
	answer.waiving, answer.action = given, name.address(pathWait)
	h.reply(w, r, answer)
}

// applyWaiver returns the waiver of a form with its effect, and what to tell the person.
func (h *handler) applyWaiver(ctx context.Context, q *question, form url.Values) (given *waiving, message string, err error) {
	given, w, err := parseWaiver(q, form, author(ctx).Name)
	if err != nil {
		return given, "", err
	}
	effect, err := waiver.Preview(ctx, h.store, given.scope, time.Time{}, previewedAnswers)
	if err != nil {
		return given, "", err
	}
	given.effect = &effect
	if form.Get("make") != "yes" {
		return given, "This is the effect of the waiver. Nothing was decided yet.", nil
	}
	err = h.announce(ctx, q.kept.Run, "waive "+given.scope.Rule+" "+given.scope.Tool)
	if err == nil {
		err = h.store.AddWaiver(ctx, w)
	}
	if err != nil {
		return given, "", fmt.Errorf("making a waiver: %w", err)
	}
	h.options.Log.InfoContext(ctx, "approval: made a waiver", "waiver", w.ID, "rule", given.scope.Rule, "tool", given.scope.Tool, "identity", w.By)
	return nil, fmt.Sprintf("Waiver %s is in force until %s. This call still waits for your answer.", w.ID, formatTime(w.Expires)), nil
}

// parseWaiver reads the form for a waiver by a person.
func parseWaiver(q *question, form url.Values, by string) (*waiving, durable.Waiver, error) {
	refuseWaiver := func(format string, args ...any) (*waiving, durable.Waiver, error) {
		return nil, durable.Waiver{}, refuse(http.StatusUnprocessableEntity, format+" Nothing was decided.", args...)
	}
	s, ok := q.waivable()
	if !ok || q.isOver() || q.kept.Answer != nil || q.isExpired(time.Now()) {
		return refuseWaiver("A waiver cannot answer this.")
	}
	s.Arguments = map[string]string{}
	for field := range form {
		if path, ok := strings.CutPrefix(field, argumentField); ok && form.Get(field) != "" && form.Get(field) != "*" {
			s.Arguments[path] = form.Get(field)
		}
	}
	s.Reason = strings.TrimSpace(form.Get("reason"))
	days, err := strconv.Atoi(form.Get("days"))
	if err != nil || days < 1 || days > mostWaiverDays {
		return refuseWaiver("A waiver lasts 1 to %d days.", mostWaiverDays)
	}
	if !isSpeakable(s.Reason, reasonBytes, "\n\t") {
		return refuseWaiver("A reason may have %d bytes, without invisible characters.", reasonBytes)
	}
	w, err := waiver.New(s, by, time.Now().Add(time.Duration(days)*24*time.Hour))
	if err != nil {
		return refuseWaiver("%v.", err)
	}
	if !s.Covers(s.Rule, q.asked.Call) {
		return refuseWaiver("The patterns do not match the call that you see.")
	}
	return &waiving{scope: s, days: days}, w, nil
}

// putWaiver shows the form for a waiver, and its effect once it was computed.
func (r reply) putWaiver(p *markup.Page) {
	given := r.waiving
	if given == nil {
		s, ok := r.asked.waivable()
		if !ok {
			return
		}
		given = &waiving{scope: s, days: waiverDays}
	}
	open := markup.HTML("")
	if given.effect != nil {
		open = " open"
	}
	p.Put(`<form id="waiver" method="post" action="waiver#waiver" autocomplete="off">
<details%s>
<summary>Approve like calls from now on</summary>
<button disabled hidden></button>
<p class="dim">A waiver answers the questions of <code>%s</code> about <code>%s</code> when the arguments match. * stands for any text.</p>
<input type="hidden" name="run" value="%s">
<input type="hidden" name="wait" value="%s">
`, open, visible(given.scope.Rule), visible(given.scope.Tool), r.Question.Run, r.Question.Wait)
	for n, name := range slices.Sorted(maps.Keys(given.scope.Arguments)) {
		id := "arg" + strconv.Itoa(n)
		p.Put(`<label for="%s"><code>%s</code></label>
<input id="%s" name="%s" value="%s" class="code">
`, id, visible(name), id, argumentField+name, given.scope.Arguments[name])
	}
	p.Put(`<label for="days">For how many days</label>
<input id="days" name="days" type="number" min="1" max="%s" value="%s">
<label for="why">Reason <span class="dim">for the audit log</span></label>
<input id="why" name="reason" maxlength="8000" value="%s">
`, mostWaiverDays, given.days, given.scope.Reason)
	if e := given.effect; e != nil {
		p.Put("<p>It would have given %s of the %s recorded answers; people rejected %s of these.</p>\n", len(e.Covered), e.Answers, e.Rejected)
		for _, a := range e.Covered[:min(len(e.Covered), coveredLines)] {
			p.Put("<p class=\"dim\">%s by %s: <code>%s</code></p>\n", verdictNames[a.Verdict], visible(a.By), Arguments(a.Call.Arguments).Preview())
		}
	}
	p.Put("<div class=\"buttons\">\n<button>Show the effect</button>\n")
	p.PutIf(given.effect != nil, "<button name=\"make\" value=\"yes\" class=\"yes\">Make the waiver</button>\n")
	p.Put("</div>\n</details>\n</form>\n")
}
