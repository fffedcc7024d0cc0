package condition

import (
	"regexp"
	"strings"
)

// named matches ${NAME} and ${NAME.NAME}.
var named = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)\}`)

// plain rewrites ${NAME} to NAME padded with spaces, so that it is an ordinary name and all byte offsets stay the
// same. Quoted text and comments stay unchanged.
func (d *dialect) plain(text string) (string, Errors) {
	if !strings.Contains(text, "$") {
		return text, nil
	}
	var wrong Errors
	out := []byte(text)
	for i := 0; i < len(text); {
		switch end := literalEnd(text, i); {
		case end > i:
			if e := d.quotedName(text, i, end); e != nil {
				wrong = append(wrong, e)
			}
			i = end
		case strings.HasPrefix(text[i:], "//"):
			if i += strings.IndexByte(text[i:], '\n'); i < 0 || text[i] != '\n' {
				return string(out), wrong
			}
		case text[i] == '$':
			m := named.FindStringSubmatch(text[i:])
			if m == nil {
				return string(out), append(wrong, d.wrongAt(text, i, "expected a name in braces after $, such as ${ITERATION}"))
			}
			copy(out[i:], "  "+m[1]+" ")
			i += len(m[0])
		default:
			i++
		}
	}
	return string(out), wrong
}

// quotedName returns an error for a quoted ${NAME} that was meant as a variable.
func (d *dialect) quotedName(text string, from, to int) *Error {
	body := strings.Trim(text[from:to], `'"`)
	m := named.FindStringSubmatch(body)
	if m == nil || m[0] != body || d.names[m[1]] == nil {
		return nil
	}
	return d.wrongAt(text, from, "quotes make %s plain text: remove them to use the variable", m[0])
}

// literalEnd returns the end of the string literal that begins at i, or i if none begins there. CEL reports an
// unterminated literal.
func literalEnd(text string, i int) int {
	if i > 0 && isNameByte(text[i-1]) && text[i] != '\'' && text[i] != '"' {
		return i // in the middle of a name
	}
	at, raw := i, false
	for at < len(text) && at < i+2 && strings.IndexByte("rRbB", text[at]) >= 0 {
		raw = raw || text[at] == 'r' || text[at] == 'R'
		at++
	}
	if at == len(text) || text[at] != '\'' && text[at] != '"' {
		return i
	}
	quote := text[at : at+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(text[at:], long) {
		quote = long
	}
	for at += len(quote); at < len(text); at++ {
		switch {
		case strings.HasPrefix(text[at:], quote):
			return at + len(quote)
		case text[at] == '\\' && !raw:
			at++
		case text[at] == '\n' && len(quote) == 1:
			return at
		}
	}
	return len(text)
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
