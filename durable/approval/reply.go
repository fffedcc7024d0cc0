package approval

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page and its style
	"encoding/base64"
	"encoding/json"
	"html/template"
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
	Question *shown

	said said // values to keep in the form
}

// replyJSON is the JSON form of a reply.
type replyJSON struct {
	Message  string `json:"message,omitempty"`
	Question *shown `json:"question,omitempty"`
}

func (h *handler) reply(w http.ResponseWriter, r *http.Request, answer reply) {
	var body bytes.Buffer
	var err error
	if wantsJSON(r) {
		w.Header().Set("Content-Type", mediaJSON)
		encoder := json.NewEncoder(&body)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(replyJSON{answer.Message, answer.Question})
	} else {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		err = page.Execute(&body, answer)
	}
	if err != nil { // the reply cannot be encoded
		panic(err)
	}
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(answer.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // the client may have disconnected
	}
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
	//go:embed page.html
	pageText string
	//go:embed style.css
	styleText string

	// styleHash allows only this style in the page.
	styleHash = func() string {
		sum := sha256.Sum256([]byte(styleText))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}()

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"style":   func() template.CSS { return template.CSS(styleText) }, //nolint:gosec // the text is embedded
		"visible": visible,
		"verdict": func(v agent.ApprovalVerdict) string { return verdictNames[v] },
		"when":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}).Parse(pageText))
)

// verdictNames are the verdicts in words.
var verdictNames = map[agent.ApprovalVerdict]string{
	agent.Approve:           "approve",
	agent.RejectAndEnd:      "reject and end the run",
	agent.RejectAndContinue: "reject and continue without the call",
}

// Title returns the title of the page.
func (r reply) Title() string {
	switch {
	case r.Question == nil:
		return "Nothing to decide"
	case r.Question.State == stateDecided:
		return "Decided"
	case r.Question.State == stateExpired:
		return "Too late"
	}
	if r.Question.Begun {
		return "Run “" + visible(r.Question.Tool) + "” again?"
	}
	return "May “" + visible(r.Question.Tool) + "” run?"
}

// By returns the initial value of the form field. Reason and Arguments do the same for theirs.
func (r reply) By() string { return r.said.By }

// Reason returns the initial value of the reason field.
func (r reply) Reason() string { return r.said.Reason }

// Arguments returns the arguments that the person entered, or else the current ones.
func (r reply) Arguments() string {
	if r.said.text != nil {
		return *r.said.text
	}
	return r.Question.Arguments.Text()
}

// Open reports whether the question can still be answered.
func (s *shown) Open() bool { return s.State == stateOpen }

// Changed reports whether the arguments differ from those that the model sent.
func (s *shown) Changed() bool { return s.Original.Text() != s.Arguments.Text() }

// TimeLeft returns the remaining time in words.
func (s *shown) TimeLeft() string {
	left := s.Deadline.Sub(s.now)
	switch {
	case left <= 0:
		return "over"
	case left < time.Minute:
		return "less than a minute left"
	case left < 2*time.Hour:
		return strconv.Itoa(int(left.Minutes())) + " min left"
	case left < 48*time.Hour:
		return strconv.Itoa(int(left.Hours())) + " hours left"
	}
	return strconv.Itoa(int(left.Hours()/24)) + " days left"
}
