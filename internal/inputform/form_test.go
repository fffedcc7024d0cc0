package inputform_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/inputform"
)

const signUp = `{"type":"object","properties":{
	"name":{"type":"string","title":"Your \u202ename","minLength":2},
	"age":{"type":"integer","minimum":18,"maximum":130},
	"share":{"type":"number"},
	"mail":{"type":"string","format":"email"},
	"news":{"type":"boolean","default":true},
	"plan":{"type":"string","enum":["a","b"],"enumNames":["Plan A","Plan B"]},
	"colour":{"type":"string","oneOf":[{"const":"#f00","title":"red"},{"const":"#00f","title":"blue"}]},
	"tags":{"type":"array","minItems":1,"items":{"type":"string","enum":["x","y","z"]}}
},"required":["name","plan"]}`

func TestFormReadsTheFieldsOfASchema(t *testing.T) {
	t.Parallel()
	form, err := inputform.Parse(signUp)
	require.NoError(t, err)
	var got []string
	for _, f := range form.Fields {
		got = append(got, fmt.Sprintf("%s %s %v %v %s %v", f.Name, f.Kind, f.Required, f.Options, f.Hint(), f.Initial()))
	}
	assert.Equal(t, []string{
		"name text true [] at least 2 characters []",
		"plan choice true [{a Plan A} {b Plan B}]  []",
		"age integer false [] 18 to 130 []",
		"colour choice false [{#f00 red} {#00f blue}]  []",
		"mail text false [] email []",
		"news boolean false []  [true]",
		"share number false []  []",
		"tags choices false [{x x} {y y} {z z}] at least 1 options []",
	}, got)
	assert.Equal(t, "Your name", form.Fields[0].Label(), "without characters that are not shown")
}

func TestFormChecksAnswers(t *testing.T) {
	t.Parallel()
	form, err := inputform.Parse(signUp)
	require.NoError(t, err)
	for content, want := range map[string]string{
		`{"name":"Ann","plan":"a"}`: "",
		`{"name":"Ann","plan":"a","age":18,"share":0.5,"mail":"a@b.de","news":false,"tags":["x","z"],"colour":"#f00"}`: "",
		``:                                           "name: it is required",
		`[]`:                                         "one JSON object",
		`{"name":"Ann","name":"Bob","plan":"a"}`:     "one JSON object",
		`{"name":"A","plan":"a"}`:                    "at least 2 characters",
		`{"name":null,"plan":"a"}`:                   "must be a text",
		`{"name":"Ann","plan":"c"}`:                  `"c" is not one of "a", "b"`,
		`{"name":"Ann","plan":"a","age":17}`:         "18 to 130",
		`{"name":"Ann","plan":"a","age":20.5}`:       "whole number",
		`{"name":"Ann","plan":"a","age":"20"}`:       "a number",
		`{"name":"Ann","plan":"a","mail":"no"}`:      "format email",
		`{"name":"Ann","plan":"a","news":"yes"}`:     "true or false",
		`{"name":"Ann","plan":"a","tags":[]}`:        "at least 1 options",
		`{"name":"Ann","plan":"a","tags":["x","x"]}`: "chosen twice",
		`{"name":"Ann","plan":"a","admin":true}`:     "admin: it is not asked for",
		`{"name":"` + strings.Repeat("x", inputform.MaxContentBytes) + `","plan":"a"}`: "at most 65536",
	} {
		var texts []string
		for _, p := range form.Check(content) {
			texts = append(texts, p.Field+": "+p.Text)
		}
		if want == "" {
			assert.Empty(t, texts, content)
		} else {
			assert.Contains(t, strings.Join(texts, "\n"), want)
		}
	}
}

func TestFormRefusesOtherSchemas(t *testing.T) {
	t.Parallel()
	many := strings.Builder{}
	for i := range 65 {
		fmt.Fprintf(&many, `"f%d":{"type":"string"},`, i)
	}
	for schema, want := range map[string]string{
		`{`:                                      "invalid",
		`{"type":"array"}`:                       "must be an object",
		`{"properties":{"a":{"type":"object"}}}`: "not supported",
		`{"properties":{"a":{"type":"string","properties":{}}}}`:                  "only strings",
		`{"properties":{"a":{"$ref":"#/x"}}}`:                                     "only strings",
		`{"properties":{"a":{"type":"array"}}}`:                                   "not supported",
		`{"properties":{"a":{"type":"string","enum":[]}}}`:                        "0 options",
		`{"properties":{"a":{"type":"string","enum":["b","b"]}}}`:                 "twice",
		`{"properties":{"a":{"type":"string","enum":[1]}}}`:                       "cannot unmarshal",
		`{"properties":{"a\u202e":{"type":"string"}}}`:                            "invisible",
		`{"required":["a"]}`:                                                      "does not describe",
		`{"properties":{` + strings.TrimSuffix(many.String(), ",") + `}}`:         "at most 64",
		`{"description":"` + strings.Repeat("x", inputform.MaxSchemaBytes) + `"}`: "at most 32768",
	} {
		_, err := inputform.Parse(schema)
		assert.ErrorContains(t, err, want, schema[:min(len(schema), 60)])
	}
}

func TestContentIsWhatAPersonTyped(t *testing.T) {
	t.Parallel()
	form, err := inputform.Parse(signUp)
	require.NoError(t, err)
	content, problems := form.Content(map[string][]string{"name": {"Ann"}, "plan": {"a"}, "age": {" 20 "}, "news": {"yes"}, "tags": {"x", "y"}, "mail": {""}})
	assert.Empty(t, problems)
	assert.JSONEq(t, `{"name":"Ann","plan":"a","age":20,"news":true,"tags":["x","y"]}`, content)
	assert.Empty(t, form.Check(content))
	_, problems = form.Content(map[string][]string{"name": {"Ann", "Bob"}, "age": {"old"}, "news": {"perhaps"}, "else": {"x"}})
	assert.Len(t, problems, 4)
}

func FuzzForm(f *testing.F) {
	f.Add(signUp, `{"name":"Ann","plan":"a"}`)
	f.Add(`{}`, ``)
	f.Fuzz(func(t *testing.T, schema, content string) {
		form, err := inputform.Parse(schema)
		if err != nil {
			return
		}
		form.Check(content)
		texts := map[string][]string{}
		for _, field := range form.Fields {
			if strings.ContainsAny(field.Label()+field.Hint(), "\x00\x1b\n\u202e") {
				t.Error("a label has hidden characters")
			}
			texts[field.Name] = field.Initial()
		}
		if made, problems := form.Content(texts); len(problems) == 0 {
			for _, p := range form.Check(made) {
				if p.Text != "it is required" && len(texts[p.Field]) > 0 {
					t.Errorf("the proposed value of %q: %s", p.Field, p.Text)
				}
			}
		}
	})
}
