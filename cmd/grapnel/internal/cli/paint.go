package cli

import (
	"strings"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/timeline"
)

// Marks surround a word that gets a colour while its text is sanitized. They are characters of Unicode's private use
// area. If a text already contains such characters, they can only add colours.
const (
	markEnd    = '\ue000'
	markGood   = '\ue001'
	markBad    = '\ue002'
	markDoubt  = '\ue003'
	markChange = '\ue004'
	markFaint  = '\ue005'
	markBold   = '\ue006'
)

func markText(text string, as rune) string { return string(as) + text + string(markEnd) }

// markVerdict marks a word for the colour of a decision.
func markVerdict(word, as string) string {
	switch as {
	case "deny", "stop", "withhold", "reject":
		return markText(word, markBad)
	case "failed", "ask":
		return markText(word, markDoubt)
	case "rewrite", "mock", "replace", "continue":
		return markText(word, markChange)
	case "allow", "approve":
		return markText(word, markGood)
	}
	return markText(word, markFaint)
}

var (
	inColour = strings.NewReplacer(string(markEnd), "\x1b[0m", string(markGood), "\x1b[32m", string(markBad), "\x1b[31m",
		string(markDoubt), "\x1b[33m", string(markChange), "\x1b[36m", string(markFaint), "\x1b[2m", string(markBold), "\x1b[1m")
	inPlain = strings.NewReplacer(string(markEnd), "", string(markGood), "", string(markBad), "",
		string(markDoubt), "", string(markChange), "", string(markFaint), "", string(markBold), "")
)

// paintText returns a sanitized text, and converts its marks to colours, or removes them.
func paintText(text string, colours bool) string {
	if text = timeline.Clean(text); colours {
		return inColour.Replace(text)
	}
	return inPlain.Replace(text)
}
