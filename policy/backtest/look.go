package backtest

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"
)

// Look configures a text layout.
type Look struct {
	// Width is the number of columns. Zero means no limit.
	Width int
	// All also shows the rules that were never asked.
	All bool
	// Colour adds terminal colours.
	Colour bool
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (l Look) paint(style, text string) string {
	if !l.Colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// paragraph writes text in lines of at most l.Width and at most 100 columns. It indents all lines except the first.
func (l Look) paragraph(w io.Writer, style, text, indent string) {
	limit := 100
	if l.Width > 0 {
		limit = min(limit, l.Width)
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && countColumns(line)+1+countColumns(word) > limit {
			fmt.Fprintln(w, l.paint(style, line))
			line = indent + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, l.paint(style, line))
}

// cell is styled text.
type cell struct{ text, style string }

// table contains rows of cells under column names. A row's first cell is its name.
type table struct {
	names []string
	rows  [][]cell
	// keep lists the columns to show even if all their cells are zeros and dashes.
	keep map[string]bool
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// write writes the table, or a list if the table is wider than the terminal.
func (t *table) write(w io.Writer, l Look) {
	if len(t.rows) == 0 {
		return
	}
	var shown, widths []int
	for i, name := range t.names {
		width, empty := countColumns(name), true
		for _, row := range t.rows {
			width = max(width, countColumns(row[i].text))
			empty = empty && (row[i].text == "0" || row[i].text == "–" || row[i].text == "")
		}
		if i == 0 || !empty || t.keep[name] {
			shown, widths = append(shown, i), append(widths, width)
		}
	}
	if all := lo.Sum(widths) + 2*(len(shown)-1); l.Width > 0 && all > l.Width {
		t.list(w, l, shown)
		return
	}
	line := func(cells []cell, style string) {
		var text strings.Builder
		for n, i := range shown {
			filled := padText(cells[i].text, lo.Ternary(i == 0 || cells[i].style == "left", widths[n], -widths[n]))
			if n == len(shown)-1 {
				filled = strings.TrimRight(filled, " ")
			}
			text.WriteString(lo.Ternary(n == 0, "", "  ") + l.paint(lo.CoalesceOrEmpty(style, strings.TrimPrefix(cells[i].style, "left")), filled))
		}
		fmt.Fprintln(w, strings.TrimRight(text.String(), " "))
	}
	line(lo.Map(t.names, func(n string, i int) cell {
		return cell{n, lo.Ternary(len(t.rows) > 0, strings.TrimSuffix(t.rows[0][i].style, red), "")}
	}), bold)
	for _, row := range t.rows {
		line(row, "")
	}
}

// list writes the table as a list, for a narrow terminal.
func (t *table) list(w io.Writer, l Look, shown []int) {
	for _, row := range t.rows {
		fmt.Fprintln(w, l.paint(bold, row[0].text))
		var items []string
		for _, i := range shown[1:] {
			items = append(items, t.names[i]+" "+row[i].text)
		}
		l.paragraph(w, "", "  "+strings.Join(items, ", "), "  ")
	}
}

// countColumns returns the width of text on a terminal. It is correct only for the characters that this package
// writes.
func countColumns(text string) int { return utf8.RuneCountInString(text) }

// padText pads text to a width: on the right, or on the left if the width is negative.
func padText(text string, width int) string {
	fill := strings.Repeat(" ", max(0, max(width, -width)-countColumns(text)))
	if width < 0 {
		return fill + text
	}
	return text + fill
}

// formatNumber writes a number with commas: 26,389.
func formatNumber(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func countNoun(n int, what string) string {
	return formatNumber(n) + " " + what + lo.Ternary(n == 1, "", "s")
}

// percent returns a share in percent with one decimal. It returns 0.0 or 100.0 only if the share is exactly zero or
// one.
func (s Share) percent() string {
	if s.Of == 0 {
		return "–"
	}
	p := 100 * float64(s.Count) / float64(s.Of)
	switch {
	case s.Count > 0 && p < 0.1:
		return "< 0.1 %"
	case s.Count < s.Of && p > 99.9:
		return "> 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", p)
}

func (s Share) String() string {
	if s.Of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d/%d", s.Count, s.Of)
}
