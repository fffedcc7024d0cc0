package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
)

// WaiverField begins the names of form fields with patterns of arguments. The fields until and seen have the last day of the waiver, and
// WaiverForm.Fingerprint.
const WaiverField = "arg."

// The values of the buttons of the form for a waiver: the first shows its effect, the second approves the call and makes the waiver.
const (
	verdictPreview = "preview"
	verdictWaive   = "waive"
)

// EffectDays is how far back the effect of a waiver is computed, in days.
const EffectDays = 30

const (
	// mostWaiverDays is the longest lifetime of a waiver, in days.
	mostWaiverDays = 365
	// previewedAnswers is the maximum number of recorded answers that the effect is computed from.
	previewedAnswers = 10_000
)

// WaiverForm is a waiver that a person may make together with an approval.
type WaiverForm struct {
	Scope waiver.Scope
	// Free are the arguments that no pattern can describe: any value of them is allowed.
	Free []string
	// Until is when the waiver expires.
	Until time.Time
	// Effect is what the waiver would have done to the answers of the last EffectDays days; nil in a list.
	Effect *waiver.Effect
	// WhyNot says why waivers cannot answer the question; empty if they can.
	WhyNot string
}

// Fingerprint identifies what the effect was shown for: the field seen has it.
func (f *WaiverForm) Fingerprint() string { return f.Scope.String() }

// waiverRequest is the waiver in a decision.
type waiverRequest struct {
	// Arguments are patterns; absent, the call's arguments count. Until is when the waiver expires; absent, it is the end of next Friday.
	Arguments map[string]string `json:"arguments,omitempty"`
	Until     time.Time         `json:"until,omitzero"`
	// DryRun shows the effect and decides nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// waiverJSON is a waiver in a response.
type waiverJSON struct {
	Rule      string            `json:"rule,omitempty"`
	Tool      string            `json:"tool,omitempty"`
	Arguments map[string]string `json:"arguments"`
	Free      []string          `json:"any_value,omitempty"`
	Until     time.Time         `json:"until"`
	Answers   *int              `json:"answers,omitempty"`
	Covered   *int              `json:"covered,omitempty"`
	Rejected  *int              `json:"rejected,omitempty"`
	WhyNot    string            `json:"why_not,omitempty"`
}

func (f *WaiverForm) json() *waiverJSON {
	if f == nil {
		return nil
	}
	out := &waiverJSON{
		Rule: f.Scope.Rule, Tool: f.Scope.Tool, Arguments: f.Scope.Arguments, Free: f.Free, Until: f.Until, WhyNot: f.WhyNot,
	}
	if e := f.Effect; e != nil {
		covered := len(e.Covered)
		out.Answers, out.Covered, out.Rejected = &e.Answers, &covered, &e.Rejected
	}
	return out
}

// waiverForm returns the narrowest waiver for the call of a question, without its effect.
func (q *question) waiverForm() *WaiverForm {
	f := &WaiverForm{Until: waiver.EndOf(time.Friday, time.Now())}
	var err error
	if q.about.Kind != durable.KindAgent || q.kept.Kind != durable.WaitApproval {
		err = errors.New("it is not a rule's question about a call")
	} else {
		f.Scope, f.Free, err = waiver.ScopeOfCall(q.asked.Questions, q.asked.Call)
	}
	if err != nil {
		f.WhyNot = err.Error()
	}
	return f
}

// addEffect computes the effect of the waiver.
func (f *WaiverForm) addEffect(ctx context.Context, store durable.AuditReader) error {
	if f.WhyNot != "" {
		return nil
	}
	effect, err := waiver.Preview(ctx, store, f.Scope, time.Now().AddDate(0, 0, -EffectDays), previewedAnswers)
	f.Effect = &effect
	return err
}

// newWaiver returns the waiver of a decision, with its effect, and whether that is only to be shown; nil for a decision without one.
func (h *handler) newWaiver(ctx context.Context, q *question, given said) (f *WaiverForm, w durable.Waiver, preview bool, err error) {
	if given.Waiver == nil {
		return nil, w, false, nil
	}
	no := func(status int, format string, args ...any) (*WaiverForm, durable.Waiver, bool, error) {
		return nil, w, false, refuse(status, format+" Nothing was decided.", args...)
	}
	who, now := author(ctx), time.Now()
	f = q.waiverForm()
	switch until := given.Waiver.Until; {
	case who == nil || !h.options.Waivers:
		return no(http.StatusForbidden, "Only people who are signed in can make waivers.")
	case given.Verdict != agent.Approve.String():
		return no(http.StatusUnprocessableEntity, "A waiver goes with an approval.")
	case f.WhyNot != "":
		return no(http.StatusUnprocessableEntity, "A waiver cannot answer this: %s.", f.WhyNot)
	case len(given.Arguments) > 0:
		return no(http.StatusUnprocessableEntity, "A waiver is for the call as it is: do not change its arguments.")
	case until.IsZero():
	case until.After(now.AddDate(0, 0, mostWaiverDays+1)):
		return no(http.StatusUnprocessableEntity, "A waiver lasts at most %d days.", mostWaiverDays)
	default:
		f.Until = until
	}
	if given.Waiver.Arguments != nil {
		f.Scope.Arguments = given.Waiver.Arguments
	}
	f.Scope.Reason = strings.TrimSpace(given.Reason)
	if w, err = waiver.New(f.Scope, who.Name, f.Until); err != nil {
		return no(http.StatusUnprocessableEntity, "%v.", err)
	}
	if !f.Scope.Covers(f.Scope.Rule, q.asked.Call) {
		return no(http.StatusUnprocessableEntity, "The patterns do not match the call that you see.")
	}
	isSeen := given.form == nil || unixLines.Replace(given.form.Get("seen")) == f.Fingerprint()
	return f, w, given.Waiver.DryRun || !isSeen, f.addEffect(ctx, h.store)
}

// addWaiver stores the waiver of an approval, once for equal requests.
func (h *handler) addWaiver(ctx context.Context, q *question, w *durable.Waiver, f *WaiverForm, covers []string) error {
	sum := sha256.New()
	for _, part := range append([]string{string(q.kept.Run), q.kept.ID, w.By, w.Expires.UTC().String(), string(w.Data)}, covers...) {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	w.ID = "wvr_" + hex.EncodeToString(sum.Sum(nil)[:16])
	if err := h.store.AddWaiver(ctx, *w); err != nil && !errors.Is(err, durable.ErrExists) {
		return fmt.Errorf("making a waiver: %w", err)
	}
	h.options.Log.InfoContext(ctx, "approval: made a waiver", "waiver", w.ID, "rule", f.Scope.Rule, "tool", f.Scope.Tool, "identity", w.By)
	return nil
}

// unixLines undoes what browsers do to the lines of a field.
var unixLines = strings.NewReplacer("\r\n", "\n")

// readWaiver reads the fields of the form for a waiver.
func (s *said) readWaiver() error {
	s.Waiver = &waiverRequest{Arguments: map[string]string{}, DryRun: s.Verdict == verdictPreview}
	s.Verdict = agent.Approve.String()
	for field := range s.form {
		if path, ok := strings.CutPrefix(field, WaiverField); ok && s.form.Get(field) != "" && s.form.Get(field) != "*" {
			s.Waiver.Arguments[path] = unixLines.Replace(s.form.Get(field))
		}
	}
	day, err := time.Parse(time.DateOnly, s.form.Get("until"))
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "The last day of a waiver is missing, such as 2026-12-31. Nothing was decided.")
	}
	s.Waiver.Until = day.AddDate(0, 0, 1)
	return nil
}
