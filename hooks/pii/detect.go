package pii

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/lazy"
)

// detector finds one kind of personal data.
type detector struct {
	kind string
	// first lists the bytes at which to search, at the start of a word or if the byte is not part of a word.
	// Alternatively, hints lists the words after which to search. With neither, re is searched everywhere.
	first string
	hints []string
	re    *regexp.Regexp
	// at returns the start and end of a finding at i, or after the hint that ends there. It reads only a bounded number of
	// bytes around i.
	at func(text string, i int) (from, to int, ok bool)
	// valid, unless nil, reports whether a match of re is a finding.
	valid func(value string) bool
	// same returns a value's canonical form. Nil means letters and digits in upper case.
	same func(value string) string
}

// found is a piece of a text.
type found struct {
	from, to int
	of       *detector
	also     []*detector // overlapping findings that end later; to is the end of the last of them
}

// uniqueKinds returns a piece's distinct kinds. Overlapping findings are one piece.
func (f found) uniqueKinds() []string {
	return lo.Uniq(append([]string{f.of.kind}, lo.Map(f.also, func(d *detector, _ int) string { return d.kind })...))
}

// finder runs a list of detectors.
type finder struct {
	first  [256][]*detector // by the byte at which they search
	others []*detector
}

func newFinder(detectors []detector) *finder {
	f := new(finder)
	for i := range detectors {
		d := &detectors[i]
		for _, c := range []byte(d.first) {
			f.first[c] = append(f.first[c], d)
		}
		if d.first == "" {
			f.others = append(f.others, d)
		}
	}
	return f
}

// find returns the personal data in a text, except data that passOver accepts, in order and without overlaps. If
// findings overlap, the one that begins first wins. If several begin at the same place, the longest wins. An
// overlapping finding that ends later extends it.
func (f *finder) find(text string, passOver func(found) bool) []found {
	var all []found
	inWord := false
	for i := range len(text) {
		c := text[i]
		if begins := !inWord || !inASCIIWord(c); begins {
			for _, d := range f.first[c] {
				if from, to, ok := d.at(text, i); ok {
					all = append(all, found{from: from, to: to, of: d})
				}
			}
		}
		inWord = inASCIIWord(c)
	}
	lower := ""
	for _, d := range f.others {
		if d.hints == nil {
			all = d.everywhere(all, text)
			continue
		}
		if lower == "" {
			lower = asciiLower(text)
		}
		all = d.behindHints(all, text, lower)
	}
	if all = slices.DeleteFunc(all, passOver); len(all) < 2 {
		return all
	}
	slices.SortStableFunc(all, func(a, b found) int { return lo.CoalesceOrEmpty(a.from-b.from, b.to-a.to) })
	kept := all[:1]
	for _, f := range all[1:] {
		switch last := &kept[len(kept)-1]; {
		case f.from >= last.to:
			kept = append(kept, f)
		case f.to > last.to: // +1 4111 1111 1111 1111: the last digits are personal data, too
			last.to, last.also = f.to, append(last.also, f.of)
		}
	}
	return kept
}

func inASCIIWord(c byte) bool { return c < utf8.RuneSelf && isAlnum(rune(c)) }

// asciiLower converts ASCII letters to lower case. It keeps byte offsets valid, even for invalid UTF-8.
func asciiLower(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

func (d *detector) everywhere(all []found, text string) []found {
	for _, at := range d.re.FindAllStringSubmatchIndex(text, -1) {
		from, to := group(at)
		if from < to && (d.valid == nil || d.valid(text[from:to])) {
			all = append(all, found{from: from, to: to, of: d})
		}
	}
	return all
}

// group returns the position of a match's first group or, without groups, of the whole match.
func group(at []int) (from, to int) {
	for g := 2; g < len(at); g += 2 {
		if at[g] >= 0 {
			return at[g], at[g+1]
		}
	}
	return at[0], at[1]
}

// behindHints adds the findings after each hint. A hint that starts with a space must be at the start of a word.
func (d *detector) behindHints(all []found, text, lower string) []found {
	for _, hint := range d.hints {
		hint, whole := strings.CutPrefix(hint, " ")
		for i := strings.Index(lower, hint); i >= 0; {
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			if from, to, ok := d.at(text, i+len(hint)); ok && (!whole || !unicode.IsLetter(before)) {
				all = append(all, found{from: from, to: to, of: d})
			}
			next := strings.Index(lower[i+len(hint):], hint)
			if next < 0 {
				break
			}
			i += len(hint) + next
		}
	}
	return all
}

// window is the maximum number of bytes that a pattern reads.
const window = 80

// newDetector returns a detector for texts that match the pattern and whose letters and digits, in upper case, pass a
// check. The pattern is anchored at the start.
func newDetector(kind, first, pattern string, check func(value string) bool) detector {
	re := lazy.Regexp(`^(?:` + pattern + `)`)
	return detector{kind: kind, first: first, at: func(text string, i int) (int, int, bool) {
		at := re().FindStringIndex(text[i:min(i+window, len(text))])
		if at == nil {
			return 0, 0, false
		}
		to := i + at[1]
		return i, to, alone(text, i, to) && check(bare(text[i:to]))
	}}
}

// near returns a detector for numbers that count only after a hint, because too many other numbers look the same.
func near(kind string, hints []string, pattern string, check func(value string) bool) detector {
	re := lazy.Regexp(`^(?i:[ ._-]?(?:numbers?|nummer|número|numéro|nr|no|num|id))?[\s:.=#"'(]{0,4}(` + pattern + `)`)
	return detector{kind: kind, hints: hints, at: func(text string, i int) (int, int, bool) {
		at := re().FindStringSubmatchIndex(text[i:min(i+window, len(text))])
		if at == nil {
			return 0, 0, false
		}
		from, to := i+at[2], i+at[3]
		return from, to, endsThere(text, to) && check(bare(text[from:to]))
	}}
}

// normal returns a value's canonical form.
func (d *detector) normal(value string) string {
	if d.same != nil {
		return d.same(value)
	}
	return bare(value)
}

func withSame(d detector, same func(string) string) detector {
	d.same = same
	return d
}

// only returns a text's runes for which keep returns true.
func only(text string, keep func(r rune) bool) string {
	return strings.Map(func(r rune) rune { return lo.Ternary(keep(r), r, -1) }, text)
}

// bare returns a text's letters and digits, in upper case.
func bare(text string) string { return strings.ToUpper(only(text, isAlnum)) }

func digits(text string) string { return only(text, isDigit) }

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// alone reports whether a piece of text is a complete word, not part of a longer word or number. It is not next to a
// letter or digit, or to a dash, underscore or decimal point that joins it to one.
func alone(text string, from, to int) bool {
	before, size := utf8.DecodeLastRuneInString(text[:from])
	beyond, _ := utf8.DecodeLastRuneInString(text[:from-size])
	return !isTied(before, beyond) && endsThere(text, to)
}

func endsThere(text string, to int) bool {
	after, size := utf8.DecodeRuneInString(text[to:])
	beyond, _ := utf8.DecodeRuneInString(text[to+size:])
	return !isTied(after, beyond)
}

func isTied(next, beyond rune) bool {
	switch next {
	case '-', '_':
		return isAlnum(beyond)
	case '.':
		return isDigit(beyond)
	}
	return isAlnum(next)
}

const (
	anyDigit = "0123456789"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters  = capitals + "abcdefghijklmnopqrstuvwxyz"
)

func acceptAny(string) bool { return true }
