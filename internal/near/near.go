// Package near suggests a known name for a misspelled one.
package near

import (
	"strings"

	"github.com/samber/lo"
)

// Name returns the known name that is most similar to a wrong one. It prefers a name that differs only in case and
// separators, then the name with the fewest typing errors, then the only name that contains the wrong one or is contained
// in it. Of two equally similar names, it prefers a name in the same case, then the alphabetical order. It returns false
// if no name is similar.
func Name(name string, known []string) (string, bool) {
	plain := bareName(name)
	slips := max(len(plain)/3, min(len(plain)-1, 1)) // the maximum number of typing errors
	best, least := "", 2*slips+2
	var related []string
	for _, candidate := range known {
		other := bareName(candidate)
		d := 2 * editDistance(plain, other)
		if isUpper(name) != isUpper(candidate) {
			d++
		}
		if d < least || d == least && candidate < best {
			best, least = candidate, d
		}
		if min(len(plain), len(other)) >= 3 && (strings.Contains(plain, other) || strings.Contains(other, plain)) {
			related = append(related, candidate)
		}
	}
	if best == "" && len(related) == 1 {
		best = related[0]
	}
	return best, best != ""
}

func isUpper(name string) bool { return name == strings.ToUpper(name) }

var separators = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

// bareName removes the differences between spellings of a name: filePath, file_path and File-Path.
func bareName(name string) string {
	return strings.ToLower(separators.Replace(name))
}

// editDistance counts the typing errors from a to b: inserted, omitted or changed bytes, and swapped neighbours. For
// texts longer than 64 bytes it returns a large number.
func editDistance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return most
	}
	var before, above, row [most + 1]int // rows for the byte of a before the last, the last byte, and the current byte
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		before, above = above, row
		row[0] = i + 1
		for j := range len(b) {
			changed := above[j] + lo.Ternary(a[i] == b[j], 0, 1)
			row[j+1] = min(changed, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
