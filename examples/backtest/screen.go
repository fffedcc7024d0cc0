package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// screen is where the program writes: a terminal, or something that is none.
type screen struct {
	io.Writer

	// width is how wide the terminal is now, in columns; zero when there is none.
	width  func() int
	colour bool
}

func screenOf(f *os.File) screen {
	s := screen{Writer: f, width: func() int { return terminalWidth(f) }}
	if os.Getenv("TERM") == "dumb" {
		s.width = func() int { return 0 }
	}
	s.colour = s.width() > 0 && os.Getenv("NO_COLOR") == ""
	return s
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (s screen) paint(style, text string) string {
	if !s.colour || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// paragraph writes a text in lines that fit, at most 100 columns wide; all but the first are indented.
func (s screen) paragraph(style, text, indent string) {
	limit := 100
	if width := s.width(); width > 0 {
		limit = min(limit, width)
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && columns(line)+1+columns(word) > limit {
			fmt.Fprintln(s, s.paint(style, line))
			line = indent + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(s, s.paint(style, line))
}

// columns is the width of a text on a terminal, for the letters that this program writes.
func columns(text string) int { return utf8.RuneCountInString(text) }

// pad fills a text up to a width: behind it, or in front of it when the width is negative.
func pad(text string, width int) string {
	fill := strings.Repeat(" ", max(0, max(width, -width)-columns(text)))
	if width < 0 {
		return fill + text
	}
	return text + fill
}

// number writes a number with commas: 26,389.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
