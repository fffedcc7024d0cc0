package timeline

import (
	"io"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// paper writes wrapped text.
type paper struct {
	out    io.Writer
	width  func() int
	colour bool

	open   bool // the last line is not empty
	indent int  // the indent of wrapped lines
	column int
	spaces int             // spaces before the word, not yet written
	word   strings.Builder // the last word, not yet written
	style  style
}

// style is the colour and weight of a text on terminals with colours.
type style = lipgloss.Style

var (
	plain  = lipgloss.NewStyle()
	bold   = plain.Bold(true)
	dim    = plain.Faint(true)
	red    = plain.Foreground(lipgloss.Red)
	green  = plain.Foreground(lipgloss.Green)
	yellow = plain.Foreground(lipgloss.Yellow)
	cyan   = plain.Foreground(lipgloss.Cyan)
)

func (p *paper) columns() int { return min(max(p.width(), 30), 120) }

func (p *paper) paint(s style, text string) string {
	if !p.colour || text == "" {
		return text
	}
	return s.Render(text)
}

func (p *paper) raw(text string) { _, _ = io.WriteString(p.out, text) } // a run continues without a reader of its timeline

// line writes a complete line: a head, and a text that is wrapped beside it.
func (p *paper) line(indent int, headStyle style, head string, textStyle style, text string) {
	p.end()
	pad := strings.Repeat(" ", indent)
	beside := indent
	if head != "" {
		p.raw(pad + p.paint(headStyle, head))
		beside += lipgloss.Width(head) + 1
		pad = ""
		if text != "" {
			p.raw(" ")
		}
	}
	for i, line := range wrapText(text, p.columns()-beside) {
		if i > 0 {
			pad = "\n" + strings.Repeat(" ", beside)
		}
		p.raw(strings.TrimRight(pad+p.paint(textStyle, line), " "))
	}
	p.raw("\n")
}

// begin begins a text that arrives in pieces, beside a head.
func (p *paper) begin(s style, head string) {
	p.end()
	p.raw(p.paint(s, head))
	p.indent = lipgloss.Width(head) + 2
	p.open, p.column = true, p.indent-2
	p.spaces = 2
}

// say adds a piece of text, and sanitizes it.
func (p *paper) say(s style, piece string) {
	p.style = s
	for _, r := range Clean(piece) {
		switch {
		case r == '\n':
			p.flush()
			p.raw("\n")
			p.open, p.column, p.spaces = false, 0, p.indent
		case r == ' ':
			p.flush()
			p.spaces++
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul): // a line may end anywhere
			p.flush()
			p.word.WriteRune(r)
			p.flush()
		default:
			p.word.WriteRune(r)
			if p.indent+lipgloss.Width(p.word.String()) >= p.columns() {
				p.flush()
			}
		}
	}
}

// flush writes the word, on a new line if it does not fit.
func (p *paper) flush() {
	word := p.word.String()
	if word == "" {
		return
	}
	p.word.Reset()
	width := lipgloss.Width(word)
	if p.column+p.spaces+width > p.columns() && p.column > p.indent {
		p.raw("\n")
		p.column, p.spaces = 0, p.indent
	}
	p.raw(strings.Repeat(" ", p.spaces) + p.paint(p.style, word))
	p.column, p.spaces, p.open = p.column+p.spaces+width, 0, true
}

// end ends the last line unless it is empty.
func (p *paper) end() {
	p.flush()
	if p.open {
		p.raw("\n")
	}
	p.open, p.column, p.spaces = false, 0, p.indent // later text continues below
}

// gap ends the last line and adds an empty one.
func (p *paper) gap() {
	p.end()
	p.raw("\n")
}

// wrapText breaks a text into lines of at most width columns, at spaces if possible. Line ends in the text
// stay.
func wrapText(text string, width int) []string {
	if text == "" {
		return nil
	}
	var b strings.Builder
	p := paper{out: &b, width: func() int { return max(width, 10) }, colour: false}
	p.say(plain, text)
	p.flush()
	return strings.Split(b.String(), "\n")
}

// Wrap breaks a text into lines of at most width columns, between words.
func Wrap(text string, width int) []string { return wrapText(text, width) }

// Width returns the number of columns of a text at a terminal.
func Width(text string) int { return lipgloss.Width(text) }

// shortenText returns a text of at most width columns.
func shortenText(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		w := lipgloss.Width(string(r))
		if used+w > width-1 {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return strings.TrimRight(b.String(), " ") + "…"
}
