package inputform

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Problem describes a mistake in a member of an answer or, if Field is empty, in the answer as a whole.
type Problem struct{ Field, Text string }

// Check returns the problems of an answer, a JSON object. An empty answer counts as an empty object.
func (f Form) Check(content string) []Problem {
	if content == "" {
		content = "{}"
	}
	if len(content) > MaxContentBytes {
		return []Problem{{"", fmt.Sprintf("it has %d bytes: at most %d are allowed", len(content), MaxContentBytes)}}
	}
	var members map[string]json.RawMessage
	err := strictjson.CheckObject(content)
	if err == nil {
		err = json.Unmarshal([]byte(content), &members)
	}
	if err != nil {
		return []Problem{{"", fmt.Sprintf("it is not one JSON object: %v", err)}}
	}
	var problems []Problem
	for _, field := range f.Fields {
		value, given := members[field.Name]
		delete(members, field.Name)
		switch {
		case given:
			if text := field.problemOf(value); text != "" {
				problems = append(problems, Problem{field.Name, text})
			}
		case field.Required:
			problems = append(problems, Problem{field.Name, "it is required"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		problems = append(problems, Problem{shorten(name), "it is not asked for"})
	}
	return problems
}

// problemOf returns the problem with a value, or "".
func (f Field) problemOf(value json.RawMessage) string {
	switch f.Kind {
	case Yes:
		var b *bool
		if json.Unmarshal(value, &b) != nil || b == nil {
			return "it must be true or false"
		}
	case Number, Integer:
		return f.checkNumber(value)
	case Choices:
		var list []string
		if json.Unmarshal(value, &list) != nil || list == nil {
			return "it must be a list of options"
		}
		return f.checkChoices(list)
	case Text, Choice:
		var text *string
		if json.Unmarshal(value, &text) != nil || text == nil {
			return "it must be a text"
		}
		if f.Kind == Choice {
			return f.checkOption(*text)
		}
		return f.checkText(*text)
	}
	return ""
}

func (f Field) checkNumber(value json.RawMessage) string {
	n, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil: // also for a string, a list or null
		return "it must be a number"
	case f.Kind == Integer && n != float64(int64(n)):
		return "it must be a whole number"
	case f.rule.minimum != nil && n < *f.rule.minimum, f.rule.maximum != nil && n > *f.rule.maximum:
		return "it must be " + f.limits()
	}
	return ""
}

func (f Field) checkChoices(list []string) string {
	switch {
	case f.rule.minItems != nil && len(list) < *f.rule.minItems, f.rule.maxItems != nil && len(list) > *f.rule.maxItems:
		return "it must have " + f.limits()
	}
	for i, one := range list {
		if slices.Contains(list[:i], one) {
			return fmt.Sprintf("%q is chosen twice", shorten(one))
		}
		if wrong := f.checkOption(one); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (f Field) checkOption(value string) string {
	if slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value }) {
		return ""
	}
	shown := make([]string, 0, 10)
	for _, o := range f.Options[:min(len(f.Options), 10)] {
		shown = append(shown, strconv.Quote(o.Value))
	}
	text := fmt.Sprintf("%q is not one of %s", shorten(value), strings.Join(shown, ", "))
	if more := len(f.Options) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (f Field) checkText(text string) string {
	n, r := utf8.RuneCountInString(text), f.rule
	if r.minLength != nil && n < *r.minLength || r.maxLength != nil && n > *r.maxLength {
		return "it must have " + f.limits()
	}
	var err error
	switch f.format {
	case "email":
		var at *mail.Address
		if at, err = mail.ParseAddress(text); err == nil && at.Address != text {
			return "it must be an email address"
		}
	case "uri":
		var at *url.URL
		if at, err = url.Parse(text); err == nil && at.Scheme == "" {
			return "it must be a URI"
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return "it must be of the format " + f.format
	}
	return ""
}

// Content returns the answer that a person typed or chose, from the strings of each field. Fields with an empty or no
// string are omitted; an empty choice of a required yes-or-no field is false. Content does not check the answer.
func (f Form) Content(texts map[string][]string) (string, []Problem) {
	members := map[string]any{}
	var problems []Problem
	for _, field := range f.Fields {
		given := slices.DeleteFunc(slices.Clone(texts[field.Name]), func(text string) bool { return text == "" })
		switch {
		case field.Kind == Choices && (len(given) > 0 || field.Required):
			members[field.Name] = append([]string{}, given...)
		case len(given) == 0:
			if field.Kind == Yes && field.Required {
				members[field.Name] = false
			}
		case len(given) > 1:
			problems = append(problems, Problem{field.Name, "it is given more than once"})
		case field.Kind == Yes:
			yes, ok := parseYes(given[0])
			if !ok {
				problems = append(problems, Problem{field.Name, "it must be true or false"})
			}
			members[field.Name] = yes
		case field.Kind == Number, field.Kind == Integer:
			text := strings.TrimSpace(given[0])
			if !json.Valid([]byte(text)) {
				problems = append(problems, Problem{field.Name, "it must be a number"})
				continue
			}
			members[field.Name] = json.RawMessage(text)
		default:
			members[field.Name] = given[0]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Name == name }) {
			problems = append(problems, Problem{shorten(name), "it is not asked for"})
		}
	}
	text, err := strictjson.Marshal(members)
	if err != nil {
		problems = append(problems, Problem{"", err.Error()})
	}
	return text, problems
}

func parseYes(text string) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "y", "on":
		return true, true
	case "false", "no", "n", "off":
		return false, true
	}
	return false, false
}
