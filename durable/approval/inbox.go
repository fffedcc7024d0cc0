package approval

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// inbox is one page of what waits.
type inbox struct {
	Waits []Item `json:"waits"`
	// Next is the value of the parameter after for the next page.
	Next string `json:"next,omitempty"`
}

// inboxLength is the number of waits on a page.
const inboxLength = 100

// cursor is the last wait of a page.
type cursor struct {
	Asked int64       `json:"a"` // nanoseconds since 1970
	Run   agent.RunID `json:"r"`
	ID    string      `json:"w"`
}

// showInbox serves the list of what waits: all of it, or what the parameters kind, run, expired and after select.
func (h *handler) showInbox(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD")
		h.reply(w, r, Page{Status: http.StatusMethodNotAllowed, Message: "GET lists what waits; answers are posted to the page of a wait."})
		return
	}
	f, ok := inboxFilter(r.URL.Query())
	if !ok {
		h.reply(w, r, Page{Status: http.StatusBadRequest, Message: "Invalid parameters: kind, run, expired=true and after are known."})
		return
	}
	items, next, err := Inbox(r.Context(), h.store, f)
	if err != nil {
		h.replyFailure(w, r, "listing what waits", err)
		return
	}
	list := &inbox{Waits: items}
	if list.Waits == nil {
		list.Waits = []Item{}
	}
	if next != nil {
		raw, err := json.Marshal(cursor{next.Asked.UnixNano(), next.Run, next.ID})
		if err != nil {
			panic(err) // it has only texts and a number
		}
		list.Next = base64.RawURLEncoding.EncodeToString(raw)
	}
	h.reply(w, r, Page{Status: http.StatusOK, inbox: list})
}

func inboxFilter(query url.Values) (f durable.WaitFilter, ok bool) {
	f.Limit = inboxLength
	for name, values := range query {
		value := strings.Join(values, ",")
		switch name {
		case "kind":
			for _, kind := range values {
				f.Kinds = append(f.Kinds, durable.WaitKind(kind))
			}
		case "run":
			f.Run = agent.RunID(value)
		case "expired":
			f.Expired = value == "true"
		case "after":
			var at cursor
			raw, err := base64.RawURLEncoding.DecodeString(value)
			if err != nil || json.Unmarshal(raw, &at) != nil {
				return f, false
			}
			f.After = &durable.Wait{Run: at.Run, ID: at.ID, Asked: time.Unix(0, at.Asked)}
		default:
			return f, false
		}
	}
	return f, true
}

// waitName names a wait.
type waitName struct{ run, wait string }
