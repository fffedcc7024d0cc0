package pipeline

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// The URLs of the published schemas. An editor checks a file against the schema for the release that the file names.
const (
	// SchemaID is the URL of the pipeline file schema.
	SchemaID = schemaFolder + "pipeline.schema.json"
	// LoopSchemaID is the URL of the loop file schema.
	LoopSchemaID = schemaFolder + "pipeline-loop.schema.json"

	schemaFolder = "https://raw.githubusercontent.com/grapnel-go/grapnel/" + policy.SchemaVersion + "/docs/"
)

// Schema returns the JSON Schema for pipeline files, for editors. Load also checks that names are unique and files exist, and it
// checks the hooks' conditions.
func Schema() []byte {
	b := newSchemaBuilder()
	b.defs["Stage"] = b.stageForm()
	s := b.object(reflect.TypeFor[Definition]())
	properties(s)["disable_pipeline_hooks"] = form{"const": false, "description": "Only stages and loops can switch off the hooks of the pipeline."}
	return b.document(s, SchemaID, "Grapnel pipeline", "Stages of agents and commands, with hooks. See docs/pipelines.md.")
}

// LoopSchema returns the JSON Schema for loop files, which contain one stage each.
func LoopSchema() []byte {
	b := newSchemaBuilder()
	s := b.stageForm()
	for _, key := range []string{"loop", "parallel"} {
		delete(properties(s), key)
	}
	s["oneOf"] = oneKey("agent", "command")
	s["allOf"] = stageConditions("agent", "command")
	return b.document(s, LoopSchemaID, "Grapnel loop", "A stage that several pipelines can use. See docs/pipelines.md.")
}

// form is a JSON Schema.
type form = map[string]any

// schemaPoints lists the points in pipeline files, in the order in which a session fires them.
var schemaPoints = []struct {
	name  string
	point hooks.PointName
	doc   string
}{
	{"on_session_start", hooks.SessionStart, "Once, before the first iteration."},
	{"on_iteration_start", hooks.IterationStart, "Before each iteration."},
	{"on_iteration_complete", hooks.IterationComplete, "After each iteration that succeeded."},
	{"on_error", hooks.IterationFailed, "After each iteration that failed, with ERROR."},
	{"on_stage_complete", hooks.StageComplete, "After the last iteration of a stage."},
	{"on_session_complete", hooks.SessionComplete, "At the end, unless the session was cancelled."},
}

// schemaDocs describes the keys that this package reads, by their type and name.
var schemaDocs = map[string]string{
	"Definition.name":        "The name of the pipeline. It is the default name of its sessions.",
	"Definition.description": "What the pipeline is for.",
	"Definition.limits":      "Limits of a session with all its iterations. It then ends with the reason limit.",
	"Definition.stages":      "The stages, which run in this order.",

	"Limits.steps":  "The maximum number of steps of its agents.",
	"Limits.tokens": "The maximum number of tokens of its agents.",
	"Limits.cost":   "The maximum cost of its agents, in US dollars.",
	"Limits.time":   "The maximum duration, such as 90m or 2h.",

	"Stage.name":           "The name of the stage, unique in the pipeline.",
	"Stage.description":    "What the stage is for.",
	"Stage.agent":          "The agent of each iteration: a path relative to this file, a name, or the keys of an agent file.",
	"Stage.prompt":         "The input of the agent. ${NAME} is a variable, ${inputs.NAME} an input, ${outputs.STAGE} the output of an earlier stage.",
	"Stage.command":        "The command of each iteration, instead of an agent.",
	"Stage.loop":           "The path or the name of a file with the keys of a stage.",
	"Stage.parallel":       "Stages that run at the same time. The next stage begins when all have ended.",
	"Stage.termination":    "When the stage is complete.",
	"Stage.max_iterations": "The maximum number of iterations; the default is 25.",
	"Stage.max_cost":       "What the iterations may cost together, in US dollars. After that the stage is complete.",
	"Stage.max_time":       "How long the iterations may take together, such as 2h, without the time at gates. After that the stage is complete.",
	"Stage.on_failure":     "After a failed iteration: abort (the default) ends the session as failed, continue starts the next iteration.",

	"Command.argv":    "The program and its arguments. No shell reads them.",
	"Command.dir":     "The working directory, relative to that of the session.",
	"Command.env":     "Further environment variables.",
	"Command.inherit": "Names of variables, or patterns, that the command gets from the environment of grapnel.",
	"Command.timeout": "The maximum duration; the default is 10m.",
	"Command.repeat":  "Whether the command runs again when grapnel ended while it ran; the default is true.",

	"Termination.type":          "fixed: a number of iterations; queue: until a command or a file lists nothing; judgment: until iterations decide to stop.",
	"Termination.iterations":    "The number of iterations, with fixed.",
	"Termination.command":       "The command, with queue. It writes the remaining work; without output the stage is complete.",
	"Termination.file":          "The file that lists the remaining work, with queue instead of a command. When it is empty, the stage is complete.",
	"Termination.confirmations": "How many iterations in a row must decide to stop, with judgment; the default is 2.",
}

