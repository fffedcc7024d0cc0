package rules

import (
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Args are one call's arguments: each name exactly as the model wrote it, each value as raw JSON.
type Args map[string]json.RawMessage

// ParseArgs reads an argument text. It returns an error when the text is not one JSON object, gives a name twice or has
// two names that differ only in case. It is then unknown which value the tool would take. A hook needs no ParseArgs,
// because its call was read under the same rules before: decode it into Args.
func ParseArgs(text string) (Args, error) {
	if err := strictjson.CheckObject(text); err != nil {
		return nil, fmt.Errorf("parse arguments: %w", err)
	}
	var args Args
	if err := strictjson.Unmarshal(text, &args); err != nil {
		return nil, fmt.Errorf("parse arguments: %w", err)
	}
	return args, nil
}

// Texts returns an argument as a list of texts: none when it is absent or null, one when it is a string, all when it is
// a list of strings. Models send a bare string where a list is asked for, and tools take it. The second value is false
// when the argument is anything else.
func (a Args) Texts(name string) ([]string, bool) {
	raw, given := a[name]
	if !given || string(raw) == "null" {
		return nil, true
	}
	var one string
	if strictjson.Unmarshal(raw, &one) == nil {
		return []string{one}, true
	}
	var many []*string // a null in the list is not a text
	if strictjson.Unmarshal(raw, &many) != nil {
		return nil, false
	}
	texts := make([]string, len(many))
	for i, text := range many {
		if text == nil {
			return nil, false
		}
		texts[i] = *text
	}
	return texts, true
}
