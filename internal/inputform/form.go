// Package inputform reads the JSON Schemas with which tools ask people for input, and checks the answers.
//
// A schema follows the restricted format of MCP elicitation: an object whose members are strings, numbers, booleans,
// and choices from a list. Schemas come from outside. Label and Hint return their text without invisible characters;
// programs show it as plain text.
package inputform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Limits for schemas and answers.
const (
	MaxSchemaBytes  = 32 << 10
	MaxContentBytes = 64 << 10

	maxFields    = 64
	maxOptions   = 256
	maxNameBytes = 128
	maxTextBytes = 2 << 10
)

// Kind is the kind of a field.
type Kind string

// The kinds of fields.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	Yes     Kind = "boolean"
	Choice  Kind = "choice"
	Choices Kind = "choices" // any number of options
)

// Form is a parsed schema: its fields, required ones first, then ordered by name.
type Form struct{ Fields []Field }

// Field is a member of the answer.
type Field struct {
	Name     string
	Kind     Kind
	Required bool
	// Options lists the options of a Choice or Choices field.
	Options []Option

	title, description, format string
	initial                    json.RawMessage
	rule                       rule
}

// Option is a value that a person can choose.
type Option struct{ Value, Label string }

// rule holds the limits for a value.
type rule struct {
	minLength, maxLength, minItems, maxItems *int
	minimum, maximum                         *float64
}

// Label returns the title of the field, or its name, as one line.
func (f Field) Label() string { return OneLine(cmp.Or(f.title, f.Name)) }

