package toolexec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec"
)

type level string

type span struct {
	From int `json:"from" minimum:"1"`
	To   int `json:"to,omitempty" maximum:"99"`
}

type paged struct {
	Page int `json:"page,omitempty" minimum:"1"`
}

type search struct {
	paged

	Unit   string          `json:"unit" enum:"celsius, fahrenheit"`
	Level  *level          `json:"level,omitempty" enum:"low,high"`
	Odds   []int           `json:"odds,omitempty" enum:"1,3,5" maxItems:"2"`
	Share  float64         `json:"share,omitempty" minimum:"0" maximum:"0.5"`
	Code   string          `json:"code,omitempty" pattern:"^[A-Z]+$" minLength:"2" maxLength:"4"`
	Spans  []span          `json:"spans,omitempty" minItems:"1"`
	ByName map[string]span `json:"by_name,omitempty"`
}

// The constraints of tags are in the schema that the model sees, and are enforced for the arguments.
func TestTagsNarrowFields(t *testing.T) {
	schema, err := toolexec.SchemaFor[search]()
	require.NoError(t, err)
	const spans = `{"type":"object","properties":{"from":{"type":"integer","minimum":1},"to":{"type":"integer","maximum":99}},` +
		`"required":["from"],"additionalProperties":false}`
	assert.JSONEq(t, `{"type":"object","properties":{"page":{"type":"integer","minimum":1},"unit":{"type":"string","enum":["celsius","fahrenheit"]},`+
		`"level":{"type":["null","string"],"enum":["low","high",null]},"odds":{"type":"array","items":{"type":"integer","enum":[1,3,5]},"maxItems":2},`+
		`"share":{"type":"number","minimum":0,"maximum":0.5},"code":{"type":"string","pattern":"^[A-Z]+$","minLength":2,"maxLength":4},`+
		`"spans":{"type":"array","items":`+spans+`,"minItems":1},"by_name":{"type":"object","additionalProperties":`+spans+`}},`+
		`"required":["unit"],"additionalProperties":false}`, schema.String())

	decoder, err := toolexec.NewDecoder[search]()
	require.NoError(t, err)
	for arguments, want := range map[string]string{
		`{"unit":"celsius","level":null,"odds":[1,5],"share":0.5,"code":"AB","spans":[{"from":1,"to":99}],"page":1}`: "",
		`{"unit":"kelvin"}`:                             `/unit: must be one of "celsius", "fahrenheit"; got string "kelvin"`,
		`{"unit":"celsius","level":"mid"}`:              `/level: must be one of "low", "high", null; got string "mid"`,
		`{"unit":"celsius","odds":[1,2]}`:               `/odds/1: must be one of 1, 3, 5; got integer 2`,
		`{"unit":"celsius","odds":[1,3,5]}`:             `/odds: `,
		`{"unit":"celsius","share":0.51}`:               `/share: `,
		`{"unit":"celsius","code":"ab"}`:                `/code: `,
		`{"unit":"celsius","code":"ABCDE"}`:             `/code: `,
		`{"unit":"celsius","spans":[]}`:                 `/spans: `,
		`{"unit":"celsius","spans":[{"from":0}]}`:       `/spans/0/from: `,
		`{"unit":"celsius","by_name":{"a":{"from":0}}}`: `/by_name/a/from: `,
		`{"unit":"celsius","page":0}`:                   `/page: `,
	} {
		var in search
		if err := decoder.Decode(arguments, &in); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want, arguments)
			assert.Zero(t, in)
		}
	}
}

// A struct that would be read in one pass is held to its tags, too.
func TestTagsNarrowFlatStructs(t *testing.T) {
	decoder, err := toolexec.NewDecoder[span]()
	require.NoError(t, err)
	var in span
	require.NoError(t, decoder.Decode(`{"from":1,"to":99}`, &in))
	assert.Equal(t, span{1, 99}, in)
	require.ErrorContains(t, decoder.Decode(`{"from":0}`, &in), "/from: ")
	require.ErrorContains(t, decoder.Decode(`{"from":1,"to":100}`, &in), "/to: ")
}

