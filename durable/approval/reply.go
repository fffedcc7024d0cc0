package approval

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the style
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// reply is one response, as a page or as JSON.
type reply struct {
	Status   int
	Message  string
	Question *Detail
	Inbox    *inbox
	// Answers are the decisions about a question that is not open any more.
	Answers []Decision
	// SignIn asks for a token. Forward is the address that a page leads to.
	SignIn  bool
	Forward string

	asked *question
	said  said // values to keep in the form
	// cannotApprove and cannotReject say why an answer of who would not count; they are empty when it would.
	cannotApprove, cannotReject string
	waiving                     *waiving // the waiver in the form
	canWaive                    bool
	// action is the address that a decision is posted to; empty for the page itself.
	action string
	// back is the wait whose page follows a sign-in; the zero value is the inbox.
	back waitName
	who  *Principal // set by handler.reply
	// canSignIn is set when there is a page for signing in.
	canSignIn bool
}

// replyJSON is the JSON form of a reply.
type replyJSON struct {
	Message  string  `json:"message,omitempty"`
	Question *Detail `json:"question,omitempty"`
	// Answers are the decisions about a question that the run does not ask any more.
	Answers []Decision `json:"answers,omitempty"`
	*inbox
}

func (h *handler) reply(w http.ResponseWriter, r *http.Request, answer reply) {
	answer.who, answer.canSignIn = author(r.Context()), h.options.People != nil
	h.logRefusal(r, answer)
	var body bytes.Buffer
	if wantsJSON(r) {
		w.Header().Set("Content-Type", mediaJSON)
		encoder := json.NewEncoder(&body)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(replyJSON{answer.Message, answer.Question, answer.Answers, answer.Inbox}); err != nil {
			panic(err) // the reply cannot be encoded
		}
	} else {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		body.WriteString(answer.page())
	}
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(answer.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // the client may have disconnected
	}
}

// logRefusal logs an attempt that was refused. The path of a request may be a token and is not logged.
func (h *handler) logRefusal(r *http.Request, answer reply) {
	if answer.Status < http.StatusBadRequest || answer.Status >= http.StatusInternalServerError {
		return
	}
	reason, _, _ := strings.Cut(answer.Message, "\n")
	attributes := []any{"method", r.Method, "status", answer.Status, "reason", reason}
	if answer.who != nil {
		attributes = append(attributes, "identity", answer.who.Name)
	}
	if q := answer.asked; q != nil {
		attributes = append(attributes, "run", q.kept.Run, "wait", q.kept.ID)
	}
	h.options.Log.WarnContext(r.Context(), "approval: refused", attributes...)
}

// wantsJSON reports whether the client is a program: it accepts JSON and no HTML, or posts JSON.
func wantsJSON(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	if strings.Contains(accept, "text/html") {
		return false
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return strings.Contains(accept, mediaJSON) || media == mediaJSON
}

var (
	//go:embed style.css
	styleText string

	// styleHash allows only this style in the page.
	styleHash = func() string {
		sum := sha256.Sum256([]byte(styleText))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}()
)

// verdictNames are the verdicts in words.
var verdictNames = map[agent.ApprovalVerdict]string{
	agent.Approve:           "approve",
	agent.RejectAndEnd:      "reject and end the run",
	agent.RejectAndContinue: "reject and continue without the call",
}

// formatTime returns a time in the form that pages show.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// formatAge returns a duration in words.
func formatAge(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 10*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h " + strconv.Itoa(int(d.Minutes())%60) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " hours"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}
