package action

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/internal/markup"
)

// handler handles the HTTP requests to callback URLs.
type handler struct {
	desks *Callbacks
	port  int
}

// ServeHTTP shows the question for GET, and accepts the answer for POST.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range pageHeaders {
		w.Header().Set(name, value)
	}
	token, _ := strings.CutPrefix(r.URL.Path, callbackPath)
	t := h.desks.find(h.port, token)
	switch {
	case t == nil:
		reply(w, r, http.StatusForbidden, page{Message: "Nothing to answer here: the link is incomplete or belongs to another question."})
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if h.desks.isUsed(t) {
			reply(w, r, http.StatusGone, page{Message: "Already answered."})
			return
		}
		reply(w, r, http.StatusOK, page{About: &t.about})
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		reply(w, r, http.StatusMethodNotAllowed, page{Message: "GET shows the question, POST answers it."})
	default:
		h.take(w, r, t)
	}
}

// take handles a posted answer.
func (h handler) take(w http.ResponseWriter, r *http.Request, t *ticket) {
	what, status, err := readPost(w, r)
	if h.desks.isUsed(t) { // regardless of the answer
		reply(w, r, http.StatusGone, page{Message: "Already answered: your answer was ignored."})
		return
	}
	if err != nil {
		reply(w, r, status, page{Message: fmt.Sprintf("Nothing was decided: %v.", err)})
		return
	}
	if err := h.desks.answer(t, what); err != nil {
		reply(w, r, http.StatusGone, page{Message: "Already answered: your answer was ignored."})
		return
	}
	reply(w, r, http.StatusOK, page{Message: "Thank you. You can close this page."})
}

// readPost parses a posted answer: JSON, a form, or an action in the query with an empty body.
func readPost(w http.ResponseWriter, r *http.Request) (what said, status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, DefaultMaxBytes))
	if err != nil {
		return said{}, http.StatusRequestEntityTooLarge, fmt.Errorf("the answer exceeds %d bytes", DefaultMaxBytes)
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	given := r.URL.Query()
	switch {
	case media == "application/x-www-form-urlencoded" && len(body) > 0:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return said{}, http.StatusBadRequest, errors.New("the body is not a form")
		}
		for name, list := range form {
			given[name] = append(given[name], list...)
		}
	case len(body) > 0:
		if what, err = readSaid(string(body)); err == nil && len(given["action"]) > 0 && words[given.Get("action")] != what.yes {
			err = errors.New("the link and the body give different answers")
		}
		return what, http.StatusBadRequest, err
	}
	for _, name := range []string{"action", "message"} {
		for _, again := range given[name] {
			if again != given.Get(name) {
				return said{}, http.StatusBadRequest, fmt.Errorf("%q is set more than once", name)
			}
		}
	}
	what, err = saidIn(given.Get("action"), given.Get("message"))
	return what, http.StatusBadRequest, err
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
	About   *about
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

func reply(w http.ResponseWriter, r *http.Request, status int, what page) {
	body := what.html()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // the client may have disconnected
	}
}
