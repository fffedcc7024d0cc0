package toolexec

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

type unit string

func (unit) JSONSchema() string { return `{"type":"string","enum":["celsius","fahrenheit"]}` }

// odds declares no type, only what it may be.
type odds int

func (odds) JSONSchema() string { return `{"enum":[1,3,5]}` }

type broken int

func (broken) JSONSchema() string { return `{"enum":` }

type whole struct{ N int }

func (whole) JSONSchema() string { return `{"type":"object","properties":{"N":{"multipleOf":5}}}` }

type ownJSON struct{ text string }

func (o *ownJSON) UnmarshalJSON(b []byte) error { o.text = string(b); return nil }

type base struct {
	ID int `json:"id"`
}

type text string

func TestSchemaFor(t *testing.T) {
	check := func(want string, s *Schema, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, want, s.String())
	}
	s, err := SchemaFor[struct{}]()
	check(`{"type":"object","properties":{},"additionalProperties":false}`, s, err)

	s, err = SchemaFor[map[string]int]()
	check(`{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`, s, err)

	s, err = SchemaFor[struct {
		Z string `json:"z" jsonschema:"the last letter"`
		A *int   `json:"a,omitempty"`
		B uint8
		C []string `json:",omitzero"`
		D string   `json:"-"`
		e int
	}]()
	check(`{"type":"object","properties":{"z":{"type":"string","description":"the last letter"},"a":{"type":["null","integer"]},`+
		`"B":{"type":"integer","minimum":0,"maximum":255},"C":{"type":"array","items":{"type":"string"}}},`+
		`"required":["z","B"],"additionalProperties":false}`, s, err)

	s, err = SchemaFor[struct {
		base
		P *[]base
		U unit
		O *odds
		L []unit
		M map[string]*unit
	}]()
	const item = `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}`
	const units = `{"type":"string","enum":["celsius","fahrenheit"]}`
	check(`{"type":"object","properties":{"id":{"type":"integer"},"P":{"type":["null","array"],"items":`+item+`},"U":`+units+`,`+
		`"O":{"type":["null","boolean","number","string","array","object"],"enum":[1,3,5]},"L":{"type":"array","items":`+units+`},`+
		`"M":{"type":"object","additionalProperties":{"type":["null","string"],"enum":["celsius","fahrenheit",null]}}},`+
		`"required":["id","P","U","O","L","M"],"additionalProperties":false}`, s, err)

	s, err = SchemaFor[struct {
		Any  any
		Own  *ownJSON
		When time.Time
		Big  big.Int
		Rat  *big.Rat
		Num  json.Number
		Raw  json.RawMessage
		Addr netip.Addr
		Lvl  slog.Level
		B    []byte
		H    [4]byte
		V    [2]float32
	}]()
	const anyType = `{"type":["null","boolean","number","string","array","object"]}`
	check(`{"type":"object","properties":{"Any":true,"Own":`+anyType+`,"When":{"type":"string","format":"date-time"},`+
		`"Big":{"type":"integer"},"Rat":{"type":["null","string"]},"Num":{"type":"number"},"Raw":`+anyType+`,"Addr":{"type":"string"},`+
		`"Lvl":{"type":"string"},"B":{"type":"string","contentEncoding":"base64"},"H":{"type":"string","contentEncoding":"base64"},`+
		`"V":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2}},`+
		`"required":["Any","Own","When","Big","Rat","Num","Raw","Addr","Lvl","B","H","V"],"additionalProperties":false}`, s, err)

	s, err = SchemaFor[whole]()
	check(`{"type":"object","properties":{"N":{"multipleOf":5}}}`, s, err)
}

func TestDecodeKeepsDeclaredSchemas(t *testing.T) {
	d := decoderOf[struct {
		U *unit `json:"u,omitempty"`
		O odds  `json:"o"`
	}](t)
	in := struct {
		U *unit `json:"u,omitempty"`
		O odds  `json:"o"`
	}{}
	require.NoError(t, d.Decode(`{"u":null,"o":3.0}`, &in))
	assert.Nil(t, in.U)
	assert.Equal(t, odds(3), in.O)
	assert.EqualError(t, d.Decode(`{"u":"kelvin","o":2}`, &in), `checking arguments: 2 problems: /o: must be one of 1, 3, 5; got integer 2; `+
		`/u: must be one of "celsius", "fahrenheit", null; got string "kelvin"`)
}

