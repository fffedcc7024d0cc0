package condition

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// decodeObject reads a JSON object into a map whose values are CEL values already, so that looking one up costs nothing.
// The empty text is the empty object.
func decodeObject(text string) (map[string]any, error) {
	if text == "" {
		return map[string]any{}, nil
	}
	if err := strictjson.CheckObject(text); err != nil {
		return nil, err
	}
	r := reader{text: text}
	r.space()
	return r.members(), nil
}

// reader reads JSON that was checked. Should it not be, values come out wrong, and nothing worse.
type reader struct {
	text string
	at   int
}

// next is the byte that comes next, zero at the end.
func (r *reader) next() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) space() {
	for c := r.next(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = r.next() {
		r.at++
	}
}

// step goes past a byte and the space behind it.
func (r *reader) step() {
	r.at++
	r.space()
}

func (r *reader) value() ref.Val {
	switch r.next() {
	case '{':
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, r.members())
	case '[':
		return r.list()
	case '"':
		return types.String(r.string())
	}
	end := strings.IndexAny(r.text[r.at:], " \t\r\n,]}")
	if end < 0 {
		end = len(r.text) - r.at
	}
	word := r.text[r.at : r.at+end]
	r.at += end
	switch word {
	case "true":
		return types.True
	case "false":
		return types.False
	case "null":
		return types.NullValue
	}
	return numberOf(word)
}

func (r *reader) members() map[string]any {
	out := map[string]any{}
	for r.step(); r.next() == '"'; {
		name := r.string()
		r.space()
		r.step() // the colon
		out[name] = r.value()
		if r.space(); r.next() != ',' {
			break
		}
		r.step()
	}
	r.at++
	return out
}

func (r *reader) list() ref.Val {
	var out []ref.Val
	for r.step(); r.at < len(r.text) && r.next() != ']'; {
		out = append(out, r.value())
		if r.space(); r.next() != ',' {
			break
		}
		r.step()
	}
	r.at++
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

func (r *reader) string() string {
	from := r.at
	for r.at++; r.at < len(r.text) && r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at = min(r.at+1, len(r.text))
	text, _ := strictjson.Unquote(r.text[from:r.at])
	return text
}

// valueOf is a Go value, as JSON and YAML give them, as a CEL value. One that conditions cannot work with is an error
// value: whoever touches it fails.
func valueOf(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case ref.Val:
		return v
	case bool:
		return types.Bool(v)
	case string:
		return types.String(v)
	case json.Number:
		return numberOf(string(v))
	case float64:
		return types.Double(v)
	case int:
		return types.Int(v)
	case int64:
		return types.Int(v)
	case uint64:
		if v <= math.MaxInt64 {
			return types.Int(v)
		}
		return types.Uint(v)
	case time.Time:
		return types.Timestamp{Time: v}
	case time.Duration:
		return types.Duration{Duration: v}
	case []any:
		out := make([]ref.Val, len(v))
		for i, element := range v {
			out[i] = valueOf(element)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = valueOf(member)
		}
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, out)
	}
	return otherValueOf(v)
}

// otherValueOf reads any other Go value by way of its JSON.
func otherValueOf(v any) ref.Val {
	text, err := strictjson.Marshal(map[string]any{"v": v})
	if err != nil {
		return types.NewErr("a %T is no value for conditions: %v", v, err)
	}
	members, err := decodeObject(text)
	if err != nil {
		return types.NewErr("a %T is no value for conditions: %v", v, err)
	}
	return members["v"].(ref.Val) //nolint:forcetypeassert // decodeObject makes nothing else, and the member was written above
}

// exact is the largest whole number up to which a double holds every whole number.
const exact = 1 << 53

// numberOf is a JSON number. Whole numbers keep their digits: they are an int, or a uint beyond what an int holds.
// Others are doubles. What would lose digits that count is an error value.
func numberOf(text string) ref.Val {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n)
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return types.Uint(n)
		}
		return types.WrapErr(fmt.Errorf("the number %s has more digits than conditions can count with", shortened(text)))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) >= exact {
		return types.WrapErr(fmt.Errorf("the number %s is larger than conditions can hold with all its digits", shortened(text)))
	}
	return types.Double(f)
}
