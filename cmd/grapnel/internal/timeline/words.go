package timeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// describeArguments returns the arguments of a call for a reader: first its command or path, then the others
// with their names.
func describeArguments(c agent.ToolCall) string {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Arguments), &in) != nil {
		return OneLine(c.Arguments)
	}
	var out []string
	for _, name := range []string{"command", "path", "pattern", "query", "url"} {
		if text, ok := textOf(in[name]); ok {
			out = append(out, OneLine(text))
			delete(in, name)
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value := string(in[name])
		if text, ok := textOf(in[name]); ok {
			value = strconv.Quote(shortenText(OneLine(text), 32))
		}
		out = append(out, OneLine(name)+"="+shortenText(OneLine(value), 40))
	}
	return strings.Join(out, " ")
}

func textOf(raw json.RawMessage) (string, bool) {
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil && len(raw) > 0 && string(raw) != "null"
}

// FormatDuration returns a duration in a readable form.
func FormatDuration(d time.Duration) string {
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

// formatUsage returns the tokens and the cost of model calls; empty when they are unknown.
func formatUsage(u agent.Usage) string {
	if u.Tokens() == 0 {
		return ""
	}
	in := groupDigits(u.InputTokens) + " in"
	if u.CacheReadTokens > 0 {
		in += " (" + groupDigits(u.CacheReadTokens) + " cached)"
	}
	cost := "cost unknown"
	if dollars, ok := u.Cost.Get(); ok {
		cost = formatDollars(dollars)
	}
	return strings.Join([]string{in, groupDigits(u.OutputTokens) + " out", cost}, " · ")
}

func formatDollars(dollars float64) string {
	if dollars != 0 && dollars < 0.01 {
		return "$" + strconv.FormatFloat(dollars, 'f', 4, 64)
	}
	return "$" + strconv.FormatFloat(dollars, 'f', 2, 64)
}

// groupDigits returns a number with commas between groups of three digits.
func groupDigits(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural returns a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
