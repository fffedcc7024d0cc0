package redact

import (
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks/internal/scrub"
)

// Text returns the text without its secrets, and the number of replacements by kind.
func (r *Redactor) Text(text string) (string, Counts) {
	counts := Counts{}
	return r.walker(counts).String(text), counts
}

// Content returns the content without its secrets, and the number of replacements by kind. Images and opaque parts
// stay unchanged.
func (r *Redactor) Content(content agent.Content) (agent.Content, Counts) {
	counts := Counts{}
	return r.walker(counts).Content(content), counts
}

// walker replaces secrets and counts them.
func (r *Redactor) walker(counts Counts) scrub.Walker {
	w := scrub.Walker{
		Text: func(text string) string { return r.plain(text, counts) },
		Member: func(name, value, after string) string {
			scheme, kind := r.setAs(name, value)
			if kind == "" || onlyMark().MatchString(strings.TrimPrefix(after, scheme)) {
				return after
			}
			counts[kind]++
			return scheme + markOf(kind)
		},
	}
	if r.numbers {
		w.Number = func(_, digits string) string { return r.plain(digits, counts) }
	}
	return w
}

// plain returns a text that is not JSON without its secrets.
func (r *Redactor) plain(text string, counts Counts) string {
	for _, l := range r.literals {
		if n := strings.Count(text, l.text); n > 0 {
			counts[l.kind] += n
			text = strings.ReplaceAll(text, l.text, markOf(l.kind))
		}
	}
	lower := strings.ToLower(text)
	for _, rule := range r.rules {
		text = rule.replace(text, lower, counts)
	}
	return text
}
