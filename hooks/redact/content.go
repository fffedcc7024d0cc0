package redact

import (
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks/internal/scrub"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// Text returns the text without its secrets, and the number of replacements.
func (r *Redactor) Text(text string) (string, Counts) {
	counts := Counts{}
	return r.walker(counts).String(text), counts
}

// Content returns the content without its secrets, and the number of replacements. Images and opaque
// data stay unchanged.
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

// plain returns text that is not JSON without its secrets.
func (r *Redactor) plain(text string, counts Counts) string {
	text = invisible.Replace(text, func(visible invisible.Text) []invisible.Match {
		return r.findAll(visible.Visible, counts, func(rule) bool { return true })
	})
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
	// Line breaks split only literals and secrets that are known by their own format. A name with a value is found even
	// where two lines meet.
	return invisible.ReplaceOverBreaks(text, func(joined invisible.Text) []invisible.Match {
		return r.findAll(joined.Visible, counts, func(rule rule) bool { return rule.not == nil })
	})
}

// findAll returns the matches for the literals, and for the rules that use accepts.
func (r *Redactor) findAll(text string, counts Counts, use func(rule) bool) []invisible.Match {
	var found []invisible.Match
	for _, l := range r.literals {
		for at := 0; ; at += len(l.text) {
			next := strings.Index(text[at:], l.text)
			if next < 0 {
				break
			}
			at += next
			found = append(found, matchOf(l.kind, at, at+len(l.text), counts))
		}
	}
	lower := strings.ToLower(text)
	for _, rule := range r.rules {
		if use(rule) && rule.mayMatch(lower) {
			found = append(found, rule.find(text, counts)...)
		}
	}
	return found
}
