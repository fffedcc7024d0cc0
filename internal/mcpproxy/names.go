package mcpproxy

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lookalikes are characters that look like a Latin letter, each followed by that letter.
var lookalikes = strings.NewReplacer(
	"а", "a", "в", "b", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "н", "h", "і", "i", "ј", "j", "к", "k", "м", "m", "о", "o", "р", "p", "ԛ", "q",
	"ѕ", "s", "т", "t", "у", "y", "ѵ", "v", "ԝ", "w", "х", "x", "г", "r", "п", "n", // Cyrillic
	"α", "a", "β", "b", "γ", "y", "ε", "e", "η", "n", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "τ", "t", "υ", "u", "χ", "x", "ω", "w", // Greek
	"հ", "h", "ո", "n", "օ", "o", "ս", "u", "ı", "i", "ɑ", "a", "ɡ", "g", "ℓ", "l",
)

// similar makes lookalikes in ASCII equal. Letters are lower case already.
var similar = strings.NewReplacer("0", "o", "1", "l", "i", "l", "|", "l", "rn", "m", "vv", "w")

// skeletonOf returns the same text for names that a person or a model may mistake for each other: they differ in case, in
// white space, marks and separators, or in characters that look alike.
func skeletonOf(name string) string {
	shape := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || r == '|' {
			return r
		}
		return -1
	}, lookalikes.Replace(strings.ToLower(norm.NFKD.String(name))))
	if shape == "" { // only symbols
		return name
	}
	return similar.Replace(shape)
}

// isPlain reports whether a name has only the characters that the protocol advises.
func isPlain(name string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"
	return name != "" && len(name) <= 128 && strings.Trim(name, plain) == ""
}