// What arguments cannot be read into is found out when the tool is made, not when the model calls it.
func TestSchemaForRefuses(t *testing.T) {
	refuses := func(want string, _ *Schema, err error) {
		t.Helper()
		require.Error(t, err)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "inferring schema of ")
	}
	type tree struct{ Kids []tree }
	type chain struct{ Next *chain }

	s, err := SchemaFor[int]()
	refuses("arguments must be an object", s, err)
	s, err = SchemaFor[*base]()
	refuses("arguments must be an object", s, err)
	s, err = SchemaFor[any]()
	refuses("arguments must be an object", s, err)
	s, err = SchemaFor[ownJSON]()
	refuses("it needs a JSONSchema method", s, err)
	s, err = SchemaFor[struct{ D time.Duration }]()
	refuses("use a number with the unit in its name", s, err)
	s, err = SchemaFor[struct{ C chan int }]()
	refuses(".C: a chan int has no JSON form", s, err)
	s, err = SchemaFor[struct{ M map[int]string }]()
	refuses(".M: a map[int]string has keys that are not strings", s, err)
	s, err = SchemaFor[map[int]struct{ F func() }]()
	refuses("func()", s, err)
	s, err = SchemaFor[struct{ E error }]()
	refuses("JSON cannot be decoded into a error", s, err)
	s, err = SchemaFor[tree]()
	refuses("contains itself", s, err)
	s, err = SchemaFor[chain]()
	refuses("contains itself", s, err)
	s, err = SchemaFor[struct {
		A int `json:"a,string"`
	}]()
	refuses(`json tag option "string" is not for arguments`, s, err)
	s, err = SchemaFor[struct {
		base `json:"base"`
	}]()
	refuses("give an embedded struct no name", s, err)
	s, err = SchemaFor[struct {
		A int `json:"a"`
		B int `json:"A"`
	}]()
	refuses(`members "a" and "A" differ only in case`, s, err)
	s, err = SchemaFor[struct{ text }]()
	refuses("cannot be decoded", s, err)
	s, err = SchemaFor[struct{ a int }]()
	refuses("no exported fields", s, err)
	s, err = SchemaFor[struct{ B broken }]()
	refuses("the schema that toolexec.broken declares", s, err)
	s, err = SchemaFor[struct {
		A int `json:"it's"`
	}]()
	refuses("", s, err)
}

// A type that contains itself has a schema if its author writes it, as the error says.
func TestSchemaOfATypeThatContainsItself(t *testing.T) {
	type tree struct {
		Name string `json:"name"`
		Kids []tree `json:"kids,omitempty"`
	}
	tool := CallFunc(agent.ToolSpec{Name: "grow", Parameters: `{"$defs":{"tree":{"type":"object","required":["name"],"additionalProperties":false,
		"properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}},"$ref":"#/$defs/tree","type":"object",
		"properties":{"name":{},"kids":{}}}`},
		func(_ context.Context, _ Call, in tree) (string, error) { return in.Kids[0].Kids[0].Name, nil })
	_, err := NewToolbox(tool)
	require.NoError(t, err)
	body, err := tool.Prepare(`{"name":"a","kids":[{"name":"b","kids":[{"name":"c"}]}]}`)
	require.NoError(t, err)
	out, err := body.Run(t.Context(), Call{})
	require.NoError(t, err)
	assert.Equal(t, "c", out.Content.Text())
	_, err = tool.Prepare(`{"name":"a","kids":[{"kids":[]}]}`)
	assert.ErrorContains(t, err, "/kids/0/name: is missing")
}

// go vet finds two fields of one name, unless the type is made at run time.
func TestSchemaForRefusesNamesGivenTwice(t *testing.T) {
	number := reflect.TypeFor[int]()
	_, err := inferSchema(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: number, Tag: `json:"a"`}, {Name: "B", Type: number, Tag: `json:"a"`},
	}))
	assert.ErrorContains(t, err, "cannot be decoded")
}
