package redact

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Text is the text without its secrets, and what was replaced.
func (r *Redactor) Text(text string) (string, Counts) {
	counts := Counts{}
	return r.text(text, counts, 0), counts
}

// Content is the content without its secrets, and what was replaced. Images and opaque forms stay.
func (r *Redactor) Content(content agent.Content) (agent.Content, Counts) {
	counts := Counts{}
	var parts []agent.Part
	for _, p := range content.Parts() {
		p.Text = r.text(p.Text, counts, 0)
		p.Name = r.text(p.Name, counts, 0)
		p.URL = r.url(p.URL, counts)
		if p.Kind != agent.PartImage && utf8.ValidString(string(p.Data)) {
			p.Data = agent.Bytes(r.text(string(p.Data), counts, 0))
		}
		parts = append(parts, p)
	}
	return agent.ContentOf(parts...), counts
}

// url looks into a data: URL of text as well.
func (r *Redactor) url(url string, counts Counts) string {
	head, data, ok := strings.Cut(url, ";base64,")
	if plain, err := base64.StdEncoding.DecodeString(data); ok && err == nil && strings.HasPrefix(head, "data:") && utf8.Valid(plain) {
		return head + ";base64," + base64.StdEncoding.EncodeToString([]byte(r.text(string(plain), counts, 0)))
	}
	return r.text(url, counts, 0)
}

// deepest is how many texts within texts are read as JSON.
const deepest = 4

// text is the text without its secrets, which are counted. Depth says how many texts it is in.
func (r *Redactor) text(text string, counts Counts, depth int) string {
	trimmed := strings.TrimSpace(text)
	if depth < deepest && trimmed != "" && strings.ContainsRune(`{["`, rune(trimmed[0])) && json.Valid([]byte(trimmed)) {
		return r.json(text, counts, depth)
	}
	for _, l := range r.literals {
		if n := strings.Count(text, l.text); n > 0 {
			counts[l.kind] += n
			text = strings.ReplaceAll(text, l.text, mark(l.kind))
		}
	}
	lower := strings.ToLower(text)
	for _, rule := range r.rules {
		text = rule.replace(text, lower, counts)
	}
	return text
}

// json is the text of a JSON value without the secrets in its strings and numbers. All else stays as it is.
func (r *Redactor) json(text string, counts Counts, depth int) string {
	var b strings.Builder
	named := "" // what the last string that was a name says
	for {
		start := strings.IndexByte(text, '"')
		if start < 0 {
			b.WriteString(r.between(text, counts))
			return b.String()
		}
		end := start + 1
		for text[end] != '"' {
			end += lo.Ternary(text[end] == '\\', 2, 1)
		}
		end++
		b.WriteString(r.between(text[:start], counts))
		raw := text[start:end]
		text = text[end:]
		isName := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), ":")
		plain, ok := strictjson.Unquote(raw)
		if !ok { // half a surrogate pair: JSON to some
			plain = strings.ToValidUTF8(raw[1:len(raw)-1], "�")
		}
		after := r.text(plain, counts, depth+1)
		if !isName && after == plain && r.isSet(named, plain) {
			counts[kindSet]++
			after = mark(kindSet)
		}
		b.WriteString(lo.Ternary(after == plain, raw, quoted(after)))
		named = lo.Ternary(isName, plain, "")
	}
}

var number = regexp.MustCompile(`-?[0-9][0-9.eE+-]*`)

// between is what stands between the strings of a JSON text. A number with a secret in it becomes a string.
func (r *Redactor) between(text string, counts Counts) string {
	if !r.numbers {
		return text
	}
	return number.ReplaceAllStringFunc(text, func(n string) string {
		after := r.text(n, counts, deepest)
		return lo.Ternary(after == n, n, quoted(after))
	})
}

// quoted is a text as a JSON string.
func quoted(text string) string {
	raw, err := strictjson.Marshal(text)
	if err != nil { // it is not UTF-8, which no text of a JSON string is
		return `"[redacted]"`
	}
	return raw
}
