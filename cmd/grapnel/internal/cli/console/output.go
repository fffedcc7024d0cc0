package console

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// WriteWrapped writes a text after the beginning of a line. At a terminal, it breaks lines between words.
func WriteWrapped(out *os.File, begin, next, text string) {
	text = timeline.Clean(text)
	if !IsTerminal(out) {
		fmt.Fprintln(out, begin+text)
		return
	}
	for _, line := range timeline.Wrap(text, WidthOf(out)-len(begin)) {
		fmt.Fprintln(out, begin+line)
		begin = next
	}
}

// ColumnsOf returns the width of a terminal in columns; zero for other files.
func ColumnsOf(f *os.File) int {
	if !IsTerminal(f) {
		return 0
	}
	return WidthOf(f)
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Shorten returns the beginning of a text.
func Shorten(text string, most int) string {
	if all := []rune(text); len(all) > most {
		return string(all[:most-1]) + "…"
	}
	return text
}

// WidthOf returns the width of a terminal in columns.
func WidthOf(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// CheckColour returns an error for an unknown value of --color.
func CheckColour(when string) error {
	switch when {
	case "auto", "always", "never":
		return nil
	}
	return fmt.Errorf("--color is %q: it must be auto, always or never", when)
}

// WantsColour reports whether the output to f has colours.
func WantsColour(f *os.File, when string) bool {
	switch when {
	case "always":
		return true
	case "never":
		return false
	}
	return IsTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// ShellWord quotes a word for a shell.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@%=,") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
