package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// viewSpan is a part of a line with one colour: a mark of paint.go, or zero for none.
type viewSpan struct {
	text string
	mark rune
}

// viewLine is a line of a view.
type viewLine []viewSpan

// newSpan returns a text without line ends.
func newSpan(text string, mark rune) viewSpan {
	return viewSpan{strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text), mark}
}

// fit returns the line with at most width columns.
func (l viewLine) fit(width int) viewLine {
	total := 0
	for _, s := range l {
		total += timeline.Width(s.text)
	}
	if total <= width {
		return l
	}
	var out viewLine
	left := max(width-1, 0)
	for _, s := range l {
		var kept strings.Builder
		for _, r := range s.text {
			w := timeline.Width(string(r))
			if w > left {
				return append(out, viewSpan{strings.TrimRight(kept.String(), " ") + "…", s.mark})
			}
			left -= w
			kept.WriteRune(r)
		}
		out = append(out, viewSpan{kept.String(), s.mark})
	}
	return out
}

// paint returns the line as text for a terminal.
func (l viewLine) paint(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		if s.mark == 0 {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(markText(s.text, s.mark))
	}
	return strings.TrimRight(paintText(b.String(), colours), " ")
}

// wrapLine returns a text as lines of at most width columns. Further lines are indented.
func wrapLine(mark rune, text string, width int) (lines []viewLine) {
	line := text[:len(text)-len(strings.TrimLeft(text, " "))]
	indent, empty := line+"  ", true
	for word := range strings.FieldsSeq(text) {
		if !empty && timeline.Width(line)+1+timeline.Width(word) > width {
			lines = append(lines, viewLine{{line, mark}})
			line, empty = indent, true
		}
		line, empty = line+lo.Ternary(empty, "", " ")+word, false
	}
	return append(lines, viewLine{{line, mark}})
}

// wholeSeconds returns the time for which something has been running.
func wholeSeconds(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return shortTime(d)
}

// shortTime returns a duration in at most two units.
func shortTime(d time.Duration) string {
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

// plural returns a number with its noun.
func plural(n int, noun string) string {
	return fmt.Sprintf("%d %s%s", n, noun, lo.Ternary(n == 1, "", "s"))
}
