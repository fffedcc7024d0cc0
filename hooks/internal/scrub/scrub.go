// Package scrub walks through all texts that content has, so that hooks which take something out of results find it
// wherever it stands, and leave the rest as it is to the byte.
//
//	clean := scrub.Walker{Text: func(text string) string { return strings.ReplaceAll(text, "SECRET", "…") }}
//	content := clean.Content(agent.TextContent("the key is SECRET"))
//
// A text that is JSON is read: strings are looked at as they read, not as they are escaped, and written as JSON again, so
// that what was valid stays valid. A Walker is a value of funcs and as safe for concurrent use as they are.
package scrub

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Walker says what texts become. What returns its argument changes nothing.
type Walker struct {
	// Text is what a plain text becomes: one that is no JSON object, list or string. Required.
	Text func(text string) string
	// Member, unless nil, is what the string value of an object's member becomes, or a string in the list that is its
	// value. Value is how it reads, and after what Text made of it, which may still hold a part of what is looked for.
	Member func(name, value, after string) string
	// Number, unless nil, is what a number in JSON becomes, which is then a string. Name is that of its member, or empty.
	Number func(name, digits string) string
}

// Content returns the content with its texts as the walker leaves them. Bytes that are no text stay.
func (w Walker) Content(content agent.Content) agent.Content { return content.MapText(w.String) }

// String returns what a text becomes, JSON or not.
func (w Walker) String(text string) string { return w.text(text, 0) }

// deepest is how many texts within texts are read as JSON.
const deepest = 4

// text returns what a text becomes that is in so many others.
func (w Walker) text(text string, depth int) string {
	if depth < deepest && IsJSON(text) {
		return w.json(text, depth)
	}
	return w.Text(text)
}

// IsJSON reports whether a text is a JSON object, list or string.
func IsJSON(text string) bool {
	trimmed := strings.TrimSpace(text)
	return trimmed != "" && strings.ContainsRune(`{["`, rune(trimmed[0])) && json.Valid([]byte(trimmed))
}

// json returns what a JSON text becomes: its strings and numbers change, all else stays as it is.
func (w Walker) json(text string, depth int) string {
	var b strings.Builder
	named := "" // the member whose value we are in
	for {
		start := strings.IndexByte(text, '"')
		if start < 0 {
			b.WriteString(w.between(named, text))
			return b.String()
		}
		end := start + 1
		for text[end] != '"' {
			end += lo.Ternary(text[end] == '\\', 2, 1)
		}
		end++
		b.WriteString(w.between(named, text[:start]))
		if strings.Contains(text[:start], "}") { // until then all values are the last name's
			named = ""
		}
		raw := text[start:end]
		text = text[end:]
		isName := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), ":")
		plain, ok := strictjson.Unquote(raw)
		if !ok { // half a surrogate pair: JSON to some
			plain = strings.ToValidUTF8(raw[1:len(raw)-1], "�")
		}
		after := w.text(plain, depth+1)
		if w.Member != nil && !isName && named != "" {
			after = w.Member(named, plain, after)
		}
		b.WriteString(lo.Ternary(after == plain, raw, quoteJSON(after)))
		if isName {
			named = plain
		}
	}
}

var number = regexp.MustCompile(`-?[0-9][0-9.eE+-]*`)

// between returns what becomes of what stands between the strings of a JSON text.
func (w Walker) between(named, text string) string {
	if w.Number == nil {
		return text
	}
	inside, outside, closes := strings.Cut(text, "}")
	if named == "" || !closes {
		return w.numbers(named, text)
	}
	return w.numbers(named, inside) + "}" + w.numbers("", outside)
}

func (w Walker) numbers(named, text string) string {
	return number.ReplaceAllStringFunc(text, func(digits string) string {
		after := w.Number(named, digits)
		return lo.Ternary(after == digits, digits, quoteJSON(after))
	})
}

// quoteJSON returns a text as a JSON string.
func quoteJSON(text string) string {
	raw, err := strictjson.Marshal(text)
	if err != nil { // it is not UTF-8, which no text of a JSON string is
		return `"[redacted]"`
	}
	return raw
}
