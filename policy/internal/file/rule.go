package file

import (
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy/internal/points"
)

// Rule is one rule or action of a document, merged with the definition that it refers to.
type Rule struct {
	Mapping
	Common
	Decides
	Acts
	// Keys has the keys of its decision or its type of action: a pointer to one of the structs below, or nil.
	Keys any

	Defaults Defaults // of its file
	Library  string   // the library policy that contains it; empty for a user's rule
	Point    *points.Point
	PointKey string // the point's name in the file
	What     string // the rule's name in errors
}

// Common holds the keys that every rule and action can have.
type Common struct {
	ID          string        `key:"id" form:"name" doc:"The rule's name in its policy. Required with a decision."`
	Description string        `key:"description" doc:"What the rule is for."`
	Ref         yamlfile.Node `key:"$ref" form:"text" doc:"The name of a definition to use. Keys beside it override its keys."`
	Match       yamlfile.Node `key:"match" form:"match" doc:"The matchers of the rule. Without them, it is asked about everything at its point."`
	When        string        `key:"when" form:"cel" doc:"A condition, in CEL. The rule is skipped when it is false."`
	Decision    string        `key:"decision" form:"decision" doc:"The rule's decision when it matches."`
	Type        string        `key:"type" form:"type" doc:"The type of the action."`
	Priority    *int          `key:"priority" form:"priority" range:"-1000 1000" doc:"Rules of higher priority are asked first; at points after an event, last."`
	Waiver      yamlfile.Node `key:"waiver" form:"waiver" doc:"Puts the rule in shadow until a day."`
	Timeout     time.Duration `key:"timeout" doc:"The time limit: 5s, 10m, or a number of seconds."`
	TimeLimit   time.Duration `key:"timeout_seconds" form:"seconds" doc:"The time limit in seconds."`
	OnFailure   string        `key:"on_failure" words:"closed open abort retry continue block ignore" doc:"What happens when the rule fails to decide: closed, open, abort or retry; continue means open, block means closed."`
	OnError     string        `key:"on_error" words:"closed open abort retry continue block ignore" doc:"The same as on_failure."`
	Retries     *int          `key:"retries" range:"0 100" doc:"The number of retries, with on_failure: retry. Without it, for http and webhook: how often the request is resent."`
	RetryDelay  time.Duration `key:"retry_delay" doc:"The time between retries."`
	Then        string        `key:"then" words:"closed open abort" doc:"The failure policy after the last retry."`
}

// Decides holds the keys that every rule with a decision can have in addition to Common.
type Decides struct {
	Enforced string        `key:"mode" words:"enforce shadow" doc:"enforce, or shadow: report decisions and enforce none."`
	Reason   yamlfile.Node `key:"reason" form:"text" doc:"Why, in a sentence for the model and for people. ${name} stands for a value."`
	Context  yamlfile.Node `key:"context" form:"text" doc:"Additional text for the model, at points where a rule can add it. ${name} stands for a value."`
	Metadata yamlfile.Node `key:"metadata" form:"cels" doc:"Values to keep with the run, each a CEL expression."`
}

// People holds the keys that restrict who answers a question.
type People struct {
	Approvers []string `key:"approvers" form:"people" doc:"Names and roles of those who may answer. Their identity must be verified, so the run must be durable."`
	Quorum    int      `key:"quorum" range:"1 100" doc:"How many different people must approve; the default is 1."`
}

// Keys of decisions.
type (
	// Ask holds the keys of the decision ask.
	Ask struct {
		People
		Within    time.Duration `key:"within" doc:"The time limit for the person's answer."`
		OnTimeout string        `key:"on_timeout" words:"reject reject_and_continue approve" doc:"The answer to assume when none comes in time."`
	}
	// Rewrite holds the keys of the decision rewrite.
	Rewrite struct {
		Set    yamlfile.Node `key:"set" form:"cels" doc:"New values by dotted path, each a CEL expression."`
		Remove []string      `key:"remove" doc:"Dotted paths to remove."`
	}
	// Mock holds the keys of the decision mock.
	Mock struct {
		Result  yamlfile.Node `key:"result" form:"any" doc:"The answer in place of the tool: a text, or a value that is answered as JSON."`
		Failure bool          `key:"failure" doc:"Answer as if the tool had failed."`
	}
	// Replace holds the keys of the decision replace.
	Replace struct {
		Result yamlfile.Node `key:"result" form:"any" doc:"The replacement of the answer: a text, or a value that is answered as JSON."`
	}
	// Redact holds the keys of the decision redact.
	Redact struct {
		Secrets  yamlfile.Node `key:"secrets" form:"secrets" doc:"Secrets of a well-known form: all, or these kinds."`
		PII      yamlfile.Node `key:"pii" form:"pii" doc:"Personal data: all, or these kinds."`
		Patterns []string      `key:"patterns" doc:"Regular expressions (RE2) of other texts to redact."`
		With     string        `key:"with" doc:"The replacement of matches of the patterns; the default is [redacted: pattern]."`
	}
)

