package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// ViewLine is a line of a view. Its colours are marks: see MarkText.
type ViewLine string

// Fit returns the line with at most width columns.
func (l ViewLine) Fit(width int) ViewLine {
	if timeline.Width(l.Paint(false)) <= width {
		return l
	}
	var kept strings.Builder
	left, marked := max(width-1, 0), false
	for _, r := range l.flat() {
		if isMark(r) {
			marked = r != markEnd
		} else if left -= timeline.Width(string(r)); left < 0 {
			break
		}
		kept.WriteRune(r)
	}
	out := strings.TrimRight(kept.String(), " ") + "…"
	if marked {
		out += string(markEnd)
	}
	return ViewLine(out)
}

// Paint returns the line as text for a terminal.
func (l ViewLine) Paint(colours bool) string {
	return strings.TrimRight(PaintText(l.flat(), colours), " ")
}

// flat returns the line without line ends.
func (l ViewLine) flat() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, string(l))
}

// WrapLine returns a text as lines of at most width columns. Further lines are indented.
func WrapLine(mark rune, text string, width int) (lines []ViewLine) {
	line := text[:len(text)-len(strings.TrimLeft(text, " "))]
	indent, empty := line+"  ", true
	for word := range strings.FieldsSeq(text) {
		if !empty && timeline.Width(line)+1+timeline.Width(word) > width {
			lines = append(lines, ViewLine(MarkText(line, mark)))
			line, empty = indent, true
		}
		line, empty = line+lo.Ternary(empty, "", " ")+word, false
	}
	return append(lines, ViewLine(MarkText(line, mark)))
}

// WholeSeconds returns the time for which something has been running.
func WholeSeconds(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return ShortTime(d)
}

// ShortTime returns a duration in at most two units.
func ShortTime(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}
