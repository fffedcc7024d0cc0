package action

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// handler answers those who call back.
type handler struct {
	desks *Callbacks
	port  int
}

// ServeHTTP shows what is asked at GET and takes the answer at POST.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range pageHeaders {
		w.Header().Set(name, value)
	}
	token, _ := strings.CutPrefix(r.URL.Path, callbackPath)
	t := h.desks.find(h.port, token)
	switch {
	case t == nil:
		reply(w, r, http.StatusForbidden, page{Message: "There is nothing to answer here: the link is not whole, or not for this."})
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if h.desks.isUsed(t) {
			reply(w, r, http.StatusGone, page{Message: "This was answered already."})
			return
		}
		reply(w, r, http.StatusOK, page{About: &t.about})
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		reply(w, r, http.StatusMethodNotAllowed, page{Message: "GET shows what is asked, POST answers it."})
	default:
		h.take(w, r, t)
	}
}

// take takes an answer.
func (h handler) take(w http.ResponseWriter, r *http.Request, t *ticket) {
	what, status, err := readPost(w, r)
	if h.desks.isUsed(t) { // whatever was said
		reply(w, r, http.StatusGone, page{Message: "This was answered already; what you said does not count."})
		return
	}
	if err != nil {
		reply(w, r, status, page{Message: fmt.Sprintf("Nothing was decided: %v.", err)})
		return
	}
	if err := h.desks.answer(t, what); err != nil {
		reply(w, r, http.StatusGone, page{Message: "This was answered already; what you said does not count."})
		return
	}
	reply(w, r, http.StatusOK, page{Message: "Thank you. You can close this page."})
}

// readPost reads what was posted: JSON, a form, or an action in the query with no body.
func readPost(w http.ResponseWriter, r *http.Request) (what said, status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, DefaultMaxBytes))
	if err != nil {
		return said{}, http.StatusRequestEntityTooLarge, fmt.Errorf("an answer has at most %d bytes", DefaultMaxBytes)
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	given := r.URL.Query()
	switch {
	case media == "application/x-www-form-urlencoded" && len(body) > 0:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return said{}, http.StatusBadRequest, errors.New("this is no form")
		}
		for name, list := range form {
			given[name] = append(given[name], list...)
		}
	case len(body) > 0:
		if what, err = readSaid(string(body)); err == nil && len(given["action"]) > 0 && words[given.Get("action")] != what.yes {
			err = errors.New("the link says one thing and the body another")
		}
		return what, http.StatusBadRequest, err
	}
	for _, name := range []string{"action", "message"} {
		for _, again := range given[name] {
			if again != given.Get(name) {
				return said{}, http.StatusBadRequest, fmt.Errorf("it says two things under %q", name)
			}
		}
	}
	what, err = saidIn(given.Get("action"), given.Get("message"))
	return what, http.StatusBadRequest, err
}

// pageHeaders are set on every answer.
var pageHeaders = map[string]string{
	"Cache-Control":           "no-store",
	"Content-Security-Policy": "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Connection":              "close",
	"Referrer-Policy":         "no-referrer",
	"X-Content-Type-Options":  "nosniff",
	"X-Frame-Options":         "DENY",
	"X-Robots-Tag":            "noindex, nofollow",
}

// page is what is shown: a question, or a message.
type page struct {
	About   *about
	Message string
}

var pageHTML = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A gate</title></head>
<body>
{{with .About}}<h1>May it go on?</h1>
<p>{{if .Agent}}The agent <b>{{.Agent}}</b>{{else}}A run{{end}} waits at <b>{{.Hook}}</b>.</p>
{{with .Reason}}<p>{{.}}</p>
{{end}}<form method="post" action="?">
<p><label>Message <input name="message" maxlength="2000" autocomplete="off"></label></p>
<p><button name="action" value="approve">Approve</button> <button name="action" value="reject">Reject</button></p>
</form>
{{end}}{{with .Message}}<p>{{.}}</p>
{{end}}</body>
</html>
`))

func reply(w http.ResponseWriter, r *http.Request, status int, what page) {
	var body bytes.Buffer
	if err := pageHTML.Execute(&body, what); err != nil {
		panic(err) // of a page that cannot be written
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // who asked may have gone
	}
}
