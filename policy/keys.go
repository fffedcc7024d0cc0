package policy

import (
	"slices"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// key is a key of a file: what may stand under it, as a JSON Schema, and what it is for.
// The loader takes the keys of these tables and no others, and the published schema is
// made of them.
type key struct {
	name string
	form form
	doc  string
}

// form is a JSON Schema.
type form map[string]any

// keyNames returns the names of keys.
func keyNames(tables ...[]key) []string {
	return lo.Map(slices.Concat(tables...), func(k key, _ int) string { return k.name })
}

func list(of form) form { return form{"type": "array", "items": of, "minItems": 1} }

func either(forms ...form) form { return form{"anyOf": forms} }

func oneOf(words ...string) form { return form{"type": "string", "enum": words} }

func newMapping(of form) form { return form{"type": "object", "additionalProperties": of} }

func inDefs(name string) form { return form{"$ref": "#/$defs/" + name} }

// The forms that come often.
var (
	textForm  = form{"type": "string"}
	plainForm = form{"type": []string{"string", "number", "boolean"}}
	flagForm  = form{"type": "boolean"}
	anyForm   = form{}
	nameOf    = form{"type": []string{"string", "number"}, "pattern": namePattern}
	textsForm = either(textForm, list(textForm))
	timeForm  = either(form{"type": "number", "exclusiveMinimum": 0}, form{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`})
	celForm   = form{"type": []string{"string", "boolean"}}
)

func wholeForm(least, most int) form {
	return form{"type": "integer", "minimum": least, "maximum": most}
}

var modeForm = oneOf("enforce", "shadow")

var priorityForm = either(oneOf("guard", "infrastructure", "user", "afterwork"), wholeForm(-1000, 1000))

var failureForm = oneOf("closed", "open", "abort", "retry", "continue", "block", "ignore")

// fileFormat is the format of policy files that this version reads. It changes when a file that was right before would
// mean something else.
const fileFormat = 1

var documentKeys = []key{
	{"policy", nameOf, "The policy's name. Events, spans and lists say policy/id, or library:NAME/id of rules of the library."},
	{yamlfile.FormatKey, wholeForm(1, fileFormat), "The number of the file's format, 1 if left out. A file of a newer format is refused."},
	{"version", plainForm, "The policy's version, free text. It stands on every decision."},
	{"description", textForm, "What the policy is for."},
	{"include", textsForm, "Files whose rules, definitions and variables come before those of this one; paths are relative to this file. " +
		"library:NAME and library:NAME@VERSION are policies of the library."},
	{"required", flagForm, "No layer further in can switch the policy off."},
	{"disable_global_hooks", flagForm, "Switches off what the global layer has, unless it is required."},
	{"disable_pipeline_hooks", flagForm, "Switches off what the pipeline layer has, unless it is required."},
	{"variables", form{"type": "object", "propertyNames": form{"pattern": identifier.String()}}, "Values that conditions and texts name as vars.NAME."},
	{"environment", textsForm, "Names of environment variables that URLs and headers of actions may name as ${NAME}."},
	{"sources", form{"type": "object"}, "Where texts come from: what conditions may ask about the provenance of values."},
	{"definitions", newMapping(inDefs("entry")), "Rules and actions by name, for {$ref: NAME}."},
	{"defaults", inDefs("defaults"), "What holds for the rules of this file that do not say otherwise."},
	{"hooks", inDefs("hooks"), "The rules, by the point at which they are asked."},
}

var defaultsKeys = []key{
	{"mode", modeForm, "enforce, or shadow: judge and report, and change nothing."},
	{"priority", priorityForm, "The priority."},
	{"timeout", timeForm, "The time limit."},
	{"on_failure", failureForm, "What happens where a rule cannot decide."},
	{"retries", wholeForm(0, 100), "How often it is tried again, with on_failure: retry."},
	{"retry_delay", timeForm, "How long between tries."},
	{"then", oneOf("closed", "open", "abort"), "What follows when no try helped."},
}

// commonKeys are those of every rule and action.
var commonKeys = []key{
	{"id", nameOf, "The rule's name in its policy. Needed with a decision."},
	{"description", textForm, "What the rule is for."},
	{"$ref", textForm, "The name of a definition that this is; the other keys replace those of the definition."},
	{"match", inDefs("match"), "What the rule is asked about. Left out, it is everything at its point."},
	{"when", celForm, "A condition, in CEL. The rule is passed over where it is false."},
	{"decision", oneOf(decisionNames...), "What the rule decides where it matches."},
	{"type", oneOf(actionTypes...), "What the action is."},
	{"priority", priorityForm, "Rules of higher priority are asked first; after something happened, last."},
	{"mode", modeForm, "enforce, or shadow: judge and report, and change nothing."},
	{"waiver", inDefs("waiver"), "Puts the rule in shadow until a day."},
	{"timeout", timeForm, "The time limit: 5s, 10m, or a number of seconds."},
	{"timeout_seconds", form{"type": "number", "exclusiveMinimum": 0}, "The time limit in seconds."},
	{"on_failure", failureForm, "What happens where the rule cannot decide: closed, open, abort, retry; continue is open, block is closed."},
	{"on_error", failureForm, "The same as on_failure."},
	{"retries", wholeForm(0, 100), "How often it is tried again, with on_failure: retry. Of http and webhook without that: how often it is sent again."},
	{"retry_delay", timeForm, "How long between tries."},
	{"then", oneOf("closed", "open", "abort"), "What follows when no try helped."},
}

// decisionCommon is the keys that every rule with a decision has besides commonKeys.
var decisionCommon = []key{
	{"reason", textForm, "Why, in a sentence for the model and for people. ${name} stands for a value."},
	{"context", textForm, "What the model is told besides, at points where a rule can add. ${name} stands for a value."},
	{"metadata", newMapping(celForm), "Values to keep with the run, each a CEL expression."},
}

// decisionKeys returns those that belong to one decision. They name every kind of secret,
// which is more than a program should do at its start.
var decisionKeys = sync.OnceValue(func() map[string][]key {
	return map[string][]key{
		"ask": {
			{"within", timeForm, "How long the person has."},
			{"on_timeout", oneOf("reject", "reject_and_continue", "approve"), "What counts as the answer when none comes in time."},
		},
		"rewrite": {
			{"set", newMapping(celForm), "New values by dotted path, each a CEL expression."},
			{"remove", textsForm, "Dotted paths that are taken out."},
		},
		"mock": {
			{"result", anyForm, "What is answered in the tool's place: a text, or a value that is given as JSON."},
			{"failure", flagForm, "Answer as if the tool had failed."},
		},
		"replace": {
			{"result", anyForm, "What stands in the place of the answer: a text, or a value that is given as JSON."},
		},
		"redact": {
			{"secrets", either(flagForm, list(oneOf(redact.Kinds()...))), "Secrets of a well-known form: all, or these kinds."},
			{"pii", either(flagForm, list(oneOf(pii.Kinds()...))), "Personal data: all, or these kinds."},
			{"patterns", textsForm, "Regular expressions (RE2) of what else is taken out."},
			{"with", textForm, "What is put in the place of what the patterns match; [redacted: pattern] if left out."},
		},
	}
})

// actionCommon is the keys that every action has besides commonKeys.
var actionCommon = []key{
	{"await", flagForm, "Whether it is waited for."},
	{"mode", oneOf("enforce", "shadow", "sync", "async"), "async is await: false, sync is await: true."},
	{"observe", flagForm, "The action is told and not asked: its answer decides nothing."},
	{"on_timeout", oneOf("abort", "continue", "skip"), "What happens when it takes too long, where that differs from on_failure."},
}

var waiverKeys = []key{
	{"owner", textForm, "Who answers for it."},
	{"reason", textForm, "Why."},
	{"expires", form{"type": "string"}, "The day, in UTC, on which the rule is in force again: 2026-12-31, or a time in RFC 3339."},
}

var matchKeys = []key{
	{"tool", textsForm, "The tool: its name, a glob such as mcp__*, a /regular expression/, or a list of these."},
	{"args", form{"type": "object"}, "Arguments by dotted path: a pattern for a text, any other value as it is, a list, the word present, or {equals: value}."},
	{"agent", textsForm, "The agent's name, a pattern, or a list of these."},
	{"stage", textsForm, "The pipeline's stage, a pattern, or a list of these."},
	{"step_kind", oneOf(stepKinds...), "Whether the step runs tools or is the final response."},
	{"metadata", form{"type": "object"}, "Values kept with the run or the session: a value, the word present, or {equals: value}."},
	{"depth", either(wholeForm(0, 1000), form{
		"type": "object", "additionalProperties": false,
		"properties": form{"min": wholeForm(0, 1000), "max": wholeForm(0, 1000)},
	}), "How many runs stand above this one: a number, or {min, max}."},
	{"not", inDefs("match"), "What must not match."},
	{"any", list(inDefs("match")), "One of these must match."},
	{"all", form{"type": "array", "items": inDefs("match")}, "All of these must match."},
}

// decisionNames are the decisions that a rule can have.
var decisionNames = []string{
	"allow", "deny", "ask", "stop", "rewrite", "mock", "replace", "withhold", "redact", "approve", "reject", "add_context", "continue",
}
