package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ArgumentsError says everything that is wrong with the arguments of a tool call, in words a model can act
// on: it is what the model gets as the answer to the call. It is made by what reads arguments, wherever
// that happens; treat it as a value.
type ArgumentsError struct {
	// Malformed says that the text is not one JSON object, or not one that has a single reading (a name given
	// twice, names that differ only in case, invalid UTF-8). Nothing looks at such a call's arguments, hooks
	// included. False: it is a good object that breaks the tool's schema.
	Malformed bool `json:"malformed,omitzero"`

	// Problems are all violations, ordered by path; for a malformed text it is the first one that was met.
	Problems []ArgumentProblem `json:"problems"`
}

// ArgumentProblem is one thing that is wrong with the arguments of a tool call.
type ArgumentProblem struct {
	// Path is the JSON pointer (RFC 6901) of the member that is wrong, missing or too much, such as "/files/0/path".
	// Empty stands for the arguments as a whole.
	Path string `json:"path,omitzero"`

	// Message says what was expected and what was given: lower case, no full stop, without the path.
	Message string `json:"message"`
}

// String returns the path, if there is one, and the message.
func (p ArgumentProblem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// How much of an ArgumentsError its text shows. A model corrects a handful of problems at a time, and an error
// text must not outgrow the arguments it complains about.
const (
	shownProblems     = 10
	shownProblemBytes = 300
)

// Error lists the problems, ten at most and each cut to a readable length; Problems has them all.
func (e *ArgumentsError) Error() string {
	var b strings.Builder
	if e.Malformed {
		b.WriteString("reading arguments: ")
	} else {
		b.WriteString("checking arguments: ")
	}
	if n := len(e.Problems); n > 1 {
		fmt.Fprintf(&b, "%d problems: ", n)
	}
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(cut(p.String(), shownProblemBytes))
	}
	if len(e.Problems) == 0 {
		b.WriteString("no details")
	}
	return b.String()
}

// ErrorKind returns KindInvalid: the same arguments will fail again.
func (e *ArgumentsError) ErrorKind() ErrorKind { return KindInvalid }

// Reason returns the reason code of the call's answer: ReasonMalformed or ReasonInvalid.
func (e *ArgumentsError) Reason() ReasonCode {
	if e.Malformed {
		return ReasonMalformed
	}
	return ReasonInvalid
}

// cut shortens text to at most so many bytes and an ellipsis, between runes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
