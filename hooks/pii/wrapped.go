package pii

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// reach is how many bytes before and after a line break can belong to one value.
const reach = 320

// unwrapped lists the kinds that a line break never splits. Their numbers have no check digits, so two lines that end
// and begin with digits would often form one.
var unwrapped = []string{"phone", "ip", "us_ssn"}

// replaceOverBreaks replaces values that one line break splits within a word or number. It leaves a value that is
// complete in its own line to replaceVisible, so the words in the next line stay.
func (f *Filter) replaceOverBreaks(text string, from int, counts Counts) string {
	for end := len(text); end > from; {
		at := strings.LastIndexFunc(text[from:end], invisible.IsBreak)
		if at < 0 {
			break
		}
		at += from
		end = at
		_, size := utf8.DecodeRuneInString(text[at:])
		before, after := strings.TrimSuffix(text[from:at], "\r"), text[at+size:]
		left, _ := utf8.DecodeLastRuneInString(before)
		right, _ := utf8.DecodeRuneInString(after)
		if !isAlnum(left) || !isAlnum(right) {
			continue
		}
		start := lineStart(text[:from+len(before)])
		stop := at + size + lineLength(after)
		lines := text[start:stop]
		if after := f.replaceSplitLines(lines, max(from-start, 0), counts); after != lines {
			text, end = text[:start]+after+text[stop:], start
		}
	}
	return text
}

// lineStart returns where a text's last line begins, or a position at most reach bytes before the end.
func lineStart(text string) int {
	start := strings.LastIndexFunc(text, invisible.IsBreak) + 1
	start = max(start, len(text)-reach)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return start
}

// lineLength returns the length of a text's first line, or a number up to reach.
func lineLength(text string) int {
	if at := strings.IndexFunc(text, invisible.IsBreak); at >= 0 {
		text = text[:at]
	}
	end := min(reach, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// replaceSplitLines replaces the values that the break between two lines splits.
func (f *Filter) replaceSplitLines(lines string, from int, counts Counts) string {
	if !f.own && !strings.ContainsAny(lines, "@0123456789") {
		return lines
	}
	return invisible.ReplaceOverBreaks(lines, func(joined invisible.Text) []invisible.Match {
		split := f.findSplit(joined, from, counts, unwrapped...)
		if len(split) == 0 {
			return nil
		}
		whole := f.finder.find(lines, func(found) bool { return false })
		return lo.Filter(split, func(m invisible.Match, _ int) bool {
			start, end := joined.Span(m.From, m.To)
			return strings.ContainsFunc(lines[start:end], invisible.IsBreak) &&
				!slices.ContainsFunc(whole, func(p found) bool { return p.from < end && start < p.to })
		})
	})
}