// Hint returns the field's description and limits as one line; it may be empty.
func (f Field) Hint() string {
	parts := []string{OneLine(f.description), f.format, f.limits()}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

func (f Field) limits() string {
	between := func(what string, low, high any) string {
		switch {
		case low != nil && high != nil:
			return fmt.Sprintf("%v to %v%s", low, high, what)
		case low != nil:
			return fmt.Sprintf("at least %v%s", low, what)
		case high != nil:
			return fmt.Sprintf("at most %v%s", high, what)
		}
		return ""
	}
	r := f.rule
	switch f.Kind {
	case Text:
		return between(" characters", orNil(r.minLength), orNil(r.maxLength))
	case Number, Integer:
		return between("", orNil(r.minimum), orNil(r.maximum))
	case Choices:
		return between(" options", orNil(r.minItems), orNil(r.maxItems))
	case Yes, Choice:
	}
	return ""
}

func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// Initial returns the field's valid default values as text; none if the schema has no valid default.
func (f Field) Initial() []string {
	if f.initial == nil || f.problemOf(f.initial) != "" {
		return nil
	}
	var list []string
	if f.Kind == Choices && json.Unmarshal(f.initial, &list) == nil {
		return list
	}
	var text string
	if json.Unmarshal(f.initial, &text) == nil {
		return []string{text}
	}
	return []string{string(f.initial)}
}

// schemaJSON is the root of a schema.
type schemaJSON struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// propertyJSON is a member's schema. Keywords that are not listed are only descriptive.
type propertyJSON struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	Default     json.RawMessage `json:"default"`
	MinLength   *int            `json:"minLength"`
	MaxLength   *int            `json:"maxLength"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
	MinItems    *int            `json:"minItems"`
	MaxItems    *int            `json:"maxItems"`
	choicesJSON
	Items *choicesJSON `json:"items"`

	// Keywords that the protocol does not allow.
	Properties json.RawMessage `json:"properties"`
	Ref        json.RawMessage `json:"$ref"`
	AllOf      json.RawMessage `json:"allOf"`
	Not        json.RawMessage `json:"not"`
	If         json.RawMessage `json:"if"`
}

// choicesJSON is a list of options, in one of the protocol's formats.
type choicesJSON struct {
	Enum      []string     `json:"enum"`
	EnumNames []string     `json:"enumNames"`
	OneOf     []optionJSON `json:"oneOf"`
	AnyOf     []optionJSON `json:"anyOf"`
}

type optionJSON struct {
	Const *string `json:"const"`
	Title string  `json:"title"`
}

// Parse reads a schema.
func Parse(schema string) (Form, error) {
	if len(schema) > MaxSchemaBytes {
		return Form{}, fmt.Errorf("the schema has %d bytes: at most %d are read", len(schema), MaxSchemaBytes)
	}
	if err := strictjson.CheckObject(schema); err != nil {
		return Form{}, fmt.Errorf("the schema is invalid: %w", err)
	}
	var root schemaJSON
	if err := json.Unmarshal([]byte(schema), &root); err != nil {
		return Form{}, fmt.Errorf("the schema is invalid: %w", err)
	}
	switch {
	case root.Type != "object" && root.Type != "":
		return Form{}, fmt.Errorf("the schema is of type %q: it must be an object", shorten(root.Type))
	case len(root.Properties) > maxFields:
		return Form{}, fmt.Errorf("the schema has %d members: at most %d are shown", len(root.Properties), maxFields)
	}
	for _, name := range root.Required {
		if _, ok := root.Properties[name]; !ok {
			return Form{}, fmt.Errorf("the schema requires %q, which it does not describe", shorten(name))
		}
	}
	var form Form
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		field, err := parseField(name, root.Properties[name])
		if err != nil {
			return Form{}, fmt.Errorf("the schema of %q: %w", shorten(name), err)
		}
		field.Required = slices.Contains(root.Required, name)
		form.Fields = append(form.Fields, field)
	}
	slices.SortStableFunc(form.Fields, func(a, b Field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return form, nil
}

func parseField(name string, schema json.RawMessage) (Field, error) {
	var p propertyJSON
	if err := json.Unmarshal(schema, &p); err != nil {
		return Field{}, err
	}
	f := Field{
		Name: name, title: p.Title, description: p.Description, format: OneLine(p.Format), initial: p.Default,
		rule: rule{p.MinLength, p.MaxLength, p.MinItems, p.MaxItems, p.Minimum, p.Maximum},
	}
	listed := p.choicesJSON
	switch {
	case !isPlain(name, maxNameBytes):
		return f, errors.New("the name is too long or has invisible characters")
	case p.Properties != nil || p.Ref != nil || p.AllOf != nil || p.Not != nil || p.If != nil:
		return f, errors.New("only strings, numbers, booleans and choices are supported")
	case p.Type == "string" && !listed.isEmpty(), p.Type == "" && !listed.isEmpty():
		f.Kind = Choice
	case p.Type == "string":
		f.Kind = Text
	case p.Type == "number":
		f.Kind = Number
	case p.Type == "integer":
		f.Kind = Integer
	case p.Type == "boolean":
		f.Kind = Yes
	case p.Type == "array" && p.Items != nil && !p.Items.isEmpty():
		f.Kind, listed = Choices, *p.Items
	default:
		return f, fmt.Errorf("type %q is not supported: only strings, numbers, booleans and choices are", shorten(p.Type))
	}
	var err error
	if f.Kind == Choice || f.Kind == Choices {
		f.Options, err = listed.options()
	}
	return f, err
}

func (c choicesJSON) isEmpty() bool { return c.Enum == nil && c.OneOf == nil && c.AnyOf == nil }

func (c choicesJSON) options() ([]Option, error) {
	var options []Option
	for i, value := range c.Enum {
		label := value
		if len(c.EnumNames) == len(c.Enum) {
			label = c.EnumNames[i]
		}
		options = append(options, Option{value, label})
	}
	for _, one := range append(slices.Clip(c.OneOf), c.AnyOf...) {
		if one.Const == nil {
			return nil, errors.New("an option has no text")
		}
		options = append(options, Option{*one.Const, cmp.Or(one.Title, *one.Const)})
	}
	if len(options) == 0 || len(options) > maxOptions {
		return nil, fmt.Errorf("it has %d options: 1 to %d are supported", len(options), maxOptions)
	}
	seen := map[string]bool{}
	for i, one := range options {
		if !isPlain(one.Value, maxTextBytes) {
			return nil, errors.New("an option is too long or has invisible characters")
		}
		if seen[one.Value] {
			return nil, fmt.Errorf("the option %q is listed twice", shorten(one.Value))
		}
		seen[one.Value] = true
		options[i].Label = OneLine(one.Label)
	}
	return options, nil
}

// isPlain reports whether a text is short and has no hidden characters.
func isPlain(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, isHidden)
}

// isHidden reports whether a character is invisible, controls a terminal, or changes the direction of text.
func isHidden(r rune) bool { return !invisible.IsShown(r) || r == utf8.RuneError }

// Clean returns text from outside without hidden characters, except for line breaks, cut to a length.
func Clean(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == utf8.RuneError:
			return r
		case r == '\t':
			return ' '
		case isHidden(r):
			return -1
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// OneLine returns text from outside as one line.
func OneLine(text string) string { return strings.Join(strings.Fields(Clean(text, maxTextBytes)), " ") }

func shorten(text string) string { return Clean(text, maxNameBytes) }
