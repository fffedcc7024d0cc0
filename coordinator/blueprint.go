package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

// FieldError says what is wrong with one member of a request.
type FieldError struct {
	// Field is the path of the member, such as "hooks.on_run_start".
	Field string `json:"field"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// InvalidError lists everything that is wrong with a request.
type InvalidError struct{ Fields []FieldError }

// Error returns the mistakes, separated by semicolons.
func (e *InvalidError) Error() string {
	return strings.Join(lo.Map(e.Fields, func(f FieldError, _ int) string { return f.Field + ": " + f.Message }), "; ")
}

// Retryable returns false: the same request stays invalid.
func (*InvalidError) Retryable() bool { return false }

// mistakes collects what is wrong.
type mistakes []FieldError

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, FieldError{field, fmt.Sprintf(format, args...)})
}

// addReserved adds the names that only the coordinator uses.
func (m *mistakes) addReserved(field string, names map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, reservedPrefix) || name == pipeline.LabelPipeline || strings.HasPrefix(name, pipeline.LabelPipeline+".") {
			m.add(field+"."+name, "%s, and names that begin with it or with %s, belong to the coordinator: use another name",
				pipeline.LabelPipeline, reservedPrefix)
		}
	}
}

// addTexts adds the names and values that cannot be stored.
func (m *mistakes) addTexts(field string, texts map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !invisible.IsStorable(name) || !invisible.IsStorable(texts[name]) {
			m.add(field, "%q: contains a control character or is not UTF-8", name)
		}
	}
}

// cover reports whether a mistake is about a field, or about what the field is in.
func (m *mistakes) cover(field string) bool {
	return slices.ContainsFunc(*m, func(f FieldError) bool { return f.Field == field || strings.HasPrefix(field, f.Field+".") })
}

// err returns an *InvalidError that lists each mistake once, by fields; nil if there is none.
func (m *mistakes) err() error {
	if len(*m) == 0 {
		return nil
	}
	slices.SortStableFunc(*m, func(a, b FieldError) int { return strings.Compare(a.Field, b.Field) })
	return &InvalidError{lo.Uniq(*m)}
}

var blueprintName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$`)

// ParseBlueprint reads a blueprint from JSON, strictly: unknown and repeated members are errors. It checks all that can be
// known without other blueprints. With an *InvalidError, it also returns the members that it could read.
func ParseBlueprint(text []byte) (*wire.Blueprint, error) {
	b, m := &wire.Blueprint{}, mistakes{}
	for err := strictjson.UnmarshalStrict(text, b); err != nil; err = strictjson.UnmarshalStrict(text, b) {
		m = append(m, fieldError("", err))
		rest, ok := withoutMember(text, err)
		if !ok || len(m) == maxUnread {
			return b, m.err()
		}
		text, b = rest, &wire.Blueprint{}
	}
	var checked mistakes
	checkMembers(b, &checked)
	m = append(m, lo.Reject(checked, func(f FieldError, _ int) bool { return m.cover(f.Field) })...)
	return b, m.err()
}

// maxUnread is how many unreadable members of a blueprint are listed. Each one costs a reading of the whole text.
const maxUnread = 50

// withoutMember returns a JSON text without the member that an error of strictjson is about. An item of a list becomes null, so that the
// others keep their places.
func withoutMember(text []byte, err error) ([]byte, bool) {
	wrong, ok := errors.AsType[*strictjson.Error](err)
	var all any
	if !ok || wrong.Pointer == "" || strictjson.Unmarshal(text, &all) != nil {
		return nil, false // it is not JSON
	}
	above, name := path.Split(wrong.Pointer)
	at := all
	for step := range strings.SplitSeq(strings.Trim(above, "/"), "/") {
		if above != "/" {
			at = memberOf(at, step)
		}
	}
	name = unescapePointer.Replace(name)
	switch in := at.(type) {
	case map[string]any:
		if _, ok := in[name]; !ok {
			return nil, false
		}
		delete(in, name)
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i >= len(in) || in[i] == nil {
			return nil, false
		}
		in[i] = nil
	default:
		return nil, false
	}
	rest, err := json.Marshal(all)
	return rest, err == nil
}

// unescapePointer reads a name in a JSON pointer.
var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// memberOf returns the value of a member or item, named as in a JSON pointer; nil if there is none.
func memberOf(in any, name string) any {
	switch in := in.(type) {
	case map[string]any:
		return in[unescapePointer.Replace(name)]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
			return in[i]
		}
	}
	return nil
}

// fieldError converts an error of strictjson.
func fieldError(below string, err error) FieldError {
	wrong, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return FieldError{lo.CoalesceOrEmpty(below, "body"), err.Error()}
	}
	field := strings.ReplaceAll(strings.TrimPrefix(wrong.Pointer, "/"), "/", ".")
	return FieldError{lo.CoalesceOrEmpty(strings.Trim(below+"."+field, "."), "body"), wrong.Message}
}

