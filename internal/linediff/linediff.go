// Package linediff compares texts line by line.
package linediff

import (
	"fmt"
	"strings"
)

// Line is one line of a difference: Mark is '-', '+' or ' '.
type Line struct {
	Mark byte
	Text string
}

// mostCells is the maximum size of the table of Lines. For larger texts all lines between the common beginning and end
// count as changed.
const mostCells = 1 << 20

// Lines returns the lines of two texts, with the longest common subsequence marked as common; nil when the texts are
// equal.
func Lines(before, after string) []Line {
	if before == after {
		return nil
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out, tail []Line
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		out = append(out, Line{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, Line{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	length := commonLengths(a, b)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && length != nil && a[0] == b[0]:
			out = append(out, Line{' ', a[0]})
			a, b = a[1:], b[1:]
		case len(b) == 0, len(a) > 0 && (length == nil || length[len(a)-1][len(b)] >= length[len(a)][len(b)-1]):
			out = append(out, Line{'-', a[0]})
			a = a[1:]
		default:
			out = append(out, Line{'+', b[0]})
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

// Patch returns a patch of a file in the unified format, with the whole file in one hunk; empty for equal texts. Both texts
// get a line break at their end if they have none.
func Patch(name, before, after string) string {
	lines := Lines(withLastBreak(before), withLastBreak(after))
	if lines == nil {
		return ""
	}
	lines = lines[:len(lines)-1] // behind the last line break
	var was, is int
	var b strings.Builder
	for _, l := range lines {
		b.WriteByte(l.Mark)
		b.WriteString(l.Text + "\n")
		if l.Mark != '+' {
			was++
		}
		if l.Mark != '-' {
			is++
		}
	}
	return fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -%s +%s @@\n%s", name, name, span(was), span(is), b.String())
}

// span returns where a hunk is that has all lines of a file.
func span(lines int) string { return fmt.Sprintf("%d,%d", min(lines, 1), lines) }

// withLastBreak adds a line break to the end of a text if it has none. An empty text stays empty.
func withLastBreak(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
