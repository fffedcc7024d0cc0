package bash

import (
	"net/url"
	"slices"
	"strings"
)

// A program's handler claims each word that it understands: a file, a host, text, a flag, a word of another command.
// The walker treats every unclaimed word as possible files and hosts. This covers unknown programs, unknown options
// and mistakes in the tables: a word missing from a table makes the result stricter, never weaker.
//
// Example: iconv has no table, so the files of `iconv -f utf8 -o../x y` are utf8, ../x and y.

// maxPieces is the maximum number of parts of one word that are examined.
const maxPieces = 64

// claim marks the word as understood by its command's handler.
func (w Word) claim() {
	if w.claimed != nil {
		*w.claimed = true
	}
}

// claimAll marks words as understood, so that they do not count as possible files of an unknown option.
func claimAll(words []Word) {
	for _, word := range words {
		word.claim()
	}
}

// markWords gives each argument a claim flag that all copies of the word share.
func (k *call) markWords() {
	claimed := make([]bool, len(k.words))
	k.words = slices.Clone(k.words)
	for i := range k.words {
		k.words[i].claimed = &claimed[i]
	}
}

// leftovers records the words that no handler claimed as files and hosts. If the program has a table, only words that
// look like a path count.
func (w *walker) leftovers(c ctx, k call, access Access, listed bool) {
	for i, a := range k.args() {
		if a.claimed == nil || *a.claimed || a.Is("--") || a.Is("-") {
			continue
		}
		// A word after an unknown option may be the value of that option.
		afterOption := i > 0 && strings.HasPrefix(k.words[i].Text, "-")
		named := ""
		if afterOption {
			named = k.words[i].Text
		}
		w.perhapsNamed(c, k, named, a, access, !listed || afterOption || !strings.HasPrefix(a.Text, "-"))
	}
}

// perhaps records the files and hosts that a word may name. If anything is false, only parts that look like paths
// count.
func (w *walker) perhaps(c ctx, k call, a Word, access Access, anything bool) {
	w.perhapsNamed(c, k, "", a, access, anything)
}

// perhapsNamed works like perhaps for the value of an option or variable with this name.
func (w *walker) perhapsNamed(c ctx, k call, named string, a Word, access Access, anything bool) {
	a.claim()
	if !w.spend(len(a.raw)/32 + 1) {
		return
	}
	for one := range a.alternatives {
		w.perhapsNamed(c, k, named, one, access, anything)
	}
	a.also = nil
	note := func(text string, whole bool) {
		if text == "" || text == "-" || !anything && !looksLikePath(text) || tooLong(text) {
			return
		}
		file := makeWord(text, a.Kind == Pattern, a.Many, a.Source, a.Pos)
		if whole {
			file = a
		}
		w.file(c, file, access, k.index)
		if decoded, err := url.PathUnescape(text); err == nil && decoded != text && isKnown(decoded) {
			w.file(c, makeWord(decoded, a.Kind == Pattern, a.Many, a.Source, a.Pos), access, k.index)
		}
	}
	text := a.raw
	if !strings.HasPrefix(text, "-") {
		note(text, true)
	}
	text = w.withoutURLs(c, a, text, k.index)
	if !strings.HasPrefix(text, "-") {
		w.bareHosts(named, text, a, k.index)
	}
	name, _, assigned := strings.Cut(text, "=")
	if !strings.HasPrefix(text, "-") && !strings.ContainsFunc(text, isSeparator) {
		return
	}
	pieces := 0
	for _, piece := range append(gluedValues(text), strings.FieldsFunc(strings.TrimLeft(text, "-"), isSeparator)...) {
		if piece == a.raw || strings.HasPrefix(text, "-") && piece == strings.TrimLeft(text, "-") {
			continue // the word is recorded; a flag name is not a file
		}
		if looksLikePath(piece) || pieces < maxPieces {
			note(piece, false)
			if assigned && strings.HasPrefix(text[len(name)+1:], piece) {
				w.bareHosts(name, piece, a, k.index)
			} else {
				w.bareHosts("", piece, a, k.index)
			}
			pieces++
		}
	}
}

// gluedValues returns the possible values after the letters of a short option: -o../x, -xvf/etc/x.
func gluedValues(option string) []string {
	if len(option) < 3 || option[0] != '-' || option[1] == '-' {
		return nil
	}
	var values []string
	if value := option[2:]; len(value) > 1 || looksLikePath(value) {
		values = append(values, value)
	}
	behind := strings.IndexFunc(option[1:], func(r rune) bool { return !isAlnum(r) }) + 1
	if behind > 2 {
		values = append(values, option[behind:])
	}
	return values
}

// isSeparator reports whether programs split values at r: key=value, a:b, host:path, @file.
func isSeparator(r rune) bool { return strings.ContainsRune("=:,;@|<>()[]{}\"'`&?!$^+#\\ \t\r\n", r) }

// looksLikePath reports whether text leads to another folder or names a hidden file.
func looksLikePath(text string) bool {
	return strings.ContainsRune(text, '/') || len(text) > 1 && text[0] == '.' || strings.HasPrefix(text, "~")
}

// withoutURLs records the hosts of the URLs in text and returns the rest of the text.
func (w *walker) withoutURLs(c ctx, a Word, text string, command int) string {
	for at := 0; ; {
		i := strings.Index(text[at:], "://")
		if i < 0 {
			return text
		}
		begin := at + urlStart(text[at:])
		end := begin + len(text[begin:])
		if i := strings.IndexAny(text[at+i:], " \t\n\"'<>|,;)"); i >= 0 {
			end = at + strings.Index(text[at:], "://") + i
		}
		one := text[begin:end]
		scheme, rest, _ := strings.Cut(one, "://")
		if strings.HasPrefix(rest, "/") { // a URL without a host names a file: sqlite:///x
			at = begin + len(scheme) + len("://")
			continue
		}
		if strings.EqualFold(scheme, "file") {
			at = begin + len("file://")
			continue
		}
		w.host(c, makeWord(one, false, a.Many, a.Source, a.Pos), command)
		text = text[:begin] + " " + text[end:]
		at = begin
	}
}

// fileURL records the file named by a file: URL and reports whether the word is such a URL. It records the path as
// unknown, because programs disagree about escapes, braces and hosts in file: URLs.
func (w *walker) fileURL(c ctx, word Word, access Access, command int) bool {
	if len(word.raw) < len("file:") || !strings.EqualFold(word.raw[:len("file:")], "file:") {
		return false
	}
	rest := word.cut(len("file:"))
	if authority, path, found := strings.Cut(strings.TrimPrefix(rest.raw, "//"), "/"); strings.HasPrefix(rest.raw, "//") && found {
		if authority != "" && authority != "localhost" {
			path = unknown + "/" + path
		}
		rest = makeWord("/"+path, false, false, word.Source, word.Pos)
	}
	if strings.ContainsAny(rest.raw, `%{}[]*?#\`) {
		rest = makeWord(unknown, false, false, word.Source, word.Pos)
	}
	w.file(c, rest, access, command)
	word.claim()
	return true
}

// maxName is the maximum length in bytes of a file name on any system.
const maxName = 255

// tooLong reports whether text is too long for a file name on any system.
func tooLong(text string) bool {
	for name := range strings.SplitSeq(text, "/") {
		if len(name) > maxName && isKnown(name) {
			return true
		}
	}
	return false
}
