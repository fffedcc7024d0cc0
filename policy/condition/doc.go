// Package condition is the language in which policies say when they apply: expressions of CEL, the Common Expression
// Language, over what a hook sees. They are typed, checked when they are loaded, bounded in what they may cost, and given
// values as values, never as text.
//
//	language, err := condition.New(condition.Options{Variables: map[string]any{"workspace": "/srv/app"}})
//	// …
//	outside, err := language.Compile(`tool == "write_file" && !path.within(args.path, workspace)`, hooks.PreToolUse)
//	// …
//
//	stay := hooks.On(hooks.AtPreToolUse, "stay", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
//		yes, err := outside.Test(ctx, condition.Of(c))
//		switch {
//		case err != nil:
//			return c.Fail(err) // a call without a path, too: what cannot be judged is denied
//		case yes:
//			return c.Deny("stay in the workspace")
//		}
//		return c.Pass()
//	})
//
// # The language
//
// That of CEL: ==, !=, <, <=, >, >=, +, -, *, /, %, &&, ||, !, in, a ? b : c, texts in either quotes, lists, maps, has(x.y),
// l.all(x, …), l.exists(x, …), l.exists_one(x, …), l.filter(x, …), l.map(x, …), args.?name.orValue(""), the functions of
// CEL, and its extensions for strings, lists, sets, math, bindings, two-variable comprehensions and encoders. A comment
// begins with //.
//
// ${NAME} is the same as NAME: a variable with a type, wherever it stands but in quotes. In quotes it is text; a text that
// is nothing but the ${NAME} of a variable is an error, because it was meant to be one.
//
// An unknown name, a name of another point, a field that an object does not have and values whose types do not go
// together are errors when a condition is compiled, each with its place and what may have been meant.
//
// # Variables
//
// At all points:
//
//	point                string              the hook point
//	agent                string              the agent's name
//	stage                string              the stage of the pipeline
//	step                 int                 the step of the run, from 0
//	run.id               string
//	run.session          string
//	run.parent           string              the run that started this one
//	run.root             string              the first of that line
//	run.depth            int                 how many runs stand above
//	run.number           int                 of the session's runs, from 1
//	run.elapsed          duration            how long the run has taken
//	usage.tokens         int                 what the run used so far, with those that it started
//	usage.input_tokens   int
//	usage.output_tokens  int
//	usage.cache_read_tokens  int             the part of the input that a cache had
//	usage.cache_write_tokens  int
//	usage.reasoning_tokens  int              the part of the output that was thinking
//	usage.cost           double              US dollars; an error when it is unknown
//	input                string              what is to be let in; elsewhere what the user said last
//	metadata             map(string,dyn)     by name: metadata.tier; cannot be listed
//	actions              map(string,Action)  earlier actions by id: .status, .output, .response
//	now                  timestamp           the same for all conditions on one occasion
//	workspace            string              vars.workspace, else the working directory
//	vars.NAME            (ofItsValue)        the variables of the policy
//
// At the points of a tool call (PreToolUse, PostToolUse, ToolFailed, InterventionRequested):
//
//	tool                 string
//	args                 map(string,dyn)     as they would run, or ran
//	original_args        map(string,dyn)     as the model gave them
//	call.id              string
//	call.index           int                 in its step, from 0
//	call.invalid         string              what breaks the tool's schema; PreToolUse
//	question             string              why a person is asked; InterventionRequested
//
// Of a person's approvals:
//
//	approvals            list(Approval)      .call_id, .tool, .question, .action, .by, .reason; the points of interventions
//
// After something happened:
//
//	result.text          string              PostToolUse, ToolFailed, RunResult, RunFinish
//	result.status        string              executed, failed, mocked, not_executed, unknown; PostToolUse, ToolFailed
//	result.reason        string              why not: denied, timeout …; PostToolUse, ToolFailed
//	result.is_error      bool                PostToolUse, ToolFailed
//	result.attempts      int                 how often the tool was started; PostToolUse, ToolFailed
//	result.duration      duration            PostToolUse, ToolFailed
//	result.data          dyn                 the result as JSON; RunResult
//	error                string              at the points of failures, ExecutionEnd and RunFinish
//	reply.text           string              PostInference, StepEnd, Stop, ExecutionEnd
//	reply.tools          list(string)        PostInference, StepEnd
//	reply.finish_reason  string              why the model stopped writing; PostInference, StepEnd
//	reply.model          string              PostInference, StepEnd
//	step_duration        duration            StepEnd
//	step_kind            string              StepEnd
//	continuations        int                 how often the run was made to go on; Stop
//	end.reason           string              Stop, ExecutionEnd
//	end.message          string              Stop, ExecutionEnd
//	end.source           string              who ended the run; Stop, ExecutionEnd
//	end.status           string              ExecutionEnd, RunFinish
//
// Of sub-agents, compactions, pipelines and blueprints, at their points:
//
//	subagent.agent       string
//	subagent.instruction  string
//	subagent.result      string              PostSubagent
//	subagent.run         string              the id of its run
//	subagent.session     string
//	subagent.status      string              PostSubagent, SubagentFailed
//	subagent.duration    duration            PostSubagent, SubagentFailed
//	compaction.messages  int
//	compaction.tokens    int
//	pipeline.name        string
//	pipeline.reason      string              why it is complete
//	parameters           map(string,dyn)     of the run of a blueprint
//
// The names of pipelines, at all points; what was not given is empty, or 0:
//
//	SESSION              string
//	STAGE                string
//	NEXT_STAGE           string              empty at the last
//	ITERATION            int                 from 1
//	MAX_ITERATIONS       int
//	PROGRESS             string              a path
//	STATUS               string              a path
//	CTX                  string              a path
//	LAST_DECISION        string              of the iteration before
//	LAST_HOOK_STATUS     string              success or failed, of the action before
//	CHANGED_FILES        string              one to a line
//	STAGE_OUTPUTS        string              one to a line
//	ERROR                string
//	TIMESTAMP            string              ISO 8601
//	CALLBACK_URL         string
//	HOOK_RESPONSE        string
//	SPAWN_OUTPUT         string
//
// # Functions
//
//	calls                int                 calls(tool), calls(): how often in this run
//	calls_ok             int                 … with a good answer
//	denied               int                 … denied
//	texts                list(string)        the texts and numbers in a value, in lists and maps too, names included
//	glob                 bool                glob(text, pattern or list): *, ?, [a-z], [!a-z], \
//	path.within          bool                path.within(path, dir or list): is it in there, links and .. followed
//	path.matches         bool                path.matches(path, pattern or list): ** is any number of names
//	path.resolve         string              where it leads
//	path.clean           string              these four only take the text apart
//	path.base            string
//	path.dir             string
//	path.ext             string
//	url.host             string              small letters, without port
//	url.port             int                 or that of the scheme, or 0
//	url.scheme           string
//	url.path             string
//	url.query            string
//	url.user             string
//	host.matches         bool                host.matches(host, pattern or list): name, *.name, address, network
//	host.private         bool                this machine, or a network that is not the internet
//	shell.analyse        shell.Analysis      what a line of bash may do; see package policy/bash
//	shell.commands       list(shell.Command)
//	shell.files          list(shell.File)    patterns (*.go) are followed by what they match on the disk
//	shell.hosts          list(shell.Host)
//	shell.opaque         list(string)        reasons: code, input …, and "unparseable"; empty when the list is whole
//	shell.clear          bool                the same as: shell.opaque is empty
//	c.flag               bool                c.flag("r", "recursive"), of a shell.Command
//	c.reached            bool                c.reached("pipe"), by a step of that kind
//
// A shell.Analysis has clear, unparseable, open_quote, commands, files, hosts and opaque; a shell.Command has name, kind, sub, words,
// args, operands, known, dirs, code, language and via; a shell.File has path, known, access, command and more; a shell.Host has
// name, port and command; a shell.Opaque has reason, detail and command. A word that is not known as a whole has "…" in it.
//
// Behind a file that is a pattern stand those that it matches on the disk as it is now: a name says more than a pattern,
// and a link leads elsewhere. Of a line, 200 are listed besides links; more is true of a pattern that matches others, and
// one that is too much to look through is not known.
//
// Paths are relative to the workspace; "~" is the home directory. path.within says yes only when a path is inside whether
// links are followed before ".." is taken away or after. path.matches says yes when the path matches as it is written or
// where it leads, and follows links at the beginning of a pattern: it is for rules that deny. Both look at the disk as it is
// now; what is there when the tool runs may be something else. A text that is no whole URL is an error, because programs
// differ in what they make of it, and so is a host in which something else stands than a name or an address, and a port:
// good.com%2eevil.com.
//
// Counters count the steps that are recorded, and the calls before this one in the step under way that a condition was
// asked about (Of).
//
// Other packages add Functions: their Call is given the Input, and with it the state of the run.
//
// # Values
//
// Arguments are read once for each call. Whole numbers are ints with all their digits, or uints beyond that; numbers with a
// fraction or an exponent are doubles. A whole number that is too large for either, and a double beyond 2^53, where doubles
// have no digits for whole numbers any more, is an error as soon as a condition touches it: it does not compare as some
// other number.
//
// # Failure
//
// A field that is not there, a division by zero, values of types that an operator is not for, a cost that is too high and a
// context that has ended are errors, and neither true nor false: give them to the Fail of the context, so that the failure policy of the
// hook decides. As always in CEL, a || b is true when one of them is, and a && b false when one of them is, whatever is
// wrong with the other: the answer does not depend on it. An EvalError names the part, its place, and the values with their
// types. An expression that fails whatever the values are does not compile.
//
// # Cost
//
// An expression is at most 16 KiB of text. One without loops, and without functions whose results may be longer than what
// they are given, looks at its values a fixed number of times, and is not counted. All others may cost Options.CostLimit:
// about one for each operation, for each value, and for each ten bytes of text that it looks at or makes. A call is paid
// before it runs: text.replace(…), join, format, + and the others that make more than they are given fail when the rest of
// the limit does not pay for the result, and so do calls that compare each element with each other. So no expression
// takes more memory than some hundred bytes for each unit of its limit, whatever it is given. The value of an Expression is
// no larger than the limit, either. A value of a variable that is read from text is read once for an occasion.
//
// Regular expressions must be written in the condition or be one of vars; they, texts and patterns have limits of their
// own. yaml.parse refuses texts with aliases.
//
// What is plain is judged without CEL's interpreter, to the same end: comparisons, in, has, startsWith, endsWith, contains,
// matches, and the functions of this language, of arguments, of variables and of constants, joined by &&, || and !. That
// takes some 0.1 µs, and no allocation but for what functions make. All else, and whatever is an error, is CEL's: some 0.4 µs.
//
// # Events as JSON
//
// FromJSON makes an occasion of a JSON object, to try policies out. It has the members that an action is given (version,
// point, hook, run, step, tool, call_id, arguments, original_arguments, invalid, result, input, answer, error, status,
// question, subagent, compaction, continuations, variables …), and agent, stage, elapsed, now, step_kind, usage, metadata,
// calls (by tool: calls, ok, denied), actions (by id), call_index, reply, end, pipeline and parameters.
//
// # Concurrency
//
// A Language, a Condition and an Expression are immutable and serve thousands of runs at once. So does an Input, for as
// long as the context that it was made of is valid.
package condition
