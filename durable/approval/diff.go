package approval

import (
	"strings"
)

// Diff returns how arguments differ, line by line in the form that people see: "- " before a line of before, "+ " before a
// line of after, and two spaces before a common line. It returns an empty text when they do not differ.
func Diff(before, after Arguments) string {
	var b strings.Builder
	for _, line := range diffLines(before.Text(), after.Text()) {
		b.WriteByte(line.mark)
		b.WriteByte(' ')
		b.WriteString(line.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// diffLine is one line of a difference: mark is '-', '+' or ' '.
type diffLine struct {
	mark byte
	text string
}

// mostCells is the maximum size of the table of diffLines. For larger texts all lines between the common beginning and end
// count as changed.
const mostCells = 1 << 20

// diffLines returns the lines of two texts, with the longest common subsequence marked as common; nil when the texts are
// equal.
func diffLines(before, after string) []diffLine {
	if before == after {
		return nil
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out, tail []diffLine
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		out = append(out, diffLine{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, diffLine{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	length := commonLengths(a, b)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && length != nil && a[0] == b[0]:
			out = append(out, diffLine{' ', a[0]})
			a, b = a[1:], b[1:]
		case len(b) == 0, len(a) > 0 && (length == nil || length[len(a)-1][len(b)] >= length[len(a)][len(b)-1]):
			out = append(out, diffLine{'-', a[0]})
			a = a[1:]
		default:
			out = append(out, diffLine{'+', b[0]})
			b = b[1:]
		}
	}
	for i := range tail {
		out = append(out, tail[len(tail)-1-i])
	}
	return out
}

// commonLengths returns the lengths of the longest common subsequences of the last i lines of a and the last k lines of b;
// nil if the table would be too large.
func commonLengths(a, b []string) [][]int {
	if (len(a)+1)*(len(b)+1) > mostCells {
		return nil
	}
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
		for k := range length[i] {
			switch {
			case i == 0 || k == 0:
			case a[len(a)-i] == b[len(b)-k]:
				length[i][k] = length[i-1][k-1] + 1
			default:
				length[i][k] = max(length[i-1][k], length[i][k-1])
			}
		}
	}
	return length
}
