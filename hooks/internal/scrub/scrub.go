// Package scrub walks through all text in a content. Hooks that remove text from results thereby find it everywhere and
// keep every other byte.
//
//	clean := scrub.Walker{Text: func(text string) string { return strings.ReplaceAll(text, "SECRET", "…") }}
//	content := clean.Content(agent.TextContent("the key is SECRET"))
//
// JSON text is parsed. Strings are checked unescaped and then encoded again, so that valid JSON stays valid. A Walker
// is as safe for concurrent use as its funcs.
package scrub

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Walker replaces texts. A func that returns its argument changes nothing.
type Walker struct {
	// Text replaces a plain text, which is not a JSON object, list or string. Required.
	Text func(text string) string
	// Member, unless nil, replaces a string that is the value of an object's member, or in a list that is the value.
	// value is the original string. after is Text's result for it, which can still contain a part of the text to
	// remove.
	Member func(name, value, after string) string
	// Number, unless nil, replaces a number in JSON. A changed number becomes a string. name is its member's name, or
	// empty.
	Number func(name, digits string) string
}

// Content returns the content with its texts replaced. Bytes that are not text do not change.
func (w Walker) Content(content agent.Content) agent.Content { return content.MapText(w.String) }

// String returns a text, JSON or not, with replacements.
func (w Walker) String(text string) string { return w.text(text, 0) }

// deepest is the maximum nesting of JSON text within JSON strings.
const deepest = 4

// text replaces within text that is nested in depth other texts.
func (w Walker) text(text string, depth int) string {
	if depth < deepest && IsJSON(text) {
		return w.json(text, depth)
	}
	return w.Text(text)
}

// IsJSON reports whether a text is a JSON object, list or string.
func IsJSON(text string) bool {
	trimmed := strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	return trimmed != "" && strings.ContainsRune(`{["`, rune(trimmed[0])) && json.Valid([]byte(trimmed))
}

// json replaces the strings and numbers in JSON text and keeps everything else.
func (w Walker) json(text string, depth int) string {
	var b strings.Builder
	named := "" // the member whose value is being read
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
		if strings.Contains(text[:start], "}") { // after a }, values no longer belong to the last name
			named = ""
		}
		raw := text[start:end]
		text = text[end:]
		isName := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), ":")
		plain, ok := strictjson.Unquote(raw)
		if !ok { // half a surrogate pair, which some parsers accept
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

// between replaces the numbers between two strings in JSON text.
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
	if err != nil { // not UTF-8, which is impossible for a JSON string's text
		return `"[redacted]"`
	}
	return raw
}
