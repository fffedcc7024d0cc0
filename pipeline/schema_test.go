package pipeline_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write what is published")

// The published schemas match the loader.
func TestPublishedSchemas(t *testing.T) {
	for name, text := range map[string][]byte{"pipeline.schema.json": pipeline.Schema(), "pipeline-loop.schema.json": pipeline.LoopSchema()} {
		path := filepath.Join("..", "docs", name)
		if *update {
			require.NoError(t, os.WriteFile(path, text, 0o600))
		}
		published, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(published), "run go test ./pipeline -run PublishedSchemas -update")
	}
}

// The files with a hint for editors name the schema of this release.
func TestSchemaHints(t *testing.T) {
	for _, path := range []string{"../docs/pipelines.md", "../cmd/grapnel/internal/cli/pipeline/shipped/pipeline.yaml"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Contains(text, []byte("# yaml-language-server: $schema="+pipeline.SchemaID+"\n")), path)
	}
}

// Every key has a description for the reader of an editor.
func TestSchemaDescriptions(t *testing.T) {
	for _, text := range [][]byte{pipeline.Schema(), pipeline.LoopSchema()} {
		var root any
		require.NoError(t, json.Unmarshal(text, &root))
		var walk func(at any, path string)
		walk = func(at any, path string) {
			object, ok := at.(map[string]any)
			if !ok {
				return
			}
			if all, ok := object["properties"].(map[string]any); ok && object["additionalProperties"] == false {
				for key, of := range all {
					of, _ := of.(map[string]any)
					assert.NotEmpty(t, of["description"], "%s/%s", path, key)
				}
			}
			for key, below := range object {
				walk(below, path+"/"+key)
			}
		}
		root.(map[string]any)["$defs"].(map[string]any)["match"] = nil // its {min, max} is described by its key
		walk(root, "")
	}
}

// compileSchema returns a schema that can validate.
func compileSchema(t *testing.T, id string, schema []byte) *jsonschema.Schema {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(id, text))
	compiled, err := c.Compile(id)
	require.NoError(t, err)
	return compiled
}

// validateYAML returns the mistakes that a schema finds in a file.
func validateYAML(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(text), &value))
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return s.Validate(instance)
}

// yamlBlock is a block of YAML in a page, txtarFile a file in a script.
var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	txtarFile = regexp.MustCompile(`(?ms)^-- (\S+\.yaml) --\n(.*?)(?:^-- |\z)`)
)

// Every pipeline and every loop of the examples, the manual and the test scripts is valid.
func TestSchemaAcceptsPipelines(t *testing.T) {
	texts := map[string]string{}
	for _, path := range []string{
		"../examples/release/release.yaml", "../cmd/grapnel/internal/cli/pipeline/shipped/pipeline.yaml",
		"../policy/testdata/seeds/pipeline-05-per-stage.yaml", "../policy/testdata/seeds/pipeline-06-per-pipeline.yaml",
	} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path] = string(text)
	}
	page, err := os.ReadFile("../docs/pipelines.md")
	require.NoError(t, err)
	for _, block := range yamlBlock.FindAllStringSubmatch(string(page), -1) {
		texts["docs: "+block[1]] = block[1]
	}
	script, err := os.ReadFile("../cmd/grapnel/testdata/script/pipeline.txtar")
	require.NoError(t, err)
	for rest := string(script); ; {
		at := txtarFile.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		texts["script: "+rest[at[2]:at[3]]] = rest[at[4]:at[5]]
		rest = rest[at[5]:]
	}
	whole, loop := compileSchema(t, pipeline.SchemaID, pipeline.Schema()), compileSchema(t, pipeline.LoopSchemaID, pipeline.LoopSchema())
	pipelines := 0
	for name, text := range texts {
		switch {
		case name == "script: broken.yaml": // the script shows its mistakes
			assert.Error(t, validateYAML(t, whole, text), name)
		case strings.HasPrefix(name, "../policy") && strings.Contains(name, "per-stage"): // its queue has no command
			assert.ErrorContains(t, validateYAML(t, loop, text), "termination")
		case regexp.MustCompile(`(?m)^stages:`).MatchString(text):
			pipelines++
			assert.NoError(t, validateYAML(t, whole, text), name)
		case regexp.MustCompile(`(?m)^termination:`).MatchString(text):
			assert.NoError(t, validateYAML(t, loop, text), name)
		}
	}
	assert.Greater(t, pipelines, 4)
}

