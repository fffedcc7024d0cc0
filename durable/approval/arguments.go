package approval

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// Arguments is the text of the arguments of a call.
type Arguments string

// MarshalJSON returns the arguments unchanged, or as a JSON string if they are not valid JSON.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if text := a.orEmpty(); json.Valid([]byte(text)) {
		return []byte(text), nil
	}
	return json.Marshal(string(a))
}

func (a Arguments) orEmpty() string {
	if a == "" {
		return "{}"
	}
	return string(a)
}

// Text returns the arguments in the form that people see: indented, with invisible characters written as escapes, which
// have the same meaning in JSON.
func (a Arguments) Text() string {
	text := a.orEmpty()
	if json.Valid([]byte(text)) && layoutBytes(text) <= 4*len(text)+64<<10 {
		var out bytes.Buffer
		_ = json.Indent(&out, []byte(text), "", "  ") // it is valid
		text = out.String()
	}
	return visible(text)
}

// previewLength is the maximum number of characters of a preview.
const previewLength = 160

// Preview returns the beginning of the arguments on one line. An object with one text is shown as that text.
func (a Arguments) Preview() string {
	text := a.orEmpty()
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && len(object) == 1 {
		for _, value := range object {
			var only string
			if json.Unmarshal(value, &only) == nil {
				text = only
			}
		}
	}
	short := []rune(oneLine(text[:min(len(text), 8*previewLength)]))
	if len(short) > previewLength || len(text) > 8*previewLength {
		return string(short[:min(len(short), previewLength)]) + "…"
	}
	return string(short)
}

// isSame reports whether a text from the form equals the text that was shown. It ignores changes of line endings, which
// browsers make.
func (a Arguments) isSame(text string) bool { return plain(text) == plain(a.Text()) }

func plain(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) == nil {
		return out.String()
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

// layoutBytes returns the number of bytes that indentation adds to a JSON text: deep nesting turns a megabyte into
// gigabytes.
func layoutBytes(text string) int {
	depth, sum, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			sum += 1 + 2*depth
		case c == '}' || c == ']':
			depth--
			sum += 1 + 2*depth
		case c == ',':
			sum += 1 + 2*depth
		}
	}
	return sum
}

// visible writes invisible characters as escapes, so that people see everything that they approve.
func visible(text string) string { return invisible.Escape(text) }
