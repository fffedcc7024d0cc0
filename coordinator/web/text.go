package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/markup"
)

// The most bytes that pages show for a result or arguments, for a reason, and for a line in a list.
const (
	longText  = 8 << 10
	reasonLen = 2 << 10
	lineLen   = 200
)

// cutText returns text from outside in the form that people see: invisible characters are escapes, and the end of long text
// is missing.
func cutText(text string, most int) string {
	rest := 0
	if len(text) > most {
		end := most
		for end > 0 && text[end]&0xC0 == 0x80 { // inside a character
			end--
		}
		rest = len(text) - end
		text = text[:end]
	}
	text = invisible.Escape(strings.ReplaceAll(text, "\r\n", "\n"))
	if rest > 0 {
		text += fmt.Sprintf("… (%d more bytes)", rest)
	}
	return text
}

// firstLine returns the beginning of text on one line.
func firstLine(text string) string {
	long := len(text) > 4*lineLen
	if long {
		text = text[:4*lineLen]
	}
	short := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if len(short) > lineLen {
		short, long = short[:lineLen], true
	}
	if long {
		return invisible.Escape(string(short)) + "…"
	}
	return invisible.Escape(string(short))
}

// formatDuration returns a duration as "grapnel runs show" does.
func formatDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return d.Round(time.Second).String()
}

// formatAge returns the time since an event, in words. page.js repeats it while the page is open.
func formatAge(d time.Duration) string {
	switch {
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// formatLeft returns the time until a deadline, in words.
func formatLeft(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// formatWhen returns a time element with the age of an event.
func formatWhen(at, now time.Time) markup.HTML {
	var p markup.Page
	p.Put(`<time datetime="%s" title="%s">%s</time>`, at.UTC().Format(time.RFC3339), at.UTC().Format("2006-01-02 15:04:05 UTC"), formatAge(now.Sub(at)))
	return markup.HTML(p.String())
}

// formatTokens returns a number of tokens, in thousands when it is large.
func formatTokens(n int64) string {
	if n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + "k"
}

// countOf returns a number with a noun. The plural is with an s unless another one is given.
func countOf(n int, noun string, plural ...string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + append(plural, noun+"s")[0]
}
