package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Size limits of a decision in bytes. A body may be bodyBytes longer than the arguments that it returns.
const (
	bodyBytes = 256 << 10
	mediaForm = "application/x-www-form-urlencoded"
	mediaJSON = "application/json"
)

// said is a decision as received, from a form or as JSON.
type said struct {
	Verdict string `json:"verdict"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Arguments replace the arguments that were shown.
	Arguments json.RawMessage `json:"arguments,omitzero"`
	// Input is the answer to a tool that asks for input.
	Input json.RawMessage `json:"input,omitzero"`
	// Wait is the ID of what was seen, and Questions are the IDs of its questions that the decision is about.
	Wait      string   `json:"wait"`
	Questions []string `json:"questions"`
	// Waiver makes a waiver with the approval. Without arguments it is for the call's.
	Waiver *waiverRequest `json:"waiver,omitzero"`

	form   url.Values          // as it was sent
	fields map[string][]string // the input from a form
	text   *string             // the text of the arguments from a form
}

// refusal is the reply to an invalid decision, with the reason.
type refusal struct {
	status  int
	message string
	again   bool // show the question as it is now
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...), false}
}

// decide handles a posted decision.
func (h *handler) decide(w http.ResponseWriter, r *http.Request, find finder) {
	q, err := find(r.Context())
	if err != nil {
		h.replyFailure(w, r, "looking for a question", err)
		return
	}
	if q.isOver() {
		h.replyQuestion(w, r, q, http.StatusConflict, "")
		return
	}
	given, err := readAnswer(w, r, bodyBytes+int64(8*len(q.kept.Data)))
	approval, err := parseDecision(q, given, author(r.Context()), err)
	var recorded durable.Wait
	var waives *WaiverForm
	if err == nil {
		var made durable.Waiver
		var preview bool
		if waives, made, preview, err = h.newWaiver(r.Context(), q, given); preview && err == nil {
			h.replyPreview(w, r, q, waives)
			return
		}
		if err == nil {
			recorded, err = h.record(r.Context(), q, approval, waives, made)
			err = h.explain(err)
		}
	}
	switch refused, isRefusal := errors.AsType[*refusal](err); {
	case isRefusal && refused.again:
		h.replyAgain(w, r, find, refused)
	case isRefusal:
		if refused.status == http.StatusForbidden && author(r.Context()) == nil && h.identifies() {
			refused.message += " Sign in, so that your identity is verified."
		}
		answer, err := h.replyWith(r.Context(), q, refused.status, refused.message)
		if err != nil {
			h.replyFailure(w, r, "showing a question", err)
			return
		}
		answer.Form = given.form
		h.reply(w, r, answer)
	case err != nil:
		h.replyFailure(w, r, "recording a decision", err)
	default:
		message := "Decided. You can close this page."
		if waives != nil {
			message = fmt.Sprintf("Approved, and so are like calls until %s.", formatTime(waives.Until))
		}
		if more := StillNeeds(recorded); more != "" {
			message = "Recorded. " + more
		}
		q.kept = recorded
		if q.asked, err = durable.InterventionOf(recorded); err != nil {
			h.replyFailure(w, r, "showing a question", err)
			return
		}
		h.replyQuestion(w, r, q, http.StatusOK, message)
	}
}

// replyPreview shows the effect of a waiver.
func (h *handler) replyPreview(w http.ResponseWriter, r *http.Request, q *question, f *WaiverForm) {
	answer, err := h.replyWith(r.Context(), q, http.StatusOK, "This is the effect of the waiver. Nothing was decided yet.")
	if err != nil {
		h.replyFailure(w, r, "showing a question", err)
		return
	}
	if answer.Waiver != nil {
		answer.Waiver = f
	}
	h.reply(w, r, answer)
}

// explain returns the refusal that an error of durable.Decide stands for.
func (h *handler) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, durable.ErrAnswered):
		return &refusal{http.StatusConflict, alreadyDecided, true}
	case errors.Is(err, durable.ErrChanged):
		return &refusal{http.StatusConflict, hasChanged, true}
	case errors.Is(err, durable.ErrExpired), errors.Is(err, durable.ErrNotFound):
		return &refusal{http.StatusConflict, over.Message, true}
	}
	if denied, ok := errors.AsType[*durable.NotAdmittedError](err); ok {
		return refuse(http.StatusForbidden, "Your answer does not count: %s. Nothing was decided.", denied.Why)
	}
	if invalid, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		lines := lo.Map(invalid.Problems, func(p agent.ArgumentProblem, _ int) string { return visible(p.String()) })
		return refuse(http.StatusUnprocessableEntity, "The arguments do not fit the tool. Nothing was decided.\n%s", strings.Join(lines, "\n"))
	}
	if unsafe, ok := errors.AsType[*invisible.UnsafeTextError](err); ok {
		return refuse(http.StatusUnprocessableEntity, "Write it again: %v. Nothing was decided.", unsafe)
	}
	return err
}

// replyAgain replies to a person whose decision came too late with the question as it is now.
func (h *handler) replyAgain(w http.ResponseWriter, r *http.Request, find finder, refused *refusal) {
	q, err := find(r.Context())
	switch {
	case err != nil:
		h.replyFailure(w, r, "looking for a question", err)
	default:
		h.replyQuestion(w, r, q, refused.status, refused.message)
	}
}

const (
	alreadyDecided = "Already decided: this request changed nothing. The decision below says whose answer counts."
	hasChanged     = "The question has changed since you saw it. Nothing was decided: read what is asked now."
)

// record stores the answer, calls Options.Decided and returns the wait with the answer. A waiver is stored before the answer: if the
// process stops in between, the question is still open, and the same request continues.
func (h *handler) record(
	ctx context.Context, q *question, approval agent.Approval, waives *WaiverForm, made durable.Waiver,
) (durable.Wait, error) {
	ctx = context.WithoutCancel(ctx) // the person may close the page early
	storing, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	what := approval.Verdict.String() + " " + q.kept.ID
	if waives != nil {
		what += fmt.Sprintf(", and until %s waive %s", formatTime(waives.Until), waives.Scope)
	}
	finish := func() error { return nil }
	if h.options.Record != nil {
		storing, finish = h.options.Record(storing, author(ctx), q.kept.Run, what)
	}
	recorded, err := h.storeAnswer(storing, q, approval, waives, made)
	if err := errors.Join(err, finish()); err != nil {
		return recorded, err
	}
	h.options.Log.InfoContext(ctx, "approval: decided", "run", q.kept.Run, "wait", q.kept.ID, "tool", q.kept.Tool,
		"verdict", approval.Verdict.String(), "edited", approval.Arguments != "", "by", approval.By, "identity", approval.Identity,
		"decides", recorded.Answer != nil)
	now := time.Now() // the store sets the time, and the reply need not read it
	if recorded.Answer != nil && recorded.Answer.At.IsZero() {
		stamped := *recorded.Answer
		stamped.At = now
		recorded.Answer = &stamped
	}
	for i := range recorded.Partial {
		if recorded.Partial[i].At.IsZero() {
			recorded.Partial[i].At = now
		}
	}
	if h.options.Decided != nil && recorded.Answer != nil {
		h.options.Decided(ctx, q.kept.Run)
	}
	return recorded, nil
}

// storeAnswer stores the answer, after its waiver. An answer that is refused ends the waiver.
func (h *handler) storeAnswer(
	ctx context.Context, q *question, approval agent.Approval, waives *WaiverForm, made durable.Waiver,
) (durable.Wait, error) {
	if waives != nil {
		if err := h.addWaiver(ctx, q, &made, waives, approval.Covers); err != nil {
			return durable.Wait{}, err
		}
	}
	recorded, err := durable.Decide(ctx, h.store, q.kept, approval)
	if _, refused := errors.AsType[*refusal](h.explain(err)); refused && waives != nil {
		err = errors.Join(err, h.store.RevokeWaiver(ctx, made.ID, made.By))
	}
	return recorded, err
}

// readAnswer parses the body of a POST.
func readAnswer(w http.ResponseWriter, r *http.Request, limit int64) (said, error) {
	var given said
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, named := params["charset"]; err != nil || media != mediaForm && media != mediaJSON ||
		named && !strings.EqualFold(charset, "utf-8") || r.Header.Get("Content-Encoding") != "" {
		return given, refuse(http.StatusUnsupportedMediaType,
			"Send the decision as a form or JSON (%s or %s), in UTF-8 and not compressed.", mediaForm, mediaJSON)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return given, refuse(http.StatusRequestEntityTooLarge, "The decision exceeds %d bytes.", tooLarge.Limit)
	}
	if err != nil {
		return given, refuse(http.StatusBadRequest, "The decision arrived incomplete.")
	}
	if media == mediaJSON {
		if err = strictjson.CheckObject(string(body)); err == nil {
			err = strictjson.UnmarshalStrict(body, &given)
		}
		if err != nil {
			return said{}, refuse(http.StatusBadRequest, "Invalid decision: %v.", err)
		}
		return given, nil
	}
	return readForm(string(body))
}

func readForm(body string) (said, error) {
	var given said
	values, err := url.ParseQuery(body)
	if err != nil {
		return given, refuse(http.StatusBadRequest, "The body is not a form.")
	}
	given.form = values
	fields := map[string]*string{"verdict": &given.Verdict, "by": &given.By, "reason": &given.Reason, "wait": &given.Wait, "arguments": new(string)}
	waives := values.Get("verdict") == verdictPreview || values.Get("verdict") == verdictWaive
	if waives {
		fields["until"], fields["seen"] = new(string), new(string)
	}
	for name, list := range values {
		if of, ok := strings.CutPrefix(name, InputField); ok {
			given.fields = lo.Assign(given.fields, map[string][]string{of: list})
			continue
		}
		if name == "question" {
			given.Questions = list
			continue
		}
		if waives && strings.HasPrefix(name, WaiverField) {
			continue
		}
		field, known := fields[name]
		if !known || len(list) != 1 {
			return said{}, refuse(http.StatusBadRequest,
				"Expected the form fields verdict, by, reason, wait and arguments, each at most once, question, and no others.")
		}
		*field = list[0]
		if name == "arguments" {
			given.text = field
		}
	}
	given.Reason = unixLines.Replace(given.Reason)
	if waives {
		return given, given.readWaiver()
	}
	return given, nil
}

// parseDecision validates a received decision against the question. Who is its verified author, or nil.
func parseDecision(q *question, given said, who *Principal, err error) (agent.Approval, error) {
	var a agent.Approval
	switch {
	case err != nil:
		return a, err
	case given.Wait == "":
		return a, refuse(http.StatusBadRequest, "The field wait is missing: send the one that the question contains.")
	case given.Wait != q.kept.ID:
		return a, &refusal{http.StatusConflict, hasChanged, true}
	case q.kept.Answer != nil:
		return a, refuse(http.StatusConflict, alreadyDecided)
	case q.isExpired(time.Now()):
		return a, refuse(http.StatusConflict, "") // the question says so itself
	case len(given.Questions) == 0:
		open := lo.Map(durable.OpenQuestions(q.kept, q.asked), func(one agent.Question, _ int) string { return one.ID() })
		return a, refuse(http.StatusBadRequest, "The field questions is missing: send the IDs of the questions that the decision is about. Open are: %s.",
			strings.Join(open, ", "))
	}
	a.By, a.Reason = strings.TrimSpace(given.By), strings.TrimSpace(given.Reason)
	a.Covers = given.Questions
	if who != nil {
		a.By, a.Identity, a.Roles = cmp.Or(a.By, who.Name), who.Name, who.Roles
	}
	verdict := given.Verdict
	if given.text != nil {
		if verdict, err = fromForm(q, &given); err != nil {
			return a, err
		}
	}
	if err := a.Verdict.UnmarshalText([]byte(verdict)); err != nil {
		return a, refuse(http.StatusUnprocessableEntity, "Unknown verdict: expected approve, reject or reject_and_continue. Nothing was decided.")
	}
	if _, gate := durable.GateOf(q.kept, q.asked); gate && a.Verdict == agent.Approve {
		return a, refuse(http.StatusForbidden, "People cannot approve this: it waits for an event. They can only reject it. Nothing was decided.")
	}
	if err := q.addInput(&a, given); err != nil || given.Arguments == nil {
		return a, err
	}
	if a.Verdict != agent.Approve {
		return a, refuse(http.StatusUnprocessableEntity, "Arguments can be changed only together with an approval. Nothing was decided.")
	}
	if err := strictjson.CheckObject(string(given.Arguments)); err != nil {
		return a, refuse(http.StatusUnprocessableEntity, "The arguments must be one JSON object: %v. Nothing was decided.", err)
	}
	a.Arguments, err = strictjson.Compact(string(given.Arguments))
	if err != nil {
		return a, refuse(http.StatusUnprocessableEntity, "The arguments must be one JSON object: %v. Nothing was decided.", err)
	}
	switch {
	case q.asked.Takes(a):
	case q.asked.Begun:
		return a, refuse(http.StatusUnprocessableEntity, "This call may have happened already: repeat it unchanged or reject it. Nothing was decided.")
	default:
		return a, refuse(http.StatusUnprocessableEntity,
			"The arguments cannot be changed, because others must approve them, too: approve the call unchanged or reject it. Nothing was decided.")
	}
	return a, nil
}

// verdictEdit is the value of the button that approves with the edited arguments.
const verdictEdit = "edit"

// fromForm returns the verdict of a form. A form always contains the arguments, whichever button was pressed.
func fromForm(q *question, given *said) (verdict string, err error) {
	same := Arguments(q.asked.Call.Arguments).isSame(*given.text)
	switch given.Verdict {
	case verdictEdit:
		if !same {
			given.Arguments = json.RawMessage(*given.text)
		}
		return agent.Approve.String(), nil
	case agent.Approve.String():
		if !same {
			return "", refuse(http.StatusUnprocessableEntity,
				"You changed the arguments but pressed the button that approves the original ones. Nothing was decided.")
		}
	}
	return given.Verdict, nil
}
