package timeline

import (
	"strings"

	"github.com/grapnel-go/grapnel/internal/invisible"
)

// Clean makes a text safe to show on a terminal, as invisible.Clean does.
func Clean(text string) string { return invisible.Clean(text) }

// OneLine returns a sanitized text on one line.
func OneLine(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }
