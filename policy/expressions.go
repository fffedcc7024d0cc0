package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/reserved"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// template is a text whose names are compiled for its point.
type template struct {
	text   text
	values map[string]*condition.Expression
}

// template reads a text with names.
func (l *loader) template(e *entry, key string) template {
	if !e.has(key) {
		return template{}
	}
	t := template{text: textOf(e.text(key))}
	if e.doc.language == nil {
		return t
	}
	for _, name := range t.text.placeholderNames() {
		if _, known := t.values[name]; known {
			continue
		}
		if t.values == nil {
			t.values = map[string]*condition.Expression{}
		}
		if value, ok := named(e.doc.language, name, e.point.Name); ok {
			t.values[name] = value
			continue
		}
		n := e.at(key)
		l.note(n.At(max(strings.Index(n.Raw(), "${"+name+"}"), 0)), "name", e.location().name(),
			"%s: unknown name %q at %s: it is left unchanged", key, name, e.point.Name)
	}
	return t
}

// named returns the expression for a dotted path. A step that is not a valid name in a condition, such as content-type
// or 0, becomes an index by text or position.
func named(language *condition.Language, path string, at hooks.PointName) (*condition.Expression, bool) {
	steps := strings.Split(path, ".")
	if lo.EveryBy(steps, identifier.MatchString) {
		if value, err := language.Expression(path, at); err == nil {
			return value, true
		}
	}
	var text strings.Builder
	text.WriteString(steps[0])
	for _, step := range steps[1:] {
		if _, err := strconv.Atoi(step); err == nil {
			text.WriteString("[" + step + "]")
			continue
		}
		fmt.Fprintf(&text, "[%q]", step)
	}
	value, err := language.Expression(text.String(), at)
	return value, err == nil
}

// in returns the text with an event's values. A name without a value stays as it is.
func (t template) in(ctx context.Context, in condition.Input) string {
	return t.text.with(func(name string) (string, bool) {
		value, known := t.values[name]
		if !known {
			return "", false
		}
		v, err := value.Value(ctx, in)
		if err != nil {
			return "", false
		}
		plain, err := plainOf(v)
		if err != nil {
			return "", false
		}
		return plainText(plain)
	})
}

// expressions reads a mapping of CEL expressions.
func (l *loader) expressions(e *entry, key string) map[string]*condition.Expression {
	if !e.has(key) || e.doc.language == nil {
		return nil
	}
	out := map[string]*condition.Expression{}
	for _, item := range e.at(key).Entries() {
		text := item.Value.Raw()
		if key == "metadata" && reserved.Holds(item.Key.Raw()) {
			item.Key.Wrong("%s: metadata %q: %s (rule: names)", e.what, item.Key.Raw(), reserved.Advice)
			continue
		}
		switch item.Value.Kind() {
		case yamlfile.TextNode, yamlfile.BoolNode, yamlfile.NumberNode:
		case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.ListNode, yamlfile.MappingNode:
			item.Value.Wrong("%s: expected an expression in CEL, got %s", key, item.Value)
			continue
		}
		expression, err := e.doc.language.Expression(text, e.point.Name)
		if err != nil {
			l.wrongCondition(item.Value, key, err)
			continue
		}
		out[item.Key.Raw()] = expression
	}
	return out
}

// wrongCondition reports the errors in a condition or an expression.
func (l *loader) wrongCondition(n yamlfile.Node, key string, err error) {
	wrong, ok := errors.AsType[condition.Errors](err)
	if !ok {
		n.Wrong("%s: %w", key, err)
		return
	}
	for _, e := range wrong {
		place := n.Place()
		if n.Kind() == yamlfile.TextNode {
			place = n.At(e.Offset)
		}
		place.Wrong("%s: %s (rule: conditions)", key, e.MessageWithHint())
	}
}

// plainOf converts a CEL value to a JSON value. Whole numbers keep their digits.
func plainOf(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return json.Number(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return json.Number(strconv.FormatUint(uint64(v), 10)), nil
	case types.Double:
		return float64(v), nil
	case types.Timestamp, types.Duration, types.Bytes:
		text := v.ConvertToType(types.StringType)
		if s, ok := text.(types.String); ok {
			return string(s), nil
		}
	case traits.Lister:
		out := []any{}
		for i := v.Iterator(); i.HasNext() == types.True; {
			item, err := plainOf(i.Next())
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	case traits.Mapper:
		out := map[string]any{}
		for i := v.Iterator(); i.HasNext() == types.True; {
			name := i.Next()
			text, ok := name.(types.String)
			if !ok {
				return nil, fmt.Errorf("a map with the key %v cannot be written as JSON: keys must be texts", name)
			}
			item, err := plainOf(v.Get(name))
			if err != nil {
				return nil, err
			}
			out[string(text)] = item
		}
		return out, nil
	case *types.Err:
		return nil, v
	}
	if n, ok := v.Value().(json.Number); ok {
		return n, nil
	}
	return nil, fmt.Errorf("a value of type %s cannot be written as JSON", v.Type().TypeName())
}
