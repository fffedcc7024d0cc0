package yamlfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/near"
)

// Unknown returns a message for an unknown name, with the most similar known name and all known names.
func Unknown(what, name string, known []string) string {
	text := fmt.Sprintf("unknown %s %q", what, name)
	if meant, ok := near.Name(name, known); ok {
		text += fmt.Sprintf(" (did you mean %q?)", meant)
	}
	return text + "; known: " + OneOf(known)
}

// OneOf returns the quoted names, sorted and separated by commas, or "none".
func OneOf(known []string) string {
	if len(known) == 0 {
		return "none"
	}
	known = slices.Sorted(slices.Values(known))
	return strings.Join(lo.Map(known, func(name string, _ int) string { return strconv.Quote(name) }), ", ")
}
