package bash

import (
	"slices"
	"strconv"
	"strings"
)

// formatInt returns a number in decimal.
func formatInt(n int) string { return strconv.Itoa(n) }

// unknown replaces each unknown part of text. A line with this byte is not analysed.
const unknown = "\x00"

// Word is one word after expansion, as far as its value is known.
type Word struct {
	Kind WordKind
	// Text is the whole word (Literal), the pattern (Pattern), or the certain beginning (Partial).
	Text string
	// Suffix is the certain end of a Partial word.
	Suffix string
	// Many reports whether the word may be none or several words.
	Many bool
	// Split reports whether blanks and quotes in a name that a Pattern matches end or change the word: $(ls), xargs.
	Split bool
	// Source is the word as written. It is empty if the word is not written anywhere.
	Source string
	Pos    Pos

	raw string // contains the byte unknown for each unknown part
	// also lists strings in the line that an unknown word may be: text in ${x:-text}, and values of variables that
	// are set in one branch. The word may have other values, too.
	also []string
	here bool // the word begins with a literal ~
	// claimed is shared by all copies of one argument. It is set when the command's handler understands the word.
	claimed *bool
	// number reports whether the word's unknown parts are digits.
	number bool
	// afterUnknown marks an operand that may be an unknown option's value.
	afterUnknown bool
}

// WordKind says how much of a word is known.
type WordKind string

// The kinds of words.
const (
	Literal WordKind = "literal" // the whole word is known
	Pattern WordKind = "pattern" // the word is a known pattern, or a file name that matches it: "$f" in a loop over *.go
	Partial WordKind = "partial" // at most its beginning and end are known
)

// Is reports whether the word is certainly text.
func (w Word) Is(text string) bool { return w.Kind == Literal && w.Text == text }

// prefix returns the beginning that all of the word's possible values share.
func (w Word) prefix() string {
	if w.Kind == Pattern {
		return w.Text[:max(strings.IndexAny(w.Text, `*?[{(@+!`), 0)]
	}
	return w.Text
}

// String returns the text, with "…" for unknown parts.
func (w Word) String() string {
	if w.Kind == Partial {
		return w.Text + "…" + w.Suffix
	}
	return w.Text
}

// makeWord returns a word for text that may contain unknown parts.
func makeWord(raw string, glob, many bool, source string, pos Pos) Word {
	w := Word{Kind: Literal, Text: raw, Source: source, Pos: pos, raw: raw}
	if prefix, _, partial := strings.Cut(raw, unknown); partial {
		w.Kind, w.Text, w.Suffix, w.Many = Partial, prefix, raw[strings.LastIndexByte(raw, 0)+1:], many
	} else if glob {
		w.Kind, w.Many = Pattern, true
	}
	return w
}

// literalWord returns a known word that the parsed text does not contain literally.
func literalWord(text string, pos Pos) Word { return makeWord(text, false, false, "", pos) }

// cut returns the word without its first n bytes, which must be known.
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

// alternatives yields the possible values of an unknown word, as words.
func (w Word) alternatives(yield func(Word) bool) {
	for _, text := range w.also {
		one := makeWord(text, false, false, w.Source, w.Pos)
		one.claimed = w.claimed
		if text != "" && !yield(one) {
			return
		}
	}
}

// joinWords joins the words with blanks.
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

// loose returns the word as text. A pattern is unknown text, because the files are unknown.
func (w Word) loose() string {
	if w.Kind == Pattern {
		return w.prefix() + unknown
	}
	return w.raw
}

// isKnown reports whether text is completely known.
func isKnown(text string) bool { return strings.IndexByte(text, 0) < 0 }

// baseName returns the last element of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// hasFunc reports whether f returns true for any of the words.
func hasFunc(words []Word, f func(Word) bool) bool { return slices.ContainsFunc(words, f) }
