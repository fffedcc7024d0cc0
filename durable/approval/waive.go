package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// WaiverField begins the names of form fields with patterns of arguments.
const WaiverField = "arg."

const (
	// waiverDays is the default lifetime of a waiver, mostWaiverDays the longest, in days.
	waiverDays, mostWaiverDays = 30, 365
	// previewedAnswers is the maximum number of recorded answers that the effect is computed from.
	previewedAnswers = 10_000
)

// WaiverForm is a waiver that a person describes in the form below a question.
type WaiverForm struct {
	Scope waiver.Scope
	Days  int
	// Effect is what the waiver would have done; nil before it was computed.
	Effect *waiver.Effect
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
			text, isText := value.(string)
			switch {
			case isText && visible(name+text) != name+text: // a form cannot show it as it is
				return s, false
			case isText && len(text) <= invisible.MaxReason:
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
		h.reply(w, r, Page{Status: http.StatusBadRequest, Message: "The body is not a form, or too large. Nothing was decided."})
		return
	}
	q, err := findWait(r.Context(), h.store, agent.RunID(form.Get("run")), form.Get("wait"))
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
	if given != nil {
		answer.Waiver = given
	}
	h.reply(w, r, answer)
}

// applyWaiver returns the waiver of a form with its effect, and what to tell the person.
func (h *handler) applyWaiver(ctx context.Context, q *question, form url.Values) (given *WaiverForm, message string, err error) {
	given, w, err := parseWaiver(q, form, author(ctx).Name)
	if err != nil {
		return given, "", err
	}
	effect, err := waiver.Preview(ctx, h.store, given.Scope, time.Time{}, previewedAnswers)
	if err != nil {
		return given, "", err
	}
	given.Effect = &effect
	if form.Get("make") != "yes" {
		return given, "This is the effect of the waiver. Nothing was decided yet.", nil
	}
	err = h.announce(ctx, q.kept.Run, "waive "+given.Scope.Rule+" "+given.Scope.Tool)
	if err == nil {
		err = h.store.AddWaiver(ctx, w)
	}
	if err != nil {
		return given, "", fmt.Errorf("making a waiver: %w", err)
	}
	h.options.Log.InfoContext(ctx, "approval: made a waiver", "waiver", w.ID, "rule", given.Scope.Rule, "tool", given.Scope.Tool, "identity", w.By)
	return nil, fmt.Sprintf("Waiver %s is in force until %s. This call still waits for your answer.", w.ID, formatTime(w.Expires)), nil
}

// parseWaiver reads the form for a waiver by a person.
func parseWaiver(q *question, form url.Values, by string) (*WaiverForm, durable.Waiver, error) {
	refuseWaiver := func(format string, args ...any) (*WaiverForm, durable.Waiver, error) {
		return nil, durable.Waiver{}, refuse(http.StatusUnprocessableEntity, format+" Nothing was decided.", args...)
	}
	s, ok := q.waivable()
	if !ok || q.isOver() || q.kept.Answer != nil || q.isExpired(time.Now()) {
		return refuseWaiver("A waiver cannot answer this.")
	}
	s.Arguments = map[string]string{}
	for field := range form {
		if path, ok := strings.CutPrefix(field, WaiverField); ok && form.Get(field) != "" && form.Get(field) != "*" {
			s.Arguments[path] = form.Get(field)
		}
	}
	s.Reason = strings.TrimSpace(form.Get("reason"))
	days, err := strconv.Atoi(form.Get("days"))
	if err != nil || days < 1 || days > mostWaiverDays {
		return refuseWaiver("A waiver lasts 1 to %d days.", mostWaiverDays)
	}
	w, err := waiver.New(s, by, time.Now().Add(time.Duration(days)*24*time.Hour))
	if err != nil {
		return refuseWaiver("%v.", err)
	}
	if !s.Covers(s.Rule, q.asked.Call) {
		return refuseWaiver("The patterns do not match the call that you see.")
	}
	return &WaiverForm{Scope: s, Days: days}, w, nil
}
