package bash

import (
	"slices"
	"strconv"
	"strings"
)

// formatInt returns a number in decimal.
func formatInt(n int) string { return strconv.Itoa(n) }

// unknown stands in a text for what is not known of it. No line that is looked at
// has this byte.
const unknown = "\x00"

// Word is one word after expansion, as far as it is known.
type Word struct {
	Kind WordKind
	// Text is the word (Literal), the pattern (Pattern), or what the word begins
	// with for certain (Partial).
	Text string
	// Suffix is what a Partial word ends with for certain.
	Suffix string
	// Many marks a word in whose place none or several may stand.
	Many bool
	// Source is the word as written, empty if it is not written anywhere.
	Source string
	Pos    Pos

	raw string // with a mark for each part that is not known
	// also are texts of the line that may be the word, where it is not known: those of ${x:-text}, and of variables that are set
	// in one branch. The word may be others as well.
	also []string
	here bool // the ~ that it begins with is a name
	// claimed is shared by all copies of one argument. It is set when the handler of the command knows what the word is.
	claimed *bool
	// number says that what is not known of the word is digits.
	number bool
	// afterUnknown marks an operand that may be the value of an option that is not known.
	afterUnknown bool
}

// WordKind says how much of a word is known.
type WordKind string

// How much of a word is known.
const (
	Literal WordKind = "literal" // all of it
	Pattern WordKind = "pattern" // all of it, but the names of files that match take its place, or one of them: "$f" in a loop over *.go
	Partial WordKind = "partial" // its beginning and end, or nothing
)

// Is reports whether the word is certainly this text.
func (w Word) Is(text string) bool { return w.Kind == Literal && w.Text == text }

// prefix returns what the word begins with for certain, in each of its forms.
func (w Word) prefix() string {
	if w.Kind == Pattern {
		return w.Text[:max(strings.IndexAny(w.Text, `*?[{(@+!`), 0)]
	}
	return w.Text
}

// String returns the text, with "…" for what is not known.
func (w Word) String() string {
	if w.Kind == Partial {
		return w.Text + "…" + w.Suffix
	}
	return w.Text
}

// makeWord returns a word of a text with marks.
func makeWord(raw string, glob, many bool, source string, pos Pos) Word {
	w := Word{Kind: Literal, Text: raw, Source: source, Pos: pos, raw: raw}
	if prefix, _, partial := strings.Cut(raw, unknown); partial {
		w.Kind, w.Text, w.Suffix, w.Many = Partial, prefix, raw[strings.LastIndexByte(raw, 0)+1:], many
	} else if glob {
		w.Kind, w.Many = Pattern, true
	}
	return w
}

// literalWord returns a known word that is not written in the parsed text itself.
func literalWord(text string, pos Pos) Word { return makeWord(text, false, false, "", pos) }

// cut returns the word after its first n bytes, which are known.
func (w Word) cut(n int) Word {
	rest := makeWord(w.raw[n:], w.Kind == Pattern, w.Many, w.Source, w.Pos)
	rest.claimed = w.claimed
	for _, text := range w.also {
		if after, found := strings.CutPrefix(text, w.raw[:n]); found {
			rest.also = append(rest.also, after)
		}
	}
	return rest
}

// alternatives yields the texts of the line that a word which is not known may be, as words.
func (w Word) alternatives(yield func(Word) bool) {
	for _, text := range w.also {
		one := makeWord(text, false, false, w.Source, w.Pos)
		one.claimed = w.claimed
		if text != "" && !yield(one) {
			return
		}
	}
}

// joinWords returns the words with blanks between, with marks for what is not known.
func joinWords(words []Word) string {
	if len(words) == 1 {
		return words[0].loose()
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.loose()
	}
	return strings.Join(texts, " ")
}

// loose returns the word as text; a pattern is not known, as the files are not.
func (w Word) loose() string {
	if w.Kind == Pattern {
		return w.prefix() + unknown
	}
	return w.raw
}

// isKnown reports whether all of a text is known.
func isKnown(text string) bool { return strings.IndexByte(text, 0) < 0 }

// baseName returns the last part of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// hasFunc reports whether f holds for one of the words.
func hasFunc(words []Word, f func(Word) bool) bool { return slices.ContainsFunc(words, f) }