// schemaBuilder derives schemas from this package's types. Keys that package policy reads have the forms in its schema.
type schemaBuilder struct {
	defs  form
	rules form // the forms in policy files, by key
}

// newSchemaBuilder returns a builder with the definitions in the policy schema.
func newSchemaBuilder() *schemaBuilder {
	var of struct {
		Properties form            `json:"properties"`
		Defs       map[string]form `json:"$defs"`
	}
	if err := json.Unmarshal(policy.Schema(), &of); err != nil {
		panic(err) // it is valid JSON
	}
	b := &schemaBuilder{defs: form{}, rules: of.Properties}
	for name, f := range of.Defs {
		b.defs[name] = f
	}
	b.defs["hooks"] = pointsForm(properties(of.Defs["hooks"]))
	return b
}

// pointsForm returns the schema for hooks. The names in policy files are allowed, too.
func pointsForm(known form) form {
	all := form{}
	for _, p := range schemaPoints {
		own := known[string(p.point)].(form) //nolint:forcetypeassert // the schema of policies has all points
		all[string(p.point)] = own
		named := maps.Clone(own)
		named["description"] = p.doc
		all[p.name] = named
	}
	return form{"type": "object", "additionalProperties": false, "properties": all}
}

// document returns a schema as JSON.
func (b *schemaBuilder) document(s form, id, title, description string) []byte {
	properties(s)[yamlfile.FormatKey] = form{
		"type": "integer", "minimum": 1, "maximum": fileFormat, "description": "The version of the file format; the default is 1.",
	}
	s["$schema"], s["$id"], s["title"], s["description"] = "https://json-schema.org/draft/2020-12/schema", id, title, description
	s["$defs"] = b.defs
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // tables of this package
	}
	return append(out, '\n')
}

// properties returns an object's forms by key.
func properties(s form) form {
	all, _ := s["properties"].(form)
	return all
}

// object returns the schema for a struct with tags for package yamlfile.
func (b *schemaBuilder) object(t reflect.Type) form {
	all := form{}
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("key"), ",")
		switch {
		case key == "":
			continue
		case f.Type == reflect.TypeFor[elsewhere]():
			all[key] = b.rules[key]
			continue
		}
		described := form{"description": schemaDocs[t.Name()+"."+key]}
		maps.Copy(described, b.value(f.Type, strings.Contains(options, "positive")))
		maps.Copy(described, schemaWords[t.Name()+"."+key])
		all[key] = described
	}
	s := form{"type": "object", "additionalProperties": false, "properties": all}
	if required := yamlfile.RequiredKeys(t); len(required) > 0 {
		s["required"] = required
	}
	return s
}

// schemaWords adds restrictions to a key's form.
var schemaWords = map[string]form{
	"Definition.name":  {"pattern": namePattern.String(), "maxLength": maxName},
	"Stage.name":       {"pattern": namePattern.String(), "maxLength": maxName},
	"Stage.loop":       {"minLength": 1},
	"Stage.on_failure": {"enum": failureWords},
	"Stage.parallel": {"items": form{
		"$ref": "#/$defs/Stage", "properties": form{"parallel": false},
	}},
	"Termination.type": {"enum": []string{Fixed, Queue, Judgment}},
}

