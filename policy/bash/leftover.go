package bash

import (
	"net/url"
	"slices"
	"strings"
)

// A program's handler claims each word of which it knows what the program makes of it: a file, a host, text, a flag, a
// word of another command. What no handler claimed may be anything, so the walker takes it for files and hosts. That is
// the rule for programs and options that the tables do not have, and for tables that are wrong: forgetting a word in a
// table makes the answer stricter, never weaker.
//
// An example: of `iconv -f utf8 -o../x y`, a program without a table, the files are utf8, ../x and y.

// maxPieces is how many parts of one word are looked at.
const maxPieces = 64

// claim says that the handler of the command knows what the word is.
func (w Word) claim() {
	if w.claimed != nil {
		*w.claimed = true
	}
}

// claimAll marks words as understood, so that they do not count as files that an unknown option may take.
func claimAll(words []Word) {
	for _, word := range words {
		word.claim()
	}
}

// markWords gives each argument of a command a mark that its copies share.
func (k *call) markWords() {
	claimed := make([]bool, len(k.words))
	k.words = slices.Clone(k.words)
	for i := range k.words {
		k.words[i].claimed = &claimed[i]
	}
}

// leftovers takes the words that no handler claimed for files and hosts. A program that has a table takes only what looks
// like a path for one.
func (w *walker) leftovers(c ctx, k call, access Access, listed bool) {
	for i, a := range k.args() {
		if a.claimed == nil || *a.claimed || a.Is("--") || a.Is("-") {
			continue
		}
		// The value of an option that the table does not have is no such thing as the table's operands.
		afterOption := i > 0 && strings.HasPrefix(k.words[i].Text, "-")
		named := ""
		if afterOption {
			named = k.words[i].Text
		}
		w.perhapsNamed(c, k, named, a, access, !listed || afterOption || !strings.HasPrefix(a.Text, "-"))
	}
}

// perhaps notes the files and hosts that a word may name. When anything is not set, only parts that look like paths count.
func (w *walker) perhaps(c ctx, k call, a Word, access Access, anything bool) {
	w.perhapsNamed(c, k, "", a, access, anything)
}

// perhapsNamed works like that for the value of an option or variable of a name.
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
			continue // the word was noted; the name of a flag is no file
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

// gluedValues returns what may stand behind the letters of a short option: -o../x, -xvf/etc/x.
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

// isSeparator reports a byte at which programs cut values into parts: key=value, a:b, host:path, @file.
func isSeparator(r rune) bool { return strings.ContainsRune("=:,;@|<>()[]{}\"'`&?!$^+#\\ \t\r\n", r) }

// looksLikePath reports a text that leads to another folder, or names a hidden file.
func looksLikePath(text string) bool {
	return strings.ContainsRune(text, '/') || len(text) > 1 && text[0] == '.' || strings.HasPrefix(text, "~")
}

// withoutURLs notes the hosts of the URLs in a text and returns the rest of it.
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
		if strings.HasPrefix(rest, "/") { // there is no host: sqlite:///x is a file
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

// fileURL notes the file of a file: URL and reports whether the word is one. Programs differ in what they make of escapes,
// braces and hosts in it: the file of such a URL is not known.
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

// maxName is how long the name of a file may be on any system, in bytes.
const maxName = 255

// tooLong reports a text that no system opens as a file.
func tooLong(text string) bool {
	for name := range strings.SplitSeq(text, "/") {
		if len(name) > maxName && isKnown(name) {
			return true
		}
	}
	return false
}
