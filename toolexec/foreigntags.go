package toolexec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/samber/lo"
)

// Other libraries read schemas from other tags. Ignoring such a tag would silently drop a rule. This package reads such
// tags if they hold a description. Otherwise it returns an error that names the correct tag.

// descriptionTags lists other libraries' tags that hold a description.
var descriptionTags = []string{"description", "jsonschema_description", "desc", "doc"}

// misspelt lists tags that look like constraints but are not, with the correct names.
var misspelt = []struct{ wrong, meant string }{
	{"min", "minimum"}, {"max", "maximum"}, {"minlength", "minLength"}, {"maxlength", "maxLength"}, {"minitems", "minItems"},
	{"maxitems", "maxItems"}, {"enums", "enum"}, {"oneof", "enum"},
}

// inSchema is the advice for keywords without a tag.
const inSchema = "declare the schema with a JSONSchema method (SchemaSource)"

// advice says what to use instead of another library's keyword. The keyword may be a tag or part of a tag.
var advice = map[string]string{
	"required": "a field is required unless its json tag has omitempty", "omitempty": "use the json tag: json:\"name,omitempty\"",
	"optional": "use the json tag: json:\"name,omitempty\"", "description": "use jsonschema:\"the description\"",
	"title": "use jsonschema:\"the description\"", "name": "use the json tag", "default": "say it in the description",
	"example": "say it in the description", "examples": "say it in the description",
	"enum": "use enum:\"a,b\"", "oneof": "use enum:\"a,b\"", "eq": "use enum:\"a\"", "const": "use enum:\"a\"",
	"minimum": "use minimum:\"1\"", "maximum": "use maximum:\"1\"", "gte": "use minimum:\"1\"", "lte": "use maximum:\"1\"",
	"minlength": "use minLength:\"1\"", "maxlength": "use maxLength:\"1\"", "minitems": "use minItems:\"1\"", "maxitems": "use maxItems:\"1\"",
	"pattern": "use pattern:\"^a$\"", "email": "use pattern:\"^a$\"", "url": "use pattern:\"^a$\"", "alphanum": "use pattern:\"^a$\"",
	"min": "use minimum, minLength or minItems", "max": "use maximum, maxLength or maxItems", "len": "use minLength and maxLength, or minItems and maxItems",
	"dive": "tags of a list apply to its elements",
}

// ruleTags lists other libraries' tags that hold a list of rules. keywordTags lists tags that hold one keyword.
var (
	ruleTags    = []string{"validate", "binding", "valid"}
	keywordTags = []string{"required", "default", "example", "examples", "title", "format", "const", "nullable", "deprecated",
		"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "readOnly", "writeOnly"}
)

// checkForeignTags returns an error for another library's tag that this package does not read.
func checkForeignTags(field reflect.StructField) error {
	for _, tag := range misspelt {
		if hasTag(field, tag.wrong) {
			return fmt.Errorf("unknown tag %s: use %s", tag.wrong, tag.meant)
		}
	}
	for _, key := range keywordTags {
		if text, ok := field.Tag.Lookup(key); ok {
			return foreignTag(key, text, []string{key})
		}
	}
	for _, key := range ruleTags {
		if text, ok := field.Tag.Lookup(key); ok && text != "" && text != "-" {
			return foreignTag(key, text, lo.Map(strings.Split(text, ","), func(rule string, _ int) string { return keywordIn(rule) }))
		}
	}
	if text, ok := field.Tag.Lookup("jsonschema"); ok {
		if keywords := keywordsIn(text); len(keywords) > 0 {
			return foreignTag("jsonschema", text, keywords)
		}
	}
	if given := descriptionsOf(field); len(given) > 1 {
		return fmt.Errorf("it has several descriptions, %q and %q: keep one", given[0], given[1])
	}
	return nil
}

// foreignTag returns the error for a tag with another library's keywords.
func foreignTag(key, text string, keywords []string) error {
	instead := lo.Uniq(lo.Map(keywords, func(keyword string, _ int) string {
		return cmp.Or(advice[strings.ToLower(keyword)], inSchema)
	}))
	return fmt.Errorf("tag %s:%q is not read: %s", key, text, strings.Join(instead, "; "))
}

func keywordIn(rule string) string {
	keyword, _, _ := strings.Cut(strings.TrimSpace(rule), "=")
	return keyword
}

// schemaKeyword matches a keyword with its value, as other libraries write them into the jsonschema tag.
var schemaKeyword = regexp.MustCompile(`^(description|title|enum|minimum|maximum|exclusiveMinimum|exclusiveMaximum|multipleOf|minLength|maxLength|` +
	`pattern|format|minItems|maxItems|uniqueItems|default|example|const|type|name|nullable|required|readOnly|writeOnly|deprecated|` +
	`oneof_\w+|anyof_\w+|oneof|anyof|\$?ref|anchor|extras|if|then|else)=`)

// keywordsIn returns the keywords in a jsonschema tag in other libraries' format. It returns none if the tag is a
// description.
func keywordsIn(text string) (keywords []string) {
	for part := range strings.SplitSeq(text, ",") {
		switch part = strings.TrimSpace(part); {
		case schemaKeyword.MatchString(part):
			keywords = append(keywords, keywordIn(part))
		case slices.Contains([]string{"required", "nullable", "omitempty", "optional", "readOnly", "writeOnly", "deprecated", "uniqueItems"}, part):
			keywords = append(keywords, part)
		}
	}
	if len(keywords) == 0 || !strings.Contains(text, "=") && len(keywords) < strings.Count(text, ",")+1 {
		return nil // a sentence that contains such a word
	}
	return keywords
}

// descriptionsOf returns the distinct descriptions in a field's tags.
func descriptionsOf(field reflect.StructField) []string {
	return lo.Uniq(lo.FilterMap(append([]string{"jsonschema"}, descriptionTags...), func(key string, _ int) (string, bool) {
		text := field.Tag.Get(key)
		return text, text != ""
	}))
}

// describeField sets a field's description from another library's tag.
func describeField(field reflect.StructField, s *jsonschema.Schema) error {
	given := descriptionsOf(field)
	if len(given) == 0 || s.Description == given[0] {
		return nil
	}
	if s.Description != "" && field.Tag.Get("jsonschema") == "" {
		return errors.New("its type declares a description, too: remove the tag")
	}
	s.Description = given[0]
	return nil
}
