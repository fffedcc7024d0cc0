package service

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// An error may stand inside of an answer whose status is 200: a gateway passes on what the service behind it said, or
// the service had begun to answer.

// ErrorStatus returns the HTTP status that the code of an error inside of an answer is, as a number or its text;
// zero when it is none.
func ErrorStatus(code string) int {
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		return status
	}
	return 0
}

// namedKinds are words in the code or type of an error, and the kind that they mean. The first that fits counts.
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

// KindOfNames returns the kind of an error by its code and type, for one that comes without a status: KindModel when they
// are unknown words.
func KindOfNames(names ...string) agent.ErrorKind {
	all := strings.ToLower(strings.Join(names, "\n"))
	for _, named := range namedKinds {
		if strings.Contains(all, named.word) {
			return named.kind
		}
	}
	return agent.KindModel
}

// IsJSON reports whether an answer is JSON from its first byte on, and no stream of events, whatever its type says. It reads
// the beginning; the body of the answer has it still.
func IsJSON(answer *http.Response) bool {
	const longest = 512
	from := bufio.NewReader(answer.Body)
	answer.Body = readCloser{from, answer.Body}
	for n := 1; n <= longest; n++ {
		begin, err := from.Peek(n)
		if err != nil {
			return false
		}
		switch begin[n-1] {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return true
		default:
			return false
		}
	}
	return false
}

type readCloser struct {
	io.Reader
	io.Closer
}
