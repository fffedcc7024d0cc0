package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An ArgumentsError lists everything that is wrong with a tool call's arguments. Its text answers the call, in words
// that a model can act on. Any code that reads arguments can create one. Do not modify it afterwards.
type ArgumentsError struct {
	// Malformed reports that the text is not a single JSON object, or is ambiguous: a name given twice, names that
	// differ only in case, invalid UTF-8. Neither the tool nor hooks read such arguments. False means that the text is
	// a valid object that violates the tool's schema.
	Malformed bool `json:"malformed,omitzero"`

	// Problems are the violations, ordered by path, at most MaxArgumentProblems. A malformed text has only its first
	// problem.
	Problems []ArgumentProblem `json:"problems"`
}

// ArgumentProblem is one problem in the arguments of a tool call.
type ArgumentProblem struct {
	// Path is the JSON pointer (RFC 6901) of the member that is wrong, missing or not allowed, such as
	// "/files/0/path". Empty means the arguments as a whole.
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

// MaxArgumentProblems is the maximum number of problems in an ArgumentsError. A check stops there, so that wrong
// arguments cost no more than correct ones.
const MaxArgumentProblems = 100

// These constants limit the text of an ArgumentsError. A model corrects a handful of problems at a time, and the text
// should not outgrow the arguments.
const (
	shownProblems     = 10
	shownProblemBytes = 300
)

// Error lists at most ten problems, each cut to a readable length. Problems has more of them.
func (e *ArgumentsError) Error() string {
	var b strings.Builder
	if e.Malformed {
		b.WriteString("reading arguments: ")
	} else {
		b.WriteString("checking arguments: ")
	}
	n, more := len(e.Problems), ""
	if n == MaxArgumentProblems {
		more = " or more"
	}
	if n > 1 {
		fmt.Fprintf(&b, "%d%s problems: ", n, more)
	}
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "; and %d more", n-i)
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

// cut shortens text to at most that many bytes plus an ellipsis. It does not split a rune.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
