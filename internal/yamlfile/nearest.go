package yamlfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
)

// Unknown returns a message for an unknown name, with the most similar known name and all known names.
func Unknown(what, name string, known []string) string {
	text := fmt.Sprintf("unknown %s %q", what, name)
	if near, ok := Nearest(name, known); ok {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return text + "; known: " + OneOf(known)
}

// OneOf returns the quoted names, sorted and separated by commas, or "none".
func OneOf(known []string) string {
	if len(known) == 0 {
		return "none"
	}
	known = slices.Sorted(slices.Values(known))
	return strings.Join(lo.Map(known, func(name string, _ int) string { return strconv.Quote(name) }), ", ")
}

// Nearest returns the known name with the fewest typing errors, at most a third of its letters.
func Nearest(name string, known []string) (string, bool) {
	const longest = 64
	name = plainName(name)
	if len(name) > longest {
		return "", false
	}
	best, slips := "", len(name)/3+1
	for _, candidate := range known {
		if d := editDistance(name, plainName(candidate)); d < slips {
			best, slips = candidate, d
		}
	}
	return best, best != ""
}

// plainName removes the differences between spellings of a name.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// editDistance counts the letters to insert, omit, change or swap to get from a to b.
func editDistance(a, b string) int {
	var above []int
	row := lo.Range(len(b) + 1)
	for i := range len(a) {
		before := above
		above, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(above[j]+lo.Ternary(a[i] == b[j], 0, 1), row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
