package approval

import (
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
	"unicode"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Size limits of a decision in bytes. A body may be bodyBytes longer than the arguments that it returns.
const (
	byBytes     = 200
	reasonBytes = 8 << 10
	bodyBytes   = 256 << 10
	mediaForm   = "application/x-www-form-urlencoded"
	mediaJSON   = "application/json"
)

// said is a decision as received, from a form or as JSON.
type said struct {
	Verdict string `json:"verdict"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Arguments replace the arguments that were shown.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Hash      string          `json:"hash"`

	text *string // the text of the arguments from a form
}

// refusal is the reply to an invalid decision, with the reason.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// decide handles a posted decision.
func (h *handler) decide(w http.ResponseWriter, r *http.Request, token string) {
	q, err := findQuestion(r.Context(), h.store, token)
	if err != nil {
		h.replyFailure(w, r, "looking for a question", err)
		return
	}
	given, err := readAnswer(w, r, bodyBytes+int64(8*len(q.kept.Data)))
	approval, err := parseDecision(q, given, err)
	if refused, ok := errors.AsType[*refusal](err); ok {
		answer := q.reply(refused.status, refused.message)
		answer.said = given
		h.reply(w, r, answer)
		return
	}
	if err := h.record(r.Context(), q, approval); err != nil {
		if errors.Is(err, durable.ErrAnswered) {
			h.replyTaken(w, r, token)
			return
		}
		h.replyFailure(w, r, "recording a decision", err)
		return
	}
	answer := q.reply(http.StatusOK, "Decided. You can close this page.")
	answer.Question.Decided, answer.Question.State = decidedAt(approval, time.Now()), stateDecided
	h.reply(w, r, answer)
}

// replyTaken replies to a person whose decision came second.
func (h *handler) replyTaken(w http.ResponseWriter, r *http.Request, token string) {
	q, err := findQuestion(r.Context(), h.store, token)
	if err != nil {
		h.replyFailure(w, r, "looking for a question", err)
		return
	}
	h.reply(w, r, q.reply(http.StatusConflict, alreadyDecided))
}

const alreadyDecided = "Already decided: your decision was ignored."

// record stores the answer and calls Options.Decided.
func (h *handler) record(ctx context.Context, q *question, approval agent.Approval) error {
	ctx = context.WithoutCancel(ctx) // the person may close the page early
	answer, err := durable.AnswerOf(q.asked, approval)
	if err != nil {
		return err
	}
	storing, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := h.store.Answer(storing, q.kept.Run, answer); err != nil {
		return err
	}
	h.options.Log.InfoContext(ctx, "approval: decided", "run", q.kept.Run, "call", q.kept.ID, "tool", q.kept.Tool,
		"verdict", approval.Verdict.String(), "edited", approval.Arguments != "", "by", approval.By)
	if h.options.Decided != nil {
		h.options.Decided(ctx, q.kept.Run)
	}
	return nil
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
	fields := map[string]*string{"verdict": &given.Verdict, "by": &given.By, "reason": &given.Reason, "hash": &given.Hash, "arguments": new(string)}
	for name, list := range values {
		field, known := fields[name]
		if !known || len(list) != 1 {
			return said{}, refuse(http.StatusBadRequest, "Expected the form fields verdict, by, reason, hash and arguments, each at most once, and no others.")
		}
		*field = list[0]
		if name == "arguments" {
			given.text = field
		}
	}
	given.Reason = strings.ReplaceAll(given.Reason, "\r\n", "\n")
	return given, nil
}

// parseDecision validates a received decision against the question.
func parseDecision(q *question, given said, err error) (agent.Approval, error) {
	var a agent.Approval
	switch {
	case err != nil:
		return a, err
	case given.Hash == "":
		return a, refuse(http.StatusBadRequest, "The hash is missing: send the hash that the question contains.")
	case given.Hash != q.kept.Hash:
		return a, refuse(http.StatusConflict, "The question has changed since you saw it. Nothing was decided: reload the page.")
	case q.kept.Answer != nil:
		return a, refuse(http.StatusConflict, alreadyDecided)
	case q.expired(time.Now()):
		return a, refuse(http.StatusGone, "") // the question says so itself
	}
	if !isSpeakable(given.By, byBytes, "") || !isSpeakable(given.Reason, reasonBytes, "\n\t") {
		return a, refuse(http.StatusUnprocessableEntity,
			"A name may have %d bytes and a reason %d, without invisible characters. Nothing was decided.", byBytes, reasonBytes)
	}
	a.By, a.Reason = strings.TrimSpace(given.By), strings.TrimSpace(given.Reason)
	verdict := given.Verdict
	if given.text != nil {
		if verdict, err = fromForm(q, &given); err != nil {
			return a, err
		}
	}
	if err := a.Verdict.UnmarshalText([]byte(verdict)); err != nil {
		return a, refuse(http.StatusUnprocessableEntity, "Unknown verdict: expected approve, reject or reject_and_continue. Nothing was decided.")
	}
	if given.Arguments == nil {
		return a, nil
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
	if !q.asked.Takes(a) {
		return a, refuse(http.StatusUnprocessableEntity, "This call may have happened already: repeat it unchanged or reject it. Nothing was decided.")
	}
	return a, nil
}

// verdictEdit is the value of the button that approves with the edited arguments.
const verdictEdit = "edit"

// fromForm returns the verdict of a form. A form always contains the arguments, whichever button was pressed.
func fromForm(q *question, given *said) (verdict string, err error) {
	same := arguments(q.asked.Call.Arguments).Same(*given.text)
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

// isSpeakable reports whether a text is safe to show to people and to a model.
func isSpeakable(text string, limit int, also string) bool {
	return len(text) <= limit && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)) && !strings.ContainsRune(also, r)
	})
}
