package backtest

import (
	"strings"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// line returns text cleaned, on one line and shortened to a number of characters.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(invisible.Clean(text)), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