// Acts holds the keys that every action can have in addition to Common.
type Acts struct {
	Await     *bool         `key:"await" doc:"Whether the rule waits for the action."`
	Manner    string        `key:"mode" words:"enforce shadow sync async" doc:"async is await: false, sync is await: true."`
	Observe   bool          `key:"observe" doc:"The action only observes: its answer decides nothing."`
	OnTimeout yamlfile.Node `key:"on_timeout" words:"abort continue skip" doc:"What happens on a timeout, if it differs from on_failure."`
	Request   string        `key:"request" words:"run full" doc:"In a blueprint: send what is about the run, which is the default, or the full request."`
}

// Keys of actions by their type. Package policy converts most of them to the action, so their fields are in the action's order.
type (
	// Process holds the keys of programs.
	Process struct {
		Dir      string            `key:"dir" doc:"The working directory."`
		Env      map[string]string `key:"env" doc:"Further variables of its environment."`
		Inherit  []string          `key:"inherit" doc:"More environment variables of this program to pass on, in addition to the usual ones; a pattern such as AWS_* is possible."`
		MaxBytes int               `key:"max_bytes" range:"1 67108864" doc:"The most bytes of output to keep."`
	}
	// Command holds the keys of a command action.
	Command struct {
		Argv []string `key:"argv" form:"argv" doc:"The program and its arguments, without a shell."`
		Process
	}
	// Shell holds the keys of a shell action.
	Shell struct {
		Text string `key:"command" doc:"The command for bash, unchanged; values are in its environment, as \"$NAME\"."`
		Process
	}
	// HTTP holds the keys of an http action.
	HTTP struct {
		URL      string            `key:"url" doc:"The URL: https, or http on the loopback interface. ${NAME} stands for a variable after the host, or for a listed environment variable."`
		Method   string            `key:"method" doc:"The method; the default is POST."`
		Headers  map[string]string `key:"headers" doc:"Headers to send along; ${NAME} as in the URL."`
		Body     any               `key:"body" doc:"The body, as JSON; ${NAME} in its strings stands for a value. The default is the request."`
		Fields   []string          `key:"fields" doc:"The members of the request to send if there is no body."`
		Env      []string          `key:"env" doc:"Environment variables that the URL and the headers may name, besides the policy's own."`
		Private  []string          `key:"private" doc:"Private addresses that may be reached, such as 10.1.0.0/16."`
		MaxBytes int               `key:"max_bytes" range:"1 67108864" doc:"The maximum size of the request's body, and of the answer's."`
	}
	// Webhook holds the keys of a webhook action.
	Webhook struct {
		CallbackPort int `key:"callback_port" range:"1 65535" doc:"The port for the callback, with await. The default is 8765 at the points of pipelines, and any port elsewhere."`
		HTTP
	}
	// GateWebhook holds the keys of a gate's request.
	GateWebhook struct {
		HTTP
		Timeout time.Duration `key:"timeout"`
	}
	// MCPTool holds the keys of an mcp_tool action.
	MCPTool struct {
		Server    string         `key:"server" doc:"The MCP server's name."`
		Tool      string         `key:"tool" doc:"The tool's name."`
		Arguments map[string]any `key:"arguments" doc:"The arguments of the call; the default is the request."`
	}
	// Agent holds the keys of an agent action.
	Agent struct {
		Name  string         `key:"agent_name" doc:"The agent's name."`
		Input map[string]any `key:"input" doc:"The input; the default is the request."`
	}
	// Spawn holds the keys of a spawn action.
	Spawn struct {
		Pipeline string         `key:"pipeline" doc:"The pipeline's name."`
		Inputs   map[string]any `key:"inputs" doc:"The inputs; nothing else is passed."`
	}
	// Gate holds the keys of a gate.
	Gate struct {
		People
		By       string        `key:"by" words:"person callback file command" doc:"Who opens it."`
		Webhook  yamlfile.Node `key:"webhook" form:"object" doc:"By callback: the request that tells a person, with ${CALLBACK_URL}; keys as of an http action."`
		Port     int           `key:"port" range:"1 65535" doc:"By callback: the port to listen on; the default is any port."`
		File     string        `key:"file" doc:"By file: the file that must appear, or change."`
		Existing bool          `key:"existing" doc:"By file: a file that exists already counts."`
		Argv     []string      `key:"argv" form:"argv" doc:"By command: the program to run repeatedly; exit code 0 opens the gate, 1 means not yet."`
		Every    time.Duration `key:"every" doc:"The time between two checks."`
		Reason   string        `key:"reason" doc:"A sentence for the person who must approve; ${NAME} stands for a value."`
	}
	// Prompt holds the keys of a prompt action.
	Prompt struct {
		Rule     string `key:"rule" doc:"The rule by which the model judges."`
		Model    string `key:"model" doc:"The model; the default is the driver's."`
		MaxBytes int    `key:"max_bytes" range:"1 67108864" doc:"The most bytes to show the model."`
	}
	// Func holds the keys of a func action.
	Func struct {
		Name string `key:"func" doc:"The name of a Go func that the program has registered."`
	}
)

