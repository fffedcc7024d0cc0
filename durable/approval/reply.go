package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Page is a response of the handler. Options.Page shows it to people; programs get its first fields as JSON.
type Page struct {
	// Status is the HTTP status. Message says what was decided or is wrong.
	Status  int
	Message string
	// Question is the wait; nil when there is nothing to decide.
	Question *Detail
	// Answers are the decisions about a question that is not open any more.
	Answers []Decision
	// Who is the verified author of the request; nil for a link.
	Who *Principal
	// Open are the IDs of the questions that a decision answers: the form sends them back as "question".
	Open []string
	// CannotApprove and CannotReject say why such an answer of Who would not count. They are empty when it would.
	CannotApprove, CannotReject string
	// CanEdit reports whether Who may change the arguments.
	CanEdit bool
	// Form has the fields that were sent; nil when none were.
	Form url.Values
	// Waiver is the waiver that Who may make with an approval, or why there can be none; nil if Who cannot approve.
	Waiver *WaiverForm

	inbox *inbox
	about *question
}

// PageOf returns the page about a wait, for a person or, if who is nil, for everyone who has its link. With history, it
// includes former decisions about like calls.
func PageOf(ctx context.Context, store durable.AnswerStore, w durable.Wait, who *Principal, history bool) (Page, error) {
	q, err := newQuestion(ctx, store, w)
	if unreadable, ok := errors.AsType[*unreadableError](err); ok {
		return Page{Status: http.StatusInternalServerError, Message: unreadable.Error()}, nil
	}
	if err != nil {
		return Page{}, err
	}
	return q.page(ctx, store, who, history)
}

// page returns the page about a question.
func (q *question) page(ctx context.Context, store durable.AnswerStore, who *Principal, history bool) (p Page, err error) {
	if q.isOver() {
		return over, nil
	}
	p = Page{Status: http.StatusOK, Who: who, about: q}
	if p.Question, err = q.detail(ctx, store, history); err != nil || !p.Question.Open() {
		return p, err
	}
	p.Open = lo.Map(durable.OpenQuestions(q.kept, q.asked), func(one agent.Question, _ int) string { return one.ID() })
	changed := agent.Approval{Verdict: agent.Approve, Arguments: "{} "}
	if who != nil {
		changed.Identity, changed.Roles = who.Name, who.Roles
	}
	p.CanEdit = q.asked.Takes(changed)
	if p.CannotApprove, p.CannotReject, err = checkAuthor(ctx, store, q, who); p.CannotApprove == "" && who != nil {
		p.Waiver = q.waiverForm()
	}
	return p, err
}

// replyJSON is the JSON form of a page.
type replyJSON struct {
	Message  string  `json:"message,omitempty"`
	Question *Detail `json:"question,omitempty"`
	// Answers are the decisions about a question that the run does not ask any more.
	Answers []Decision  `json:"answers,omitempty"`
	Waiver  *waiverJSON `json:"waiver,omitempty"`
	*inbox
}

func (h *handler) reply(w http.ResponseWriter, r *http.Request, p Page) {
	p.Who = author(r.Context())
	h.logRefusal(r, p)
	if h.options.Page != nil && !WantsJSON(r) {
		h.options.Page(w, r, p)
		return
	}
	var body bytes.Buffer
	w.Header().Set("Content-Type", mediaJSON)
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(replyJSON{p.Message, p.Question, p.Answers, p.Waiver.json(), p.inbox}); err != nil {
		panic(err) // the page cannot be encoded
	}
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // the client may have disconnected
	}
}

// logRefusal logs an attempt that was refused. The path of a request may be a token and is not logged.
func (h *handler) logRefusal(r *http.Request, p Page) {
	if p.Status < http.StatusBadRequest || p.Status >= http.StatusInternalServerError {
		return
	}
	reason, _, _ := strings.Cut(p.Message, "\n")
	attributes := []any{"method", r.Method, "status", p.Status, "reason", reason}
	if p.Who != nil {
		attributes = append(attributes, "identity", p.Who.Name)
	}
	if q := p.about; q != nil {
		attributes = append(attributes, "run", q.kept.Run, "wait", q.kept.ID)
	}
	h.options.Log.WarnContext(r.Context(), "approval: refused", attributes...)
}

// WantsJSON reports whether a request is from a program: it accepts JSON and no HTML, or posts JSON.
func WantsJSON(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	if strings.Contains(accept, "text/html") {
		return false
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return strings.Contains(accept, mediaJSON) || media == mediaJSON
}

// VerdictText returns a verdict in words.
func VerdictText(v agent.ApprovalVerdict) string { return verdictNames[v] }

var verdictNames = map[agent.ApprovalVerdict]string{
	agent.Approve:           "approve",
	agent.RejectAndEnd:      "reject and end the run",
	agent.RejectAndContinue: "reject and continue without the call",
}

// formatTime returns a time in the form that messages have.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
