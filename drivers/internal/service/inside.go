package service

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// An answer with status 200 may contain an error. A gateway passes on an error from the service behind it, or the
// service fails after it began to answer.

// ErrorStatus returns the HTTP status in the code of an error inside an answer, as a number or text. It returns zero
// when the code is not a status.
func ErrorStatus(code string) int {
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		return status
	}
	return 0
}

// namedKinds maps words in an error's code or type to kinds. The first match is used.
var namedKinds = []struct {
	word string
	kind agent.ErrorKind
}{
	{"rate_limit", agent.KindRateLimit}, {"too_many_requests", agent.KindRateLimit}, {"resource_exhausted", agent.KindRateLimit},
	{"overloaded", agent.KindOverloaded}, {"unavailable", agent.KindOverloaded}, {"slow_down", agent.KindOverloaded},
	{"server_error", agent.KindModel}, {"timeout", agent.KindTimeout}, {"deadline_exceeded", agent.KindTimeout},
	{"api_key", agent.KindAuth}, {"authentication", agent.KindAuth}, {"unauthenticated", agent.KindAuth},
	{"permission", agent.KindAuth}, {"unauthorized", agent.KindAuth}, {"forbidden", agent.KindAuth},
	{"not_found", agent.KindBadRequest}, {"invalid_request", agent.KindBadRequest}, {"invalid_argument", agent.KindBadRequest},
	{"bad_request", agent.KindBadRequest}, {"badrequest", agent.KindBadRequest}, {"unsupported", agent.KindBadRequest},
}

// KindOfNames returns an error's kind by its code and type, for errors without a status. It returns KindModel when they
// are unknown.
func KindOfNames(names ...string) agent.ErrorKind {
	all := strings.ToLower(strings.Join(names, "\n"))
	for _, named := range namedKinds {
		if strings.Contains(all, named.word) {
			return named.kind
		}
	}
	return agent.KindModel
}

// IsStream reports whether an answer is an event stream. It checks the first line, because many services do not set the
// media type. The answer's body still contains the bytes that IsStream reads. IsStream adds an empty line at the end of
// a stream, because some services leave out the one after the last event.
func IsStream(answer *http.Response) bool {
	from := bufio.NewReader(answer.Body)
	isStream := beginsStream(from)
	answer.Body = readCloser{lo.Ternary[io.Reader](isStream, io.MultiReader(from, strings.NewReader("\n\n")), from), answer.Body}
	return isStream
}

func beginsStream(from *bufio.Reader) bool {
	begin := 0 // the number of bytes of white space
	for n := 1; n <= from.Size(); n++ {
		text, err := from.Peek(n)
		if err != nil {
			return false
		}
		if begin == n-1 && strings.ContainsRune(" \t\r\n", rune(text[n-1])) {
			begin = n
			continue
		}
		if text[n-1] == ':' {
			field := string(text[begin : n-1])
			return slices.Contains(streamFields, field)
		}
		if n-begin > len("retry:") {
			return false
		}
	}
	return false
}

// streamFields lists the fields in a stream of server-sent events. A comment has no name.
var streamFields = []string{"data", "event", "id", "retry", ""}

type readCloser struct {
	io.Reader
	io.Closer
}
