package action

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// wording is a text with names of values in it.
type wording struct {
	text string
	// pieces are what stands before each name and behind the last; names are one less.
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

// isValue reports whether a name is that of a value of the run, and not of a secret.
func isValue(name string) bool {
	first, _, _ := strings.Cut(memberPath(name), ".")
	return slices.Contains(VariableNames(), name) || slices.Contains(requestMembers(), first)
}

// secrets returns the names that are not those of values.
func (t wording) secrets() []string {
	var names []string
	for _, name := range t.names {
		if !isValue(name) {
			names = append(names, name)
		}
	}
	return names
}

// fillText returns the text with secrets as they are, and other values as put makes them fit; before is the text so far.
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
			return "", fmt.Errorf("there is no %s here", name)
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

// inURL makes a value fit into a URL, behind its host.
func inURL(before, name, value string) (string, error) {
	switch {
	case !behindHost(before):
		return "", fmt.Errorf("%s stands in the host of the URL, which no value of a run can choose", name)
	case strings.Contains(before, "?"):
		return url.QueryEscape(value), nil
	case strings.Trim(value, ".") == "":
		return "", fmt.Errorf("%s is %q, which would lead to another path", name, value)
	}
	return url.PathEscape(value), nil
}

// behindHost reports whether what follows a beginning of a URL is part of its path or query.
func behindHost(before string) bool {
	_, rest, ok := strings.Cut(before, "://")
	if !ok {
		rest = before
	}
	return strings.ContainsAny(rest, "/?")
}

// inHeader lets a value be in a header, which can hold one line of text.
func inHeader(_, name, value string) (string, error) {
	if strings.ContainsFunc(value, isControl) {
		return "", fmt.Errorf("%s has a line break or another control character in it, which no header can hold", name)
	}
	return value, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