// checkMembers adds what is wrong with the members.
func checkMembers(b *wire.Blueprint, m *mistakes) {
	if !blueprintName.MatchString(b.Name) {
		m.add("name", "%q: expected 1 to 128 letters and digits, with . _ - between them", b.Name)
	}
	knownType := slices.Contains([]wire.Type{wire.Autonomous, wire.Procedural, wire.Pipeline}, b.Type)
	if !knownType {
		m.add("type", "%q: expected %s, %s or %s", b.Type, wire.Autonomous, wire.Procedural, wire.Pipeline)
	}
	for field, schema := range map[string]json.RawMessage{"parameters_schema": b.ParametersSchema, "output_schema": b.OutputSchema} {
		if empty(schema) {
			continue
		}
		if _, err := toolexec.CompileSchema(string(schema)); err != nil {
			m.add(field, "%v", err)
		}
	}
	for _, member := range []struct {
		name string
		set  bool
		of   wire.Type
	}{
		{"system_prompt", b.SystemPrompt != "", wire.Autonomous}, {"agent", !empty(b.Agent), wire.Autonomous},
		{"command", b.Command != nil, wire.Procedural}, {"pipeline", b.Pipeline != nil, wire.Pipeline},
	} {
		if member.set && knownType && b.Type != member.of {
			m.add(member.name, "only a blueprint of type %s has it: remove it, or change the type", member.of)
		}
	}
	switch b.Type {
	case wire.Autonomous:
		if _, err := definitionOf(b); err != nil {
			*m = append(*m, err...)
		}
	case wire.Pipeline:
		checkPipelineFiles(b.Pipeline, m)
		if len(b.Demands) > 0 {
			m.add("demands", "a pipeline is executed by the coordinator: remove them")
		}
		if !empty(b.OutputSchema) {
			m.add("output_schema", "the result of a pipeline is the text of its last stage: remove it")
		}
	case wire.Procedural:
		if b.Command != nil && (len(b.Command.Argv) == 0 || b.Command.Argv[0] == "") {
			m.add("command.argv", "missing: name a program, such as [\"/usr/local/bin/report\"]")
		}
		if b.Command != nil && (b.Command.TimeoutSeconds < 0 || b.Command.TimeoutSeconds > maxSeconds) {
			m.add("command.timeout_seconds", "%d: expected a number from 0 to %d", b.Command.TimeoutSeconds, maxSeconds)
		}
	}
	m.addReserved("demands", b.Demands)
	m.addTexts("demands", b.Demands)
	if _, err := (durable.Job{Demands: b.Demands}).Prepare(); err != nil {
		m.add("demands", "%v", errors.Unwrap(err))
	}
}

// empty reports whether a member is absent, null or an empty object.
func empty(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	return text == "" || text == "null" || text == "{}"
}

// definitionOf returns the definition of the agent of an autonomous blueprint.
func definitionOf(b *wire.Blueprint) (registry.Definition, []FieldError) {
	var d registry.Definition
	if !empty(b.Agent) {
		if err := json.Unmarshal(b.Agent, &d); err != nil {
			return d, fileMistakes("agent", "agent", b.Agent, err)
		}
	}
	var m mistakes
	if d.Instructions != "" && b.SystemPrompt != "" {
		m.add("system_prompt", "agent.instructions is set, too: remove one of them")
	}
	if !empty(b.OutputSchema) && d.Output.Schema != "" {
		m.add("output_schema", "agent.output is set, too: remove it")
	}
	d.Name = b.Name
	d.Description = lo.CoalesceOrEmpty(d.Description, b.Description)
	d.Instructions = lo.CoalesceOrEmpty(d.Instructions, b.SystemPrompt)
	if !empty(b.OutputSchema) {
		d.Output = registry.Output{Schema: registry.Schema(b.OutputSchema)}
	}
	return d, m
}

// ParametersSchema returns the JSON Schema of a blueprint's parameters, also if the blueprint has none of its own.
func ParametersSchema(b *wire.Blueprint) string {
	switch {
	case !empty(b.ParametersSchema):
		return string(b.ParametersSchema)
	case b.Type == wire.Autonomous:
		return `{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}},"additionalProperties":false}`
	}
	return `{"type":"object"}`
}

// checkParameters returns an *InvalidError that lists everything that is wrong with the parameters of a run.
func checkParameters(b *wire.Blueprint, params json.RawMessage) error {
	return checkAgainst(ParametersSchema(b), "parameters", params)
}

// checkOutput returns an error that lists everything that is wrong with a result.
func checkOutput(b *wire.Blueprint, result json.RawMessage) error {
	if empty(b.OutputSchema) {
		return nil
	}
	return checkAgainst(string(b.OutputSchema), "result", result)
}

// checkAgainst checks a value with a schema.
func checkAgainst(schema, field string, value json.RawMessage) error {
	if err := strictjson.CheckObject(string(value)); err != nil {
		return &InvalidError{[]FieldError{fieldError(field, err)}}
	}
	compiled, err := toolexec.CompileSchema(schema)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	err = compiled.Validate(string(value))
	wrong, ok := errors.AsType[*agent.ArgumentsError](err)
	if !ok {
		return err
	}
	return &InvalidError{lo.Map(wrong.Problems, func(p agent.ArgumentProblem, _ int) FieldError {
		return FieldError{field + strings.ReplaceAll(p.Path, "/", "."), p.Message}
	})}
}

// kindOf returns the kind of the runs.
func kindOf(b *wire.Blueprint) durable.Kind {
	switch b.Type {
	case wire.Procedural:
		return durable.KindCommand
	case wire.Pipeline:
		return durable.KindPipeline
	}
	return durable.KindAgent
}

// demandsOf returns the demands of the runs. Runners of a coordinator have the label labelRunner.
func demandsOf(b *wire.Blueprint) map[string]string {
	all := map[string]string{labelRunner: runnerLabel}
	maps.Copy(all, b.Demands)
	if b.Type == wire.Procedural && b.Command == nil {
		all[labelCommand+b.Name] = "yes"
	}
	return all
}
