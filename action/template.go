package action

import (
	"encoding/json"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// fillValue returns v with the names in its strings expanded. It does not expand names of members.
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

// fillJSON returns v as JSON, with r's values in its strings. For nil it returns the request itself.
func (r *Request) fillJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return r.encodeForAction()
	}
	plain, err := plainJSON(v)
	if err != nil {
		return nil, err
	}
	text, err := strictjson.Marshal(fillValue(plain, r.lookup))
	if err != nil {
		return nil, fmt.Errorf("encoding as JSON: %w", err) // a value that is not UTF-8
	}
	return json.RawMessage(text), nil
}

// plainJSON returns v converted to maps, slices, strings, bools and numbers that keep their digits.
func plainJSON(v any) (any, error) {
	text, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding as JSON: %w", err)
	}
	var plain any
	if err := strictjson.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("encoding as JSON: %w", err)
	}
	return plain, nil
}

// mapOf returns m as an any. It returns nil for a nil map.
func mapOf(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// body checks that v can be encoded as JSON.
func (p *problems) body(field string, v any) {
	if _, err := plainJSON(v); err != nil {
		p.say(field, "%v", err)
	}
}

func (p *problems) size(field string, n int) {
	if n < 0 || n > 64<<20 {
		p.say(field, "%d bytes is out of range: expected 0 (the default) to 64 MiB", n)
	}
}
