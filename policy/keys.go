package policy

import (
	"slices"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// key is a key of a file: the JSON Schema of its value, and its description. The loader accepts exactly the keys of
// these tables, and the published schema is built from them.
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

// Common forms.
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

// fileFormat is the supported version of the format of policy files. It changes when a valid file would get another
// meaning.
const fileFormat = 1

var documentKeys = []key{
	{"policy", nameOf, "The policy's name. Events, spans and lists say policy/id, or library:NAME/id of rules of the library."},
	{yamlfile.FormatKey, wholeForm(1, fileFormat), "The version of the file format; the default is 1. A file of a newer format is refused."},
	{"version", plainForm, "The policy's version, free text. It is part of every decision."},
	{"description", textForm, "What the policy is for."},
	{"include", textsForm, "Files whose rules, definitions and variables come before those of this one; paths are relative to this file. " +
		"library:NAME and library:NAME@VERSION are policies of the library."},
	{"required", flagForm, "Inner layers cannot switch the policy off."},
	{"disable_global_hooks", flagForm, "Switches off the policies of the global layer, except required ones."},
	{"disable_pipeline_hooks", flagForm, "Switches off the policies of the pipeline layer, except required ones."},
	{"variables", form{"type": "object", "propertyNames": form{"pattern": identifier.String()}}, "Values that conditions and texts can use as vars.NAME."},
	{"environment", textsForm, "Names of environment variables that URLs and headers of actions may use as ${NAME}."},
	{"tools", form{"type": "object"}, "What tools do, by their names: effects, records and the roles of arguments."},
	{"sources", form{"type": "object"}, "The origins of texts, for conditions about the provenance of values."},
	{"definitions", newMapping(inDefs("entry")), "Rules and actions by name, for {$ref: NAME}."},
	{"defaults", inDefs("defaults"), "Default settings for the rules of this file."},
	{"hooks", inDefs("hooks"), "The rules, by their point."},
}

var defaultsKeys = []key{
	{"mode", modeForm, "enforce, or shadow: report decisions and enforce none."},
	{"priority", priorityForm, "The priority."},
	{"timeout", timeForm, "The time limit."},
	{"on_failure", failureForm, "What happens when a rule fails to decide."},
	{"retries", wholeForm(0, 100), "The number of retries, with on_failure: retry."},
	{"retry_delay", timeForm, "The time between retries."},
	{"then", oneOf("closed", "open", "abort"), "The failure policy after the last retry."},
}

// commonKeys holds the keys that every rule and action can have.
var commonKeys = []key{
	{"id", nameOf, "The rule's name in its policy. Required with a decision."},
	{"description", textForm, "What the rule is for."},
	{"$ref", textForm, "The name of a definition to use; the other keys override those of the definition."},
	{"match", inDefs("match"), "The matchers of the rule. Without them, it is asked about everything at its point."},
	{"when", celForm, "A condition, in CEL. The rule is skipped when it is false."},
	{"decision", oneOf(decisionNames...), "The rule's decision when it matches."},
	{"type", oneOf(actionTypes...), "The type of the action."},
	{"priority", priorityForm, "Rules of higher priority are asked first; at points after an event, last."},
	{"mode", modeForm, "enforce, or shadow: report decisions and enforce none."},
	{"waiver", inDefs("waiver"), "Puts the rule in shadow until a day."},
	{"timeout", timeForm, "The time limit: 5s, 10m, or a number of seconds."},
	{"timeout_seconds", form{"type": "number", "exclusiveMinimum": 0}, "The time limit in seconds."},
	{"on_failure", failureForm, "What happens when the rule fails to decide: closed, open, abort or retry; continue means open, block means closed."},
	{"on_error", failureForm, "The same as on_failure."},
	{"retries", wholeForm(0, 100), "The number of retries, with on_failure: retry. Without it, for http and webhook: how often the request is resent."},
	{"retry_delay", timeForm, "The time between retries."},
	{"then", oneOf("closed", "open", "abort"), "The failure policy after the last retry."},
}

// decisionCommon holds the keys that every rule with a decision can have in addition to commonKeys.
var decisionCommon = []key{
	{"reason", textForm, "Why, in a sentence for the model and for people. ${name} stands for a value."},
	{"context", textForm, "Additional text for the model, at points where a rule can add it. ${name} stands for a value."},
	{"metadata", newMapping(celForm), "Values to keep with the run, each a CEL expression."},
}

// mostApprovals is the largest quorum.
const mostApprovals = 100

// The keys that restrict who answers a question.
var (
	approversKey = key{
		"approvers", textsForm,
		"Names and roles of those who may answer. Their identity must be verified, so the run must be durable.",
	}
	quorumKey = key{"quorum", wholeForm(1, mostApprovals), "How many different people must approve; the default is 1."}
)

// decisionKeys returns the keys of each decision. It is built on first use, because listing all kinds of secrets takes
// time.
var decisionKeys = sync.OnceValue(func() map[string][]key {
	return map[string][]key{
		"ask": {
			{"within", timeForm, "The time limit for the person's answer."},
			{"on_timeout", oneOf("reject", "reject_and_continue", "approve"), "The answer to assume when none comes in time."},
			approversKey, quorumKey,
		},
		"rewrite": {
			{"set", newMapping(celForm), "New values by dotted path, each a CEL expression."},
			{"remove", textsForm, "Dotted paths to remove."},
		},
		"mock": {
			{"result", anyForm, "The answer in place of the tool: a text, or a value that is answered as JSON."},
			{"failure", flagForm, "Answer as if the tool had failed."},
		},
		"replace": {
			{"result", anyForm, "The replacement of the answer: a text, or a value that is answered as JSON."},
		},
		"redact": {
			{"secrets", either(flagForm, list(oneOf(redact.Kinds()...))), "Secrets of a well-known form: all, or these kinds."},
			{"pii", either(flagForm, list(oneOf(pii.Kinds()...))), "Personal data: all, or these kinds."},
			{"patterns", textsForm, "Regular expressions (RE2) of other texts to redact."},
			{"with", textForm, "The replacement of matches of the patterns; the default is [redacted: pattern]."},
		},
	}
})

// actionCommon holds the keys that every action can have in addition to commonKeys.
var actionCommon = []key{
	{"await", flagForm, "Whether the rule waits for the action."},
	{"mode", oneOf("enforce", "shadow", "sync", "async"), "async is await: false, sync is await: true."},
	{"observe", flagForm, "The action only observes: its answer decides nothing."},
	{"on_timeout", oneOf("abort", "continue", "skip"), "What happens on a timeout, if it differs from on_failure."},
	{"request", oneOf("run", "full"), "In a blueprint: send what is about the run, which is the default, or the full request."},
}

var waiverKeys = []key{
	{"owner", textForm, "The person responsible for the waiver."},
	{"reason", textForm, "The reason for the waiver."},
	{"expires", form{"type": "string"}, "The day, in UTC, on which the rule is enforced again: 2026-12-31, or a time in RFC 3339."},
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
	}), "The number of runs above this one: a number, or {min, max}."},
	{"not", inDefs("match"), "What must not match."},
	{"any", list(inDefs("match")), "One of these must match."},
	{"all", form{"type": "array", "items": inDefs("match")}, "All of these must match."},
}

// decisionNames are the decisions that a rule can have.
var decisionNames = []string{
	"allow", "deny", "ask", "stop", "rewrite", "mock", "replace", "withhold", "redact", "approve", "reject", "add_context", "continue",
}
