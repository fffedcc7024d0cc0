package callback

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/grapnel-go/grapnel/internal/markup"
)

// About describes a gate for its page.
type About struct {
	Hook, Agent, Reason string
}

// ErrUsed is returned for a gate that was already answered or no longer waits.
var ErrUsed = errors.New("already answered")

// Gate is the gate that a token identifies.
type Gate struct {
	About
	// Used is set when the gate no longer accepts an answer.
	Used bool
	// Answer records the answer. It returns ErrUsed when another answer came first.
	Answer func(r *http.Request, what Answer) error
}

// Serve shows the gate's question for GET and accepts the answer for POST. A nil gate means that the token is
// unknown.
func Serve(w http.ResponseWriter, r *http.Request, g *Gate) {
	switch {
	case g == nil:
		Reply(w, r, http.StatusNotFound, "Nothing to answer here: the link is incomplete or belongs to another question.")
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if g.Used {
			Reply(w, r, http.StatusConflict, "Already answered.")
			return
		}
		writeReply(w, r, http.StatusOK, page{About: &g.About})
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		Reply(w, r, http.StatusMethodNotAllowed, "GET shows the question, POST answers it.")
	default:
		g.accept(w, r)
	}
}

// accept handles a posted answer.
func (g *Gate) accept(w http.ResponseWriter, r *http.Request) {
	what, status, err := ReadPost(w, r)
	switch {
	case g.Used: // regardless of the answer
		err = ErrUsed
	case err != nil:
		Reply(w, r, status, fmt.Sprintf("Nothing was decided: %v.", err))
		return
	default:
		err = g.Answer(r, what)
	}
	switch {
	case errors.Is(err, ErrUsed):
		Reply(w, r, http.StatusConflict, "Already answered: your answer was ignored.")
	case err != nil:
		Reply(w, r, http.StatusServiceUnavailable, "The answer could not be recorded. Try again in a moment.")
	default:
		Reply(w, r, http.StatusOK, "Thank you. You can close this page.")
	}
}

// Reply answers a request with a message.
func Reply(w http.ResponseWriter, r *http.Request, status int, message string) {
	writeReply(w, r, status, page{Message: message})
}

// pageHeaders are set on every response.
var pageHeaders = map[string]string{
	"Cache-Control":           "no-store",
	"Content-Security-Policy": "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Connection":              "close",
	"Referrer-Policy":         "no-referrer",
	"X-Content-Type-Options":  "nosniff",
	"X-Frame-Options":         "DENY",
	"X-Robots-Tag":            "noindex, nofollow",
}

// page is the content of a page: a question or a message.
type page struct {
	About   *About
	Message string
}

// html returns the page as HTML.
func (what page) html() string {
	var p markup.Page
	p.Put(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A gate</title></head>
<body>
`)
	if a := what.About; a != nil {
		p.Put("<h1>Approve?</h1>\n<p>")
		if a.Agent != "" {
			p.Put("The agent <b>%s</b>", a.Agent)
		} else {
			p.Put("A run")
		}
		p.Put(" waits at <b>%s</b>.</p>\n", a.Hook)
		p.PutIf(a.Reason != "", "<p>%s</p>\n", a.Reason)
		p.Put(`<form method="post" action="?">
<p><label>Message <input name="message" maxlength="2000" autocomplete="off"></label></p>
<p><button name="action" value="approve">Approve</button> <button name="action" value="reject">Reject</button></p>
</form>
`)
	}
	p.PutIf(what.Message != "", "<p>%s</p>\n", what.Message)
	p.Put("</body>\n</html>\n")
	return p.String()
}

func writeReply(w http.ResponseWriter, r *http.Request, status int, what page) {
	body := what.html()
	for name, value := range pageHeaders {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // the client may have disconnected
	}
}
