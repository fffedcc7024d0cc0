// Package markup writes HTML pages. It replaces html/template for the few pages of this module: all values are
// escaped unless the code says otherwise. html/template finds methods by name at run time, so the linker would keep
// every exported method of the whole program (docs/adr/0001).
package markup

import (
	"fmt"
	"html"
	"strings"
)

// A Page is an HTML page under construction. The zero value is an empty page. Only one goroutine may use it.
type Page struct{ b strings.Builder }

// HTML is markup that this program has created. Put does not escape it.
type HTML string

// Put writes a format in which each %s is replaced by an argument. Arguments are escaped for text and for attribute
// values in double quotes; a %s must not occur elsewhere. The format must be a constant. Arguments are strings, HTML
// and integers.
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

// Escape escapes text for use between tags and in attribute values in double quotes. It replaces characters with a
// meaning in HTML, and NUL, which no page may contain.
func Escape(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), "\x00", "\uFFFD")
}
