// Package markup writes HTML pages. It replaces html/template for the few pages of this module: all values
// are escaped unless the code says otherwise. The standard package finds methods by names at run time, and a
// program that links it keeps every exported method of all its other packages (docs/adr/0001).
package markup

import (
	"fmt"
	"html"
	"strings"
)

// A Page is HTML that is being written. The zero value is an empty page. Only one goroutine may use it.
type Page struct{ b strings.Builder }

// HTML is markup that this program has created: Put writes it unescaped.
type HTML string

// Put writes a format in which each %s is replaced by an argument, escaped for text and for values of
// attributes in double quotes; a %s must not occur elsewhere. The format must be a constant of the program.
// Arguments are strings, HTML and integers.
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

// PutIf works like Put if the condition is true.
func (p *Page) PutIf(condition bool, format string, args ...any) {
	if condition {
		p.Put(format, args...)
	}
}

// String returns the page.
func (p *Page) String() string { return p.b.String() }

// Escape escapes a text for use between tags and in a value in double quotes: it replaces characters with a
// meaning in HTML, and NUL, which no page may contain.
func Escape(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), "\x00", "\uFFFD")
}