func TestTagsThatCannotBe(t *testing.T) {
	for want, infer := range map[string]func() error{
		`A: tag minimum:"x": "x" is not a number`: refuseCall[struct {
			A int `minimum:"x"`
		}],
		`A: tag minimum:"1.5": expected an integer`: refuseCall[struct {
			A int `minimum:"1.5"`
		}],
		`A: tag minimum:"NaN": "NaN" is not a number`: refuseCall[struct {
			A float64 `minimum:"NaN"`
		}],
		`A: tag maximum:"300": it is outside the range of the type, whose limit is 255`: refuseCall[struct {
			A uint8 `maximum:"300"`
		}],
		`A: tag minimum:"1": it is for integer or number, but the field is a string`: refuseCall[struct {
			A string `minimum:"1"`
		}],
		`A: tag enum:"a,b": it is for string, integer or number, but the field is a toolexec_test.span`: refuseCall[struct {
			A span `enum:"a,b"`
		}],
		`A: tag enum:"true": it is for string, integer or number, but the field is a bool`: refuseCall[struct {
			A bool `enum:"true"`
		}],
		`A: tag enum:"a": it is for string, integer or number, but the field is a interface {}`: refuseCall[struct {
			A any `enum:"a"`
		}],
		`A: tag enum:"a,,b": a value is empty`: refuseCall[struct {
			A string `enum:"a,,b"`
		}],
		`A: tag enum:"": a value is empty`: refuseCall[struct {
			A string `enum:""`
		}],
		`A: tag enum:"a,a": a is listed twice`: refuseCall[struct {
			A string `enum:"a,a"`
		}],
		`A: tag enum:"1,007": "007" is not a number`: refuseCall[struct {
			A int `enum:"1,007"`
		}],
		`A: tag enum:"1,2.5": "2.5" is not an integer`: refuseCall[struct {
			A int `enum:"1,2.5"`
		}],
		`A: tag enum:"4,b": "b" is not a number`: refuseCall[struct {
			A int `enum:"4,b"`
		}],
		`A: tag enum:"1,b": "b" is not a number`: refuseCall[struct {
			A float64 `enum:"1,b"`
		}],
		`A: tag minLength:"-1": expected a whole number, 0 or more`: refuseCall[struct {
			A string `minLength:"-1"`
		}],
		`A: tag maxItems:"1": it is for array, but the field is a string`: refuseCall[struct {
			A string `maxItems:"1"`
		}],
		`A: tag maxItems:"3": the type has 2`: refuseCall[struct {
			A [2]int `maxItems:"3"`
		}],
		`A: tag pattern:"(": `: refuseCall[struct {
			A string `pattern:"("`
		}],
		`A: unknown tag min: use minimum`: refuseCall[struct {
			A int `min:"1"`
		}],
		`A: minimum is 5 and exceeds the maximum, 4`: refuseCall[struct {
			A int `minimum:"5" maximum:"4"`
		}],
		`field struct { B struct`: refuseCall[struct {
			B struct {
				A int `minimum:"x"`
			}
		}],
	} {
		t.Run(want, func(t *testing.T) { assert.ErrorContains(t, infer(), want) })
	}
}

func refuseCall[T any]() error {
	_, err := toolexec.SchemaFor[T]()
	return err
}

// Tags do not change types that declare their own schema.
func TestTagsOnOtherTypes(t *testing.T) {
	schema, err := toolexec.SchemaFor[struct {
		When  time.Time   `json:"when" pattern:"^2026"`
		Large json.Number `json:"large" maximum:"9"`
	}]()
	require.NoError(t, err)
	assert.Contains(t, schema.String(), `"when":{"type":"string","pattern":"^2026","format":"date-time"}`)
	assert.Contains(t, schema.String(), `"large":{"type":"number","maximum":9}`)
}

// The tags of a field say more than its type.
func ExampleSchemaFor_tags() {
	type in struct {
		Unit string `json:"unit" enum:"celsius,fahrenheit"`
		Days int    `json:"days,omitempty" minimum:"1" maximum:"14"`
	}
	forecast := toolexec.Func("forecast", "Tells the weather.", func(_ context.Context, in in) (string, error) { return "rain in " + in.Unit, nil })
	fmt.Println(strings.ReplaceAll(forecast.Spec().Parameters, `},`, "},\n"))
	_, err := forecast.Prepare(`{"unit":"kelvin","days":30}`)
	fmt.Println(err)
	// Output:
	// {"type":"object","properties":{"unit":{"type":"string","enum":["celsius","fahrenheit"]},
	// "days":{"type":"integer","minimum":1,"maximum":14}},
	// "required":["unit"],"additionalProperties":false}
	// checking arguments: 2 problems: /days: must be at most 14; got integer 30; /unit: must be one of "celsius", "fahrenheit"; got string "kelvin"
}