// Defaults holds the default settings for the rules of a file.
type Defaults struct {
	Mapping

	Mode       string        `key:"mode" words:"enforce shadow" doc:"enforce, or shadow: report decisions and enforce none."`
	Priority   *int          `key:"priority" form:"priority" range:"-1000 1000" doc:"The priority."`
	Timeout    time.Duration `key:"timeout" doc:"The time limit."`
	OnFailure  string        `key:"on_failure" words:"closed open abort retry continue block ignore" doc:"What happens when a rule fails to decide."`
	Retries    *int          `key:"retries" range:"0 100" doc:"The number of retries, with on_failure: retry."`
	RetryDelay time.Duration `key:"retry_delay" doc:"The time between retries."`
	Then       string        `key:"then" words:"closed open abort" doc:"The failure policy after the last retry."`
}

// Waiver holds the keys of a waiver.
type Waiver struct {
	Owner   string `key:"owner" doc:"The person responsible for the waiver."`
	Reason  string `key:"reason" doc:"The reason for the waiver."`
	Expires string `key:"expires" form:"loose" doc:"The day, in UTC, on which the rule is enforced again: 2026-12-31, or a time in RFC 3339."`
}

// Match holds the keys of a match.
type Match struct {
	Tool     yamlfile.Node `key:"tool" form:"texts" doc:"The tool: its name, a glob such as mcp__*, a /regular expression/, or a list of these."`
	Args     yamlfile.Node `key:"args" form:"object" doc:"Arguments by dotted path: a pattern for a text, any other value as it is, a list, the word present, or {equals: value}."`
	Agent    yamlfile.Node `key:"agent" form:"texts" doc:"The agent's name, a pattern, or a list of these."`
	Stage    yamlfile.Node `key:"stage" form:"texts" doc:"The pipeline's stage, a pattern, or a list of these."`
	StepKind string        `key:"step_kind" words:"tool_execution final_response" doc:"Whether the step runs tools or is the final response."`
	Metadata yamlfile.Node `key:"metadata" form:"object" doc:"Values kept with the run or the session: a value, the word present, or {equals: value}."`
	Depth    yamlfile.Node `key:"depth" form:"depth" range:"0 1000" doc:"The number of runs above this one: a number, or {min, max}."`
	Not      yamlfile.Node `key:"not" form:"match" doc:"What must not match."`
	Any      yamlfile.Node `key:"any" form:"matches" doc:"One of these must match."`
	All      yamlfile.Node `key:"all" form:"matches, none" doc:"All of these must match."`
}

// Equals holds the key of a value to compare with.
type Equals struct {
	Equals yamlfile.Node `key:"equals"`
}

// Depth is a range of depths. A single number is both its ends.
type Depth struct {
	Min int  `key:"min" range:"0 1000"`
	Max *int `key:"max" range:"0 1000"`
}

// DepthOf reads a range, or a number.
func DepthOf(n yamlfile.Node) (d Depth) {
	if n.Kind() == yamlfile.NumberNode {
		depth := key{name: "depth", most: 1000}.number(n)
		return Depth{lo.FromPtr(depth), depth}
	}
	MappingOf(n).Decode("depth", nil, &d)
	return d
}

var bands = map[string]int{
	"guard": hooks.PriorityGuard, "infrastructure": hooks.PriorityInfrastructure,
	"user": hooks.PriorityUser, "afterwork": hooks.PriorityAfterwork,
}