const (
	validKeys  = "command: {argv: ['true']}, termination: {type: fixed, iterations: 1}"
	validStage = "name: a, " + validKeys
	validPart  = "name: c, " + validKeys
)

// The schema refuses what Load refuses, as far as a schema can say it, and accepts what Load accepts.
func TestSchemaRefusesMistakes(t *testing.T) {
	valid := func(hooks string) string { return "name: p\nstages: [{" + validStage + "}]\n" + hooks }
	stage := func(keys string) string { return "name: p\nstages: [{name: a, " + keys + "}]" }
	whole := compileSchema(t, pipeline.SchemaID, pipeline.Schema())
	for name, tc := range map[string]struct {
		text  string
		wrong bool
	}{
		"valid":                             {valid(""), false},
		"no name":                           {"stages: [{" + validStage + "}]", true},
		"no stages":                         {"name: p", true},
		"empty stages":                      {"name: p\nstages: []", true},
		"unknown key":                       {valid("stage: []"), true},
		"unknown key of a stage":            {stage("command: {argv: [x]}, termination: {type: judgment}, comand: x"), true},
		"unknown key of a command":          {stage("command: {argv: [x], shell: sh}, termination: {type: judgment}"), true},
		"unknown key of limits":             {valid("limits: {step: 3}"), true},
		"limits":                            {valid("limits: {steps: 200, tokens: 1000000, cost: 0.5, time: 2h30m}"), false},
		"limit of zero":                     {valid("limits: {steps: 0}"), true},
		"time without unit":                 {valid("limits: {time: 5}"), true},
		"newer format":                      {valid("format: 2"), true},
		"format":                            {valid("format: 1"), false},
		"invalid name":                      {"name: p/q\nstages: [{" + validStage + "}]", true},
		"number as a name":                  {"name: 3\nstages: [{" + validStage + "}]", true},
		"stage does nothing":                {stage("termination: {type: judgment}"), true},
		"agent and command":                 {stage("agent: {model: x/y}, prompt: c, command: {argv: [x]}, termination: {type: judgment}"), true},
		"command and parallel":              {stage("command: {argv: [x]}, parallel: [{" + validStage + "}], termination: {type: judgment}"), true},
		"agent without prompt":              {stage("agent: {model: x/y}, termination: {type: judgment}"), true},
		"agent":                             {stage("agent: {model: x/y}, prompt: c, termination: {type: judgment}"), false},
		"command with prompt":               {stage("command: {argv: [x]}, prompt: c, termination: {type: judgment}"), true},
		"command without program":           {stage("command: {argv: []}, termination: {type: judgment}"), true},
		"command without argv":              {stage("command: {dir: x}, termination: {type: judgment}"), true},
		"no termination":                    {stage("command: {argv: [x]}"), true},
		"unknown termination":               {stage("command: {argv: [x]}, termination: {type: fixd}"), true},
		"fixed without iterations":          {stage("command: {argv: [x]}, termination: {type: fixed}"), true},
		"queue without command":             {stage("command: {argv: [x]}, termination: {type: queue}"), true},
		"queue with iterations":             {stage("command: {argv: [x]}, termination: {type: queue, command: [x], iterations: 2}"), true},
		"judgment with command":             {stage("command: {argv: [x]}, termination: {type: judgment, command: [x]}"), true},
		"fixed with confirmations":          {stage("command: {argv: [x]}, termination: {type: fixed, iterations: 2, confirmations: 2}"), true},
		"no iterations":                     {stage("command: {argv: [x]}, termination: {type: fixed, iterations: 0}"), true},
		"maximum of fixed iterations":       {stage("command: {argv: [x]}, termination: {type: fixed, iterations: 2}, max_iterations: 3"), true},
		"maximum":                           {stage("command: {argv: [x]}, termination: {type: queue, command: [x]}, max_iterations: 3"), false},
		"unknown on_failure":                {stage("command: {argv: [x]}, termination: {type: judgment}, on_failure: retry"), true},
		"on_failure":                        {stage("command: {argv: [x]}, termination: {type: judgment}, on_failure: continue"), false},
		"parallel in parallel":              {stage("parallel: [{name: b, parallel: [{" + validPart + "}]}]"), true},
		"parallel with hooks":               {stage("hooks: {}, parallel: [{" + validPart + "}]"), true},
		"parallel stages":                   {stage("parallel: [{" + validPart + "}]"), false},
		"hooks in parallel":                 {stage("parallel: [{" + validPart + ", hooks: {on_error: {type: shell, command: 'true'}}}]"), false},
		"unknown action in parallel":        {stage("parallel: [{" + validPart + ", hooks: {on_error: {type: shel}}}]"), true},
		"unknown point":                     {valid("hooks: {on_start: {type: shell, command: 'true'}}"), true},
		"unknown point of a stage":          {stage(validKeys + ", hooks: {on_start: {type: shell, command: 'true'}}"), true},
		"points":                            {valid("hooks: {on_session_start: {type: shell, command: 'true'}, on_iteration_start: [{type: shell, command: 'true'}], on_iteration_complete: [], on_error: [], on_stage_complete: [], on_session_complete: []}"), false},
		"points by their names in a policy": {valid("hooks: {SessionStart: [], IterationStart: [], IterationComplete: [], IterationFailed: [], StageComplete: [], SessionComplete: []}"), false},
		"unknown key of an action":          {valid("hooks: {on_error: {type: shell, command: 'true', awaits: true}}"), true},
		"key of another action":             {valid("hooks: {on_error: {type: shell, command: 'true', url: 'http://x'}}"), true},
		"definitions":                       {valid("definitions: {d: {type: shell, command: 'true'}}\nhooks: {on_error: {$ref: d}}"), false},
		"variables":                         {valid("variables: {a: 1}\nenvironment: [SLACK]\ndefaults: {timeout: 5s}\nversion: 2"), false},
		"unknown key of defaults":           {valid("defaults: {timeot: 5s}"), true},
		"disabled global hooks":             {valid("disable_global_hooks: true"), false},
		"disabled pipeline hooks":           {valid("disable_pipeline_hooks: true"), true},
		"disabled pipeline hooks of stage":  {stage(validKeys + ", disable_pipeline_hooks: true"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t: t, dir: t.TempDir()}
			_, loading := pipeline.Load(b.write("pipeline.yaml", tc.text), pipeline.LoadOptions{})
			validating := validateYAML(t, whole, tc.text)
			assert.Equal(t, tc.wrong, loading != nil, "Load: %v", loading)
			assert.Equal(t, tc.wrong, validating != nil, "schema: %v", validating)
		})
	}
}

