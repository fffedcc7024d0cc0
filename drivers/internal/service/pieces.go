package service

import (
	"cmp"
	"encoding/json"
	"strings"
)

// ArgumentPieces joins a call's arguments, which arrive in pieces. Some services send an empty object before the
// arguments, repeat all earlier pieces in each piece, or repeat the whole arguments at the end.
type ArgumentPieces struct {
	text strings.Builder
	// placeholder is an empty object that came before any other arguments. It counts only if no others follow.
	placeholder string
	// depth is the number of open braces and brackets in the arguments. inText and escaped describe the arguments' end:
	// inside a text, after a backslash.
	depth           int
	inText, escaped bool
	// repeated holds the newest piece if each piece began with all arguments before it, and ends the lengths of these
	// pieces. The newest piece replaces the arguments, unless the pieces turn out to continue each other: {"a": before
	// {"a":1} is a beginning, too.
	repeated string
	ends     []int
}

// Append adds a piece. It returns the text that the arguments certainly continue with.
func (a *ArgumentPieces) Append(piece string) string {
	switch {
	case piece == "", a.Repeats(piece):
		return ""
	case !a.Started() && strings.TrimSpace(piece) == "{}":
		a.placeholder = piece
		return ""
	case a.placeholder != "" && beginsObject(piece):
		a.placeholder = ""
	}
	all := a.placeholder + piece
	a.placeholder = ""
	if a.addRepeated(all) {
		return ""
	}
	return a.takeRepeated(true) + a.write(all)
}

// End returns the text that Append held back.
func (a *ArgumentPieces) End() string {
	rest := a.takeRepeated(false) + a.write(a.placeholder)
	a.placeholder = ""
	return rest
}

// Whole reports whether the arguments so far are complete: no brace is open.
func (a *ArgumentPieces) Whole() bool {
	if a.repeated != "" {
		return json.Valid([]byte(a.repeated))
	}
	return a.depth == 0 && !a.inText && beginsObject(a.text.String())
}

// Started reports whether any arguments have arrived.
func (a *ArgumentPieces) Started() bool { return a.placeholder != "" || a.text.Len() > 0 }

// Partial reports whether the arguments have begun and are not complete.
func (a *ArgumentPieces) Partial() bool { return a.text.Len() > 0 && !a.Whole() }

// Repeats reports whether a piece repeats the whole arguments.
func (a *ArgumentPieces) Repeats(piece string) bool {
	return strings.TrimSpace(piece) == strings.TrimSpace(a.soFar()) && a.Whole()
}

func beginsObject(text string) bool { return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") }

// soFar returns the arguments that have arrived.
func (a *ArgumentPieces) soFar() string { return cmp.Or(a.repeated, a.text.String()) }

// write adds text, and counts its open braces. It reads each byte once, regardless of the number of pieces.
func (a *ArgumentPieces) write(text string) string {
	a.text.WriteString(text)
	for i := range len(text) {
		switch b := text[i]; {
		case a.escaped:
			a.escaped = false
		case a.inText:
			a.escaped, a.inText = b == '\\', b != '"'
		case b == '"':
			a.inText = true
		case b == '{', b == '[':
			a.depth++
		case b == '}', b == ']':
			a.depth--
		}
	}
	return text
}

// addRepeated reports whether a piece begins with all arguments before it. If so, it holds the piece back.
func (a *ArgumentPieces) addRepeated(piece string) bool {
	before := a.soFar()
	if before == "" || a.repeated == "" && (a.Whole() || len(piece) == len(before)) || !strings.HasPrefix(piece, before) {
		return false
	}
	a.repeated, a.ends = piece, append(a.ends, len(piece))
	return true
}

// takeRepeated returns the text that the held-back pieces add to the arguments. more says that another piece follows,
// which continues the arguments.
func (a *ArgumentPieces) takeRepeated(more bool) string {
	if a.repeated == "" {
		return ""
	}
	var joined strings.Builder // each piece is a prefix of the newest one
	for _, end := range a.ends {
		joined.WriteString(a.repeated[:end])
	}
	rest := a.repeated[a.text.Len():]
	if more || json.Valid([]byte(a.text.String()+joined.String())) {
		rest = joined.String()
	}
	a.repeated, a.ends = "", nil
	return a.write(rest)
}
