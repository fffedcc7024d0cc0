// Package markup writes HTML pages. It does for our few pages what html/template does for
// all: whatever comes from outside is escaped unless the code says otherwise. The standard
// package finds methods by names that it learns at run time, and a program that links it
// keeps every exported method of everything else that it links (docs/adr/0022).
package markup

import (
	"fmt"
	"html"
	"strings"
)

// A Page is HTML that is being written. The zero value is an empty page. It is for one
// goroutine.
type Page struct{ b strings.Builder }

// HTML is text that is markup already, made by this program: Put writes it as it is.
type HTML string

// Put writes a format in which each %s stands for an argument, escaped for text and for
// values of attributes in double quotes; a %s may stand nowhere else. The format is a
// constant of the program. Arguments are strings, HTML and integers.
func (p *Page) Put(format string, args ...any) {
	escaped := make([]any, len(args))
	for i, a := range args {
		if ours, ok := a.(HTML); ok {
			escaped[i] = string(ours)
			continue
		}
		escaped[i] = Escape(fmt.Sprint(a))
	}
	fmt.Fprintf(&p.b, format, escaped...)
}

// PutIf writes as Put does where the condition holds.
func (p *Page) PutIf(condition bool, format string, args ...any) {
	if condition {
		p.Put(format, args...)
	}
}

// String returns what was written.
func (p *Page) String() string { return p.b.String() }

// Escape returns the text as it may stand between tags and in a value in double quotes:
// without characters that mean something there, and without NUL, which no page may hold.
func Escape(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), "\x00", "\uFFFD")
}
