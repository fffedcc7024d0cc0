package action

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// wording is text that contains value names.
type wording struct {
	text string
	// pieces are the parts before, between and after the names. There is one more piece than names.
	pieces, names []string
}

func wordingOf(text string) wording {
	t := wording{text: text}
	from := 0
	for _, at := range named.FindAllStringSubmatchIndex(text, -1) {
		t.pieces = append(t.pieces, text[from:at[0]])
		t.names = append(t.names, text[at[2]:at[3]])
		from = at[1]
	}
	t.pieces = append(t.pieces, text[from:])
	return t
}

// isValue reports whether a name refers to a run's value, not to a secret.
func isValue(name string) bool {
	first, _, _ := strings.Cut(memberPath(name), ".")
	return slices.Contains(VariableNames(), name) || slices.Contains(requestMembers(), first)
}

// secrets returns the names that refer to secrets.
func (t wording) secrets() []string {
	var names []string
	for _, name := range t.names {
		if !isValue(name) {
			names = append(names, name)
		}
	}
	return names
}

// fillText expands the text. Secrets are inserted unchanged; put checks and converts all other values. before is the
// text expanded so far.
func (t wording) fillText(r *Request, secrets map[string]string, put func(before, name, value string) (string, error)) (string, error) {
	var b strings.Builder
	for i, name := range t.names {
		b.WriteString(t.pieces[i])
		if secret, ok := secrets[name]; ok && !isValue(name) {
			b.WriteString(secret)
			continue
		}
		value, ok := r.lookup(name)
		if !ok {
			return "", fmt.Errorf("undefined variable %s", name)
		}
		value, err := put(b.String(), name, value)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
	}
	b.WriteString(t.pieces[len(t.pieces)-1])
	return b.String(), nil
}

// inURL escapes a value for the part of a URL after the host.
func inURL(before, name, value string) (string, error) {
	switch {
	case !behindHost(before):
		return "", fmt.Errorf("%s is in the host of the URL, where values of a run are not allowed", name)
	case strings.Contains(before, "?"):
		return url.QueryEscape(value), nil
	case strings.Trim(value, ".") == "":
		return "", fmt.Errorf("%s is %q, which would change the path", name, value)
	}
	return url.PathEscape(value), nil
}

// behindHost reports whether text appended to this beginning of a URL is part of the path or query.
func behindHost(before string) bool {
	_, rest, ok := strings.Cut(before, "://")
	if !ok {
		rest = before
	}
	return strings.ContainsAny(rest, "/?")
}

// inHeader checks that a value fits into a header, which holds one line of text.
func inHeader(_, name, value string) (string, error) {
	if strings.ContainsFunc(value, isControl) {
		return "", fmt.Errorf("%s contains a line break or another control character, which a header cannot hold", name)
	}
	return value, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
