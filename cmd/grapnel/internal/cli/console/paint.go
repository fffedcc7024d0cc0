package console

import (
	"strings"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// Marks surround a word that gets a colour while its text is sanitized. They are characters of Unicode's private use
// area. If a text already contains such characters, they can only add colours.
const (
	markEnd    = '\ue000'
	MarkGood   = '\ue001'
	MarkBad    = '\ue002'
	MarkDoubt  = '\ue003'
	MarkChange = '\ue004'
	MarkFaint  = '\ue005'
	MarkBold   = '\ue006'
)

// MarkText marks a text for a colour; not for zero.
func MarkText(text string, as rune) string {
	if as == 0 {
		return text
	}
	return string(as) + text + string(markEnd)
}

func isMark(r rune) bool { return r >= markEnd && r <= MarkBold }

// MarkVerdict marks a word for the colour of a decision.
func MarkVerdict(word, as string) string {
	switch as {
	case "deny", "stop", "withhold", "reject":
		return MarkText(word, MarkBad)
	case "failed", "ask":
		return MarkText(word, MarkDoubt)
	case "rewrite", "mock", "replace", "continue":
		return MarkText(word, MarkChange)
	case "allow", "approve":
		return MarkText(word, MarkGood)
	}
	return MarkText(word, MarkFaint)
}

var (
	inColour = strings.NewReplacer(string(markEnd), "\x1b[0m", string(MarkGood), "\x1b[32m", string(MarkBad), "\x1b[31m",
		string(MarkDoubt), "\x1b[33m", string(MarkChange), "\x1b[36m", string(MarkFaint), "\x1b[2m", string(MarkBold), "\x1b[1m")
	inPlain = strings.NewReplacer(string(markEnd), "", string(MarkGood), "", string(MarkBad), "",
		string(MarkDoubt), "", string(MarkChange), "", string(MarkFaint), "", string(MarkBold), "")
)

// PaintText returns a sanitized text, and converts its marks to colours, or removes them.
func PaintText(text string, colours bool) string {
	if text = timeline.Clean(text); colours {
		return inColour.Replace(text)
	}
	return inPlain.Replace(text)
}
