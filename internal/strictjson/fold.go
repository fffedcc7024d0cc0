package strictjson

import (
	"strings"
	"unicode"
)

// fold maps names that differ only in case to the same name: every rune becomes the smallest one in its folding
// orbit. Two names fold alike exactly when strings.EqualFold says so.
func fold(name string) string {
	return strings.Map(foldRune, name)
}

func foldRune(r rune) rune {
	if r < 'a' {
		return r // no rune below folds to a smaller one
	}
	if r <= 'z' {
		return r - ('a' - 'A')
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
