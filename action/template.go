package action

import (
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// fillValue returns a value with what expand makes of each string in it. Names of members stay as they are.
func fillValue(v any, value func(name string) (string, bool)) any {
	switch v := v.(type) {
	case string:
		return expandNames(v, value)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fillValue(e, value)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = fillValue(e, value)
		}
		return out
	}
	return v
}

// fillJSON returns a value as JSON, with the values of r in its strings; the request itself for none.
func (r *Request) fillJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return r.json()
	}
	plain, err := plainJSON(v)
	if err != nil {
		return nil, err
	}
	text, err := strictjson.Marshal(fillValue(plain, r.lookup))
	if err != nil {
		return nil, fmt.Errorf("writing it as JSON: %w", err) // a value that is no UTF-8
	}
	return json.RawMessage(text), nil
}

// plainJSON returns v made of maps, slices, strings, bools and numbers that keep their digits.
func plainJSON(v any) (any, error) {
	text, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing it as JSON: %w", err)
	}
	var plain any
	if err := strictjson.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("writing it as JSON: %w", err)
	}
	return plain, nil
}

// mapOf returns m as a value; nil for none.
func mapOf(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// body checks something that is to be JSON.
func (p *problems) body(field string, v any) {
	if _, err := plainJSON(v); err != nil {
		p.say(field, "it cannot be JSON: %v", err)
	}
}

// size checks a number of bytes.
func (p *problems) size(field string, n int) {
	if n < 0 || n > 64<<20 {
		p.say(field, "%d bytes: it must be from 0, for the default, to 64 MiB", n)
	}
}
