package policy

import (
	"encoding/json"
	"regexp"
	"strings"
)

// text is a text in a file in which ${name} stands for a value.
type text struct {
	pieces []piece
}

// piece is a literal, or a name with the literal that remains if it has no value.
type piece struct {
	literal string
	name    string
}

// reference matches ${name} and ${dotted.path}. Elements of lists are numbers.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}`)

// textOf parses a text with names.
func textOf(source string) text {
	var t text
	end := 0
	for _, at := range reference.FindAllStringSubmatchIndex(source, -1) {
		if at[0] > end {
			t.pieces = append(t.pieces, piece{literal: source[end:at[0]]})
		}
		t.pieces = append(t.pieces, piece{literal: source[at[0]:at[1]], name: source[at[2]:at[3]]})
		end = at[1]
	}
	if end < len(source) {
		t.pieces = append(t.pieces, piece{literal: source[end:]})
	}
	return t
}

// placeholderNames returns the names in the text, including duplicates.
func (t text) placeholderNames() []string {
	var out []string
	for _, p := range t.pieces {
		if p.name != "" {
			out = append(out, p.name)
		}
	}
	return out
}

// with replaces names by their values. Values are not interpreted: a ${name} within one stays. A name without a value
// stays, too.
func (t text) with(value func(name string) (string, bool)) string {
	if len(t.pieces) == 1 && t.pieces[0].name == "" {
		return t.pieces[0].literal
	}
	var b strings.Builder
	for _, p := range t.pieces {
		if p.name != "" {
			if v, ok := value(p.name); ok {
				b.WriteString(v)
				continue
			}
		}
		b.WriteString(p.literal)
	}
	return b.String()
}

// plainText returns a value as it is inserted in a text: a text unchanged, any other value as JSON.
func plainText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	}
	out, err := json.Marshal(v)
	return string(out), err == nil
}