// value returns the schema for a type's values.
func (b *schemaBuilder) value(t reflect.Type, positive bool) form {
	switch t {
	case reflect.TypeFor[Agent]():
		return form{"anyOf": []form{{"type": "string", "minLength": 1}, {"type": "object"}}}
	case reflect.TypeFor[time.Duration]():
		return form{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}
	case reflect.TypeFor[Stage]():
		return form{"$ref": "#/$defs/Stage"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return form{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return atLeast(form{"type": "integer"}, "minimum", 1, positive)
	case reflect.Float64:
		return atLeast(form{"type": "number"}, "exclusiveMinimum", 0, positive)
	case reflect.Pointer:
		return b.value(t.Elem(), positive)
	case reflect.Slice:
		return form{"type": "array", "minItems": 1, "items": b.value(t.Elem(), false)}
	case reflect.Map:
		return form{"type": "object", "additionalProperties": b.value(t.Elem(), false)}
	case reflect.Struct:
		return b.refer(t)
	}
	return form{"type": "string"}
}

// atLeast adds a minimum to a number's form.
func atLeast(number form, word string, least int, positive bool) form {
	if positive {
		number[word] = least
	}
	return number
}

// refer adds a struct's schema to the definitions, and returns a reference to it.
func (b *schemaBuilder) refer(t reflect.Type) form {
	s := b.object(t)
	if t == reflect.TypeFor[Termination]() {
		s["allOf"] = terminationConditions()
	}
	b.defs[t.Name()] = s
	return form{"$ref": "#/$defs/" + t.Name()}
}

// terminationConditions returns the conditions that each type of termination has one of its keys.
func terminationConditions() (all []form) {
	for _, name := range slices.Sorted(maps.Keys(terminationKeys)) {
		own := terminationKeys[name]
		then := form{"propertyNames": form{"enum": append([]string{"type"}, own.keys...)}}
		if own.required {
			then["oneOf"] = oneKey(own.keys...)
		}
		all = append(all, form{"if": form{"properties": form{"type": form{"const": name}}, "required": []string{"type"}}, "then": then})
	}
	return all
}

// stageForm returns the schema for stages.
func (b *schemaBuilder) stageForm() form {
	s := b.object(reflect.TypeFor[Stage]())
	s["oneOf"] = oneKey("agent", "command", "loop", "parallel")
	s["allOf"] = stageConditions("agent", "command", "loop", "parallel")
	return s
}

// oneKey requires exactly one of the keys.
func oneKey(keys ...string) (all []form) {
	for _, key := range keys {
		all = append(all, form{"required": []string{key}})
	}
	return all
}

// stageKeys lists a stage's required and forbidden keys, by the key that says what the stage does.
var stageKeys = map[string]struct{ required, excluded []string }{
	"agent":   {[]string{"prompt", "termination"}, nil},
	"command": {[]string{"termination"}, []string{"prompt", "max_cost"}},
	"loop":    {nil, []string{"prompt", "termination", "hooks", "disable_global_hooks", "disable_pipeline_hooks"}},
	"parallel": {nil, []string{"prompt", "termination", "max_iterations", "max_cost", "max_time", "on_failure", "hooks",
		"disable_global_hooks", "disable_pipeline_hooks"}},
}

// stageConditions returns the conditions on a stage's keys.
func stageConditions(keys ...string) (all []form) {
	for _, key := range keys {
		then, excluded := form{}, form{}
		for _, other := range stageKeys[key].excluded {
			excluded[other] = false
		}
		if len(excluded) > 0 {
			then["properties"] = excluded
		}
		if required := stageKeys[key].required; len(required) > 0 {
			then["required"] = required
		}
		all = append(all, form{"if": form{"required": []string{key}}, "then": then})
	}
	return append(all, form{ // a fixed number of iterations has no maximum
		"if": form{"required": []string{"termination"}, "properties": form{
			"termination": form{"properties": form{"type": form{"const": Fixed}}, "required": []string{"type"}},
		}},
		"then": form{"properties": form{"max_iterations": false}},
	})
}
