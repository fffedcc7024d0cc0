package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// Span is a part of a line with one colour: a mark of paint.go, or zero for none.
type Span struct {
	text string
	mark rune
}

// ViewLine is a line of a view.
type ViewLine []Span

// NewSpan returns a text without line ends.
func NewSpan(text string, mark rune) Span {
	return Span{strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text), mark}
}

// Fit returns the line with at most width columns.
func (l ViewLine) Fit(width int) ViewLine {
	total := 0
	for _, s := range l {
		total += timeline.Width(s.text)
	}
	if total <= width {
		return l
	}
	var out ViewLine
	left := max(width-1, 0)
	for _, s := range l {
		var kept strings.Builder
		for _, r := range s.text {
			w := timeline.Width(string(r))
			if w > left {
				return append(out, Span{strings.TrimRight(kept.String(), " ") + "…", s.mark})
			}
			left -= w
			kept.WriteRune(r)
		}
		out = append(out, Span{kept.String(), s.mark})
	}
	return out
}

// Paint returns the line as text for a terminal.
func (l ViewLine) Paint(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		if s.mark == 0 {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(MarkText(s.text, s.mark))
	}
	return strings.TrimRight(PaintText(b.String(), colours), " ")
}

// WrapLine returns a text as lines of at most width columns. Further lines are indented.
func WrapLine(mark rune, text string, width int) (lines []ViewLine) {
	line := text[:len(text)-len(strings.TrimLeft(text, " "))]
	indent, empty := line+"  ", true
	for word := range strings.FieldsSeq(text) {
		if !empty && timeline.Width(line)+1+timeline.Width(word) > width {
			lines = append(lines, ViewLine{{line, mark}})
			line, empty = indent, true
		}
		line, empty = line+lo.Ternary(empty, "", " ")+word, false
	}
	return append(lines, ViewLine{{line, mark}})
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
