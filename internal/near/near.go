// Package near finds the name that was probably meant by one that is not known.
package near

import (
	"strings"

	"github.com/samber/lo"
)

// Name returns the known name that a wrong one was probably meant to be: the same but for case and separators, else
// the one with the fewest slips of the pen, else the only one that contains it or that it contains. It reports false
// where none is alike.
func Name(name string, known []string) (string, bool) {
	plain := bareName(name)
	slips := len(plain) / 3 // how many are believable
	best := ""
	var related []string
	for _, candidate := range known {
		other := bareName(candidate)
		if d := editDistance(plain, other); d < slips || d == slips && best == "" {
			best, slips = candidate, d
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

// bareName drops what spellings of the same name differ in: filePath, file_path and File-Path.
func bareName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(name))
}

// editDistance counts the slips of the pen from a to b: bytes inserted, left out, changed, or swapped with their
// neighbour. Beyond 64 bytes it gives up and says that nothing is alike.
func editDistance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return most
	}
	var before, above, row [most + 1]int // of two bytes of a ago, of one, and now
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
