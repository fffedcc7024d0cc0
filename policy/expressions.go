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
	"github.com/grapnel-go/grapnel/policy/internal/file"
)

// template is a text whose names are compiled for its point.
type template struct {
	text   text
	values map[string]*condition.Expression
}

// template compiles a text with names.
func (c *compiler) template(key string, n yamlfile.Node) template {
	source, ok := n.Text()
	t := template{text: textOf(source)}
	if !ok || c.doc.language == nil {
		return t
	}
	for _, name := range t.text.placeholderNames() {
		if _, known := t.values[name]; known {
			continue
		}
		if t.values == nil {
			t.values = map[string]*condition.Expression{}
		}
		if value, ok := named(c.doc.language, name, c.Point.Name); ok {
			t.values[name] = value
			continue
		}
		c.note(n.At(max(strings.Index(source, "${"+name+"}"), 0)), "name", c.name(),
			"%s: unknown name %q at %s: it is left unchanged", key, name, c.Point.Name)
	}
	return t
}

// named returns the expression for a dotted path. A step that is not a valid name in a condition, such as content-type
// or 0, becomes an index by text or position.
func named(language *condition.Language, path string, at hooks.PointName) (*condition.Expression, bool) {
	steps := strings.Split(path, ".")
	if lo.EveryBy(steps, file.Identifier.MatchString) {
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

// expressions compiles a mapping of CEL expressions.
func (c *compiler) expressions(key string, n yamlfile.Node) map[string]*condition.Expression {
	if n.Kind() == yamlfile.AbsentNode || c.doc.language == nil {
		return nil
	}
	out := map[string]*condition.Expression{}
	for _, item := range n.Entries() {
		text := item.Value.Raw()
		if key == "metadata" && reserved.Holds(item.Key.Raw()) {
			c.wrong(item.Key.Place(), "%s: metadata %q: %s (rule: names)", c.What, item.Key.Raw(), reserved.Advice)
			continue
		}
		switch item.Value.Kind() {
		case yamlfile.TextNode, yamlfile.BoolNode, yamlfile.NumberNode:
		case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.ListNode, yamlfile.MappingNode:
			c.wrong(item.Value.Place(), "%s: expected an expression in CEL, got %s", key, item.Value)
			continue
		}
		expression, err := c.doc.language.Expression(text, c.Point.Name)
		if err != nil {
			c.wrongCondition(item.Value, key, err)
			continue
		}
		out[item.Key.Raw()] = expression
	}
	return out
}

// wrongCondition reports the errors in a condition or an expression.
func (c *compiler) wrongCondition(n yamlfile.Node, key string, err error) {
	wrong, ok := errors.AsType[condition.Errors](err)
	if !ok {
		c.wrong(n.Place(), "%s: %w", key, err)
		return
	}
	for _, e := range wrong {
		place := n.Place()
		if n.Kind() == yamlfile.TextNode {
			place = n.At(e.Offset)
		}
		c.wrong(place, "%s: %s (rule: conditions)", key, e.MessageWithHint())
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
