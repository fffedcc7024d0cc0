package approval

import (
	"strings"

	"github.com/grapnel-go/grapnel/internal/linediff"
)

// Diff returns how arguments differ, line by line in the form that people see: "- " before a line of before, "+ " before a
// line of after, and two spaces before a common line. It returns an empty text when they do not differ.
func Diff(before, after Arguments) string {
	var b strings.Builder
	for _, line := range linediff.Lines(before.Text(), after.Text()) {
		b.WriteByte(line.Mark)
		b.WriteByte(' ')
		b.WriteString(line.Text)
		b.WriteByte('\n')
	}
	return b.String()
}
