package toolexec_test

import (
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

func ExampleCompileSchema() {
	schema, err := toolexec.CompileSchema(`{
		"type": "object",
		"properties": {
			"to":     {"type": "string", "description": "the payee's IBAN"},
			"amount": {"type": "integer", "minimum": 1}
		},
		"required": ["to", "amount"],
		"additionalProperties": false
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Validate(`{"to": "DE02 1203", "amount": 10.0}`))
	fmt.Println(schema.Validate(`{"recipient": "DE02 1203", "amount": 0}`))
	// Output:
	// <nil>
	// checking arguments: 3 problems: /amount: must be at least 1; got integer 0; /recipient: is not known; known: "amount", "to"; /to: is missing; expected string (the payee's IBAN)
}

func ExampleSchemaFor() {
	type input struct {
		Path  string   `json:"path" jsonschema:"the file to read"`
		Lines *int     `json:"lines,omitempty" jsonschema:"how many; all if left out"`
		Tags  []string `json:"tags,omitempty"`
	}
	schema, err := toolexec.SchemaFor[input]()
	fmt.Println(schema, err)
	// Output:
	// {"type":"object","properties":{"path":{"type":"string","description":"the file to read"},"lines":{"type":["null","integer"],"description":"how many; all if left out"},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false} <nil>
}

type scale string

func (scale) JSONSchema() string { return `{"type": "string", "enum": ["celsius", "fahrenheit"]}` }

func ExampleSchemaSource() {
	decoder, err := toolexec.NewDecoder[struct {
		City  string `json:"city"`
		Scale scale  `json:"scale"`
	}]()
	if err != nil {
		fmt.Println(err)
		return
	}
	in := struct {
		City  string `json:"city"`
		Scale scale  `json:"scale"`
	}{}
	fmt.Println(decoder.Decode(`{"city": "Bonn", "scale": "kelvin"}`, &in))
	// Output:
	// checking arguments: /scale: must be one of "celsius", "fahrenheit"; got string "kelvin"
}

func ExampleDecoder() {
	type input struct {
		Path  string `json:"path"`
		Lines int    `json:"lines,omitempty"`
	}
	decoder, err := toolexec.NewDecoder[input]()
	if err != nil {
		fmt.Println(err)
		return
	}
	var in input
	fmt.Println(decoder.Decode(`{"path": "go.mod", "lines": 10.0}`, &in), in)
	fmt.Println(decoder.Decode(`{"filePath": "go.mod", "lines": "ten"}`, &in), in)
	err = decoder.Decode(`{"path": "go.mod", "PATH": "/etc/passwd"}`, &in)
	if wrong, ok := errors.AsType[*agent.ArgumentsError](err); ok {
		fmt.Println(wrong.Malformed, wrong.Problems[0].Path)
	}
	// Output:
	// <nil> {go.mod 10}
	// checking arguments: 3 problems: /filePath: is not known; did you mean "path"?; known: "lines", "path"; /lines: expected integer, got string "ten"; /path: is missing; expected string { 0}
	// true /PATH
}
