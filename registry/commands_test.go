package registry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/registry"
)

func TestCommands(t *testing.T) {
	const text = `
format: 1
commands:
  report:
    argv: [/usr/local/bin/report, --json]
    dir: /srv
    env: {LANG: C}
    timeout: 1m
    grace: 5s
    max_output: 1000
    max_processes: 4
    repeat: true
    parameters: {properties: {month: {type: string}}, required: [month]}
  clean: {argv: [clean]}
`
	commands, err := registry.ParseCommands("commands.yaml", []byte(text))
	require.NoError(t, err)
	require.Len(t, commands, 2)
	c := commands["report"].Command()
	require.NoError(t, c.Check([]byte(`{"month":"2026-11"}`)))
	require.Error(t, c.Check([]byte(`{}`)))
	require.Error(t, c.Check([]byte(`[]`)))
	c.Check = nil
	assert.Equal(t, []string{"/usr/local/bin/report", "--json"}, c.Argv)
	assert.Equal(t, "/srv", c.Dir)
	assert.Equal(t, map[string]string{"LANG": "C"}, c.Env)
	assert.Equal(t, time.Minute, c.Timeout)
	assert.Equal(t, 5*time.Second, c.Grace)
	assert.Equal(t, 1000, c.MaxOutput)
	assert.Equal(t, 4, c.MaxProcesses)
	assert.True(t, c.Repeat)
	clean := commands["clean"].Command()
	require.NoError(t, clean.Check([]byte(`{"any":1}`)))
	require.Error(t, clean.Check([]byte(`1`)))
}

// The error of invalid parameters names every field that is wrong.
func TestInvalidParameters(t *testing.T) {
	text := "commands:\n  report:\n    argv: [report]\n    parameters:\n      additionalProperties: false\n      properties:\n"
	params := `{"month":11`
	text += "        month: {type: string}\n"
	for i := range 12 {
		text += fmt.Sprintf("        n%d: {type: integer}\n", i)
		params += fmt.Sprintf(`,"n%d":"x"`, i)
	}
	text += "        day: {type: string}\n      required: [day]\n"
	commands, err := registry.ParseCommands("commands.yaml", []byte(text))
	require.NoError(t, err)
	err = commands["report"].Command().Check([]byte(params + `,"colour":1}`))
	require.Error(t, err)
	for _, field := range []string{"/month: expected string", "/day: is missing", "/colour: ", "/n0: expected integer", "/n11: expected integer"} {
		assert.Contains(t, err.Error(), field)
	}
	assert.NotContains(t, err.Error(), "arguments")
	require.ErrorContains(t, commands["report"].Validate([]byte(`{"day":`)), "/day: the text ends")
}

// Mistakes are reported with their place.
func TestCommandMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                  "c.yaml:1:1: ",
		"commands: {a: {argv: []}}":                         "c.yaml:1:22: the list is empty",
		"commands: {a: {argv: ['']}}":                       "argv: name a program",
		"commands: {a: {dir: x}}":                           "argv",
		"commands:\n  a:\n    arv: [x]\n":                   `c.yaml:3:5: `,
		"commands: {a: {argv: [x], tmeout: 1}}":             `"timeout"`,
		"commands: {a: {argv: [x], timeout: 0}}":            "c.yaml:1:36: ",
		"commands: {a: {argv: [x], parameters: {type: 3}}}": "JSON Schema",
		"comands: {}":                                       `"commands"`,
		"format: 99\ncommands: {}":                          "format",
		"commands: {a: {argv: [x], max_output: -1}}":        "max_output",
	} {
		_, err := registry.ParseCommands("c.yaml", []byte(text))
		assert.ErrorContains(t, err, want, text)
	}
	assert.True(t, registry.IsCommandFile("c.yaml", []byte("commands: {}")))
	assert.False(t, registry.IsCommandFile("c.yaml", []byte("model: openai/m")))
	assert.False(t, registry.IsCommandFile("c.yaml", []byte("[")))
}

func ExampleParseCommands() {
	commands, err := registry.ParseCommands("commands.yaml", []byte(`
commands:
  report:
    argv: [/usr/local/bin/report, --json]
    parameters: {properties: {month: {type: string}}, required: [month]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(commands["report"].Validate([]byte(`{"month": 11}`)) != nil)
	_, err = registry.ParseCommands("commands.yaml", []byte("commands: {report: {argv: [report], timout: 1m}}"))
	fmt.Println(err)
	// Output:
	// true
	// commands.yaml:1:37: unknown key "timout" (did you mean "timeout"?); known: "argv", "dir", "env", "grace", "max_output", "max_processes", "parameters", "repeat", "timeout"
	//      1 | commands: {report: {argv: [report], timout: 1m}}
	//        |                                     ^^^^^^
}