// With each key for a stage's work, the schema allows and requires the same other keys as Load, in pipelines and in loop files.
func TestSchemaKeysOfStages(t *testing.T) {
	whole, loop := compileSchema(t, pipeline.SchemaID, pipeline.Schema()), compileSchema(t, pipeline.LoopSchemaID, pipeline.LoopSchema())
	others := []string{
		"description: x", "prompt: x", "termination: {type: judgment}", "max_iterations: 3", "on_failure: abort", "hooks: {}",
		"disable_global_hooks: true", "disable_pipeline_hooks: true", "variables: {}", "defaults: {}", "version: 1", "agents: x",
	}
	for _, does := range []string{"agent: {model: x/y}", "command: {argv: [x]}", "loop: ./loop.yaml", "parallel: [{" + validPart + "}]"} {
		for skip := range 3 { // with all that may be required, with one of it, with nothing
			required := []string{"prompt: y", "termination: {type: judgment}"}[min(skip, 2):]
			for _, other := range others {
				keys := []string{"name: a", does, other}
				for _, key := range required {
					needed := does[0] == 'a' || does[0] == 'c' && key[0] == 't'
					if needed && key[0] != other[0] {
						keys = append(keys, key)
					}
				}
				b := &bench{t: t, dir: t.TempDir()}
				b.write("loop.yaml", "{"+validStage+"}")
				stage := "{" + strings.Join(keys, ", ") + "}"
				text := "{name: p, stages: [" + stage + "]}"
				_, loading := pipeline.Load(b.write("pipeline.yaml", text), pipeline.LoadOptions{})
				validating := validateYAML(t, whole, text)
				assert.Equal(t, loading != nil, validating != nil, "%s\nLoad: %v\nschema: %v", text, loading, validating)
				b.write("tested.yaml", stage)
				_, loading = pipeline.Load(b.write("pipeline.yaml", "{name: p, stages: [{name: b, loop: ./tested.yaml}]}"), pipeline.LoadOptions{})
				validating = validateYAML(t, loop, stage)
				assert.Equal(t, loading != nil, validating != nil, "%s\nLoad: %v\nschema: %v", stage, loading, validating)
			}
		}
	}
}
