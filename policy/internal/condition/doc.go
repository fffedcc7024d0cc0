// Package condition implements the language of conditions in policies: expressions of CEL, the Common Expression
// Language, over the values that a hook sees at its point.
//
//	tool == "write_file" && !path.within(args.path, workspace)
//	!shell.clear(args.command) || shell.commands(args.command).exists(c, c.name == "sudo")
//	url.scheme(args.url) != "https" || !host.matches(url.host(args.url), ["*.example.com"])
//	calls("search") >= 20 || (has(args.amount) && args.amount > 500)
//
// Conditions are typed and checked when a policy is loaded, their cost is bounded, and values are never inserted into
// the expression's text.
//
// # The language
//
// The operators and macros are those of CEL:
//
//	comparison:  == != < <= > >=
//	arithmetic:  + - * / %, and + joins strings and lists
//	logic:       && || !
//	choice:      a ? b : c
//	membership:  x in list, key in map
//	fields:      has(args.path), args.?path.orValue("none")
//	lists:       l.all(x, …), l.exists(x, …), l.exists_one(x, …), l.filter(x, …), l.map(x, …)
//
// Strings are in single or double quotes, and a comment begins with //. The functions of CEL are available, with its
// extensions for strings, lists, sets, math, bindings, two-variable comprehensions and encoders.
//
// ${NAME} means the same as NAME: a typed variable. Inside quotes it is plain text. A string that contains only a
// variable's ${NAME} is an error.
//
// Unknown names and fields, names of other points and mismatched types are errors when the condition is compiled, each with
// its place and the nearest name.
//
// # Variables
//
// At all points:
//
//	point                     string              the hook point
//	agent                     string              the agent's name
//	stage                     string              the stage of the pipeline
//	step                      int                 the run's step, from 0
//	run.id                    string
//	run.session               string
//	run.parent                string              the run that started this run
//	run.root                  string              the topmost run above this one
//	run.depth                 int                 the number of runs above this one
//	run.number                int                 counts the session's runs, from 1
//	run.elapsed               duration            how long the run has taken
//	usage.tokens              int                 used so far by the run and the runs it started
//	usage.input_tokens        int
//	usage.output_tokens       int
//	usage.cache_read_tokens   int                 input that came from a cache
//	usage.cache_write_tokens  int
//	usage.reasoning_tokens    int                 output that was reasoning
//	usage.cost                double              in US dollars; an error if unknown
//	input                     string              the input at InputSubmitted; elsewhere the user's last message
//	metadata                  map(string,dyn)     by name: metadata.tier; cannot be listed
//	actions                   map(string,Action)  earlier actions by id: .status, .output, .response
//	now                       timestamp           the same for all conditions of one event
//	workspace                 string              vars.workspace, else the working directory
//	vars.NAME                 (ofItsValue)        the policy's variables
//
// At the points of a tool call (PreToolUse, PostToolUse, ToolFailed, InterventionRequested):
//
//	tool           string
//	args           map(string,dyn)  the arguments that will run or have run
//	original_args  map(string,dyn)  the arguments that the model gave
//	call.id        string
//	call.index     int              the call's place in its step, from 0
//	call.invalid   string           how the arguments violate the tool's schema; PreToolUse
//	question       string           why approval is needed; InterventionRequested
//
// At the points of interventions:
//
//	approvals  list(Approval)  .call_id, .tool, .question, .action, .by, .reason
//
// At the points after something happened, as each line says:
//
//	result.text          string        PostToolUse, ToolFailed, RunResult, RunFinish
//	result.status        string        executed, failed, mocked, not_executed, unknown; PostToolUse, ToolFailed
//	result.reason        string        why it was not executed: denied, timeout …; PostToolUse, ToolFailed
//	result.is_error      bool          PostToolUse, ToolFailed
//	result.attempts      int           how often the tool was started; PostToolUse, ToolFailed
//	result.duration      duration      PostToolUse, ToolFailed
//	result.data          dyn           the result as JSON; RunResult
//	error                string        at the points of failures, ExecutionEnd and RunFinish
//	reply.text           string        PostInference, StepEnd, Stop, ExecutionEnd
//	reply.tools          list(string)  PostInference, StepEnd
//	reply.finish_reason  string        why the model stopped writing; PostInference, StepEnd
//	reply.model          string        PostInference, StepEnd
//	step_duration        duration      StepEnd
//	step_kind            string        StepEnd
//	continuations        int           how often hooks made the run go on; Stop
//	end.reason           string        Stop, ExecutionEnd
//	end.message          string        Stop, ExecutionEnd
//	end.source           string        what ended the run; Stop, ExecutionEnd
//	end.status           string        ExecutionEnd, RunFinish
//
// At the points of sub-agents, compactions, conversations, pipelines and blueprints:
//
//	subagent.agent          string
//	subagent.instruction    string
//	subagent.result         string           PostSubagent
//	subagent.run            string           the ID of its run
//	subagent.session        string
//	subagent.status         string           PostSubagent, SubagentFailed
//	subagent.duration       duration         PostSubagent, SubagentFailed
//	compaction.messages     int
//	compaction.tokens       int
//	conversation.source     string           startup or resume; ConversationStart
//	conversation.reason     string           prompt_input_exit, other or a program's own word; ConversationEnd
//	conversation.turns      int              the number of earlier runs; at ConversationEnd, of all runs
//	pipeline.name           string
//	pipeline.reason         string           why the pipeline is complete
//	pipeline.changed_files  list(string)     the files that the iteration changed
//	pipeline.stage_outputs  list(string)     the files with the stage's outputs so far
//	parameters              map(string,dyn)  the parameters of a blueprint's run
//
// The pipeline variables, at all points. A missing one is empty, or 0:
//
//	SESSION           string
//	STAGE             string
//	NEXT_STAGE        string  empty in the last stage
//	ITERATION         int     from 1
//	MAX_ITERATIONS    int
//	PROGRESS          string  a path
//	STATUS            string  a path
//	CTX               string  a path
//	LAST_DECISION     string  the decision of the previous iteration
//	LAST_HOOK_STATUS  string  success or failed: the status of the previous action
//	CHANGED_FILES     string  one per line
//	STAGE_OUTPUTS     string  one per line
//	ERROR             string
//	TIMESTAMP         string  ISO 8601
//	CALLBACK_URL      string
//	HOOK_RESPONSE     string
//	SPAWN_OUTPUT      string
//
// # Functions
//
//	calls           int                  calls(tool), calls(): the number of calls in this run
//	calls_ok        int                  the number of calls that succeeded
//	denied          int                  the number of calls that were denied
//	texts           list(string)         the strings and numbers in a value, also in lists and maps, with member names
//	glob            bool                 glob(text, pattern or list): *, ?, [a-z], [!a-z], \
//	path.within     bool                 path.within(path, dir or list): whether the path is inside, after links and .. are resolved
//	path.matches    bool                 path.matches(path, pattern or list): ** stands for any number of names
//	path.mayMatch   bool                 path.mayMatch(path, pattern or list): like path.matches, and the path may itself be a pattern
//	path.resolve    string               the path with all links followed
//	path.clean      string               path.clean, base, dir and ext read only the text, not the disk
//	path.base       string
//	path.dir        string
//	path.ext        string
//	url.host        string               in lower case, without the port
//	url.port        int                  the port, or the scheme's default port, or 0
//	url.scheme      string
//	url.path        string
//	url.query       string
//	url.user        string
//	host.matches    bool                 host.matches(host, pattern or list): name, *.name, address, network
//	host.private    bool                 whether the host is this machine or in a private network
//	shell.analyse   shell.Analysis       the possible effects of a bash line; see package policy/bash
//	shell.commands  list(shell.Command)
//	shell.files     list(shell.File)     a pattern (*.go) is followed by the files that it matches
//	shell.hosts     list(shell.Host)
//	shell.opaque    list(string)         reasons: code, input …, and "unparseable"; empty when the lists are complete
//	shell.clear     bool                 the same as: shell.opaque is empty
//	c.flag          bool                 c.flag("r", "recursive"), of a shell.Command
//	c.reached       bool                 c.reached("pipe"): whether a step of that kind leads to the command
//
// The objects of shell analysis have these fields; package policy/bash documents them:
//
//	shell.Analysis: clear, unparseable, open_quote, commands, files, hosts, opaque
//	shell.Command: name, kind, listed, sub, words, args, operands, known, dirs, code, language, effects, via
//	shell.File: path, known, access, command, exists and more
//	shell.Host: name, port, variable, command
//	shell.Opaque: reason, detail, command
//
// In a word that is only partly known, "…" stands for the unknown rest.
//
// Paths are relative to the workspace; "~" is the home directory. The functions read the disk now, and it may change
// before the tool runs:
//
//   - path.within is true only if the path is inside both when links are followed before ".." is resolved and when they are
//     followed after it.
//   - path.matches is true if the path matches as written or with its links resolved. It follows links at the beginning of
//     the pattern: use it in rules that deny.
//   - path.mayMatch is also true if wildcards or braces in the path name a file that the pattern matches: ".env*" names
//     .env. But "*" and "*.json", which also match ordinary files, name nothing. It ignores case.
//   - shell.files lists a pattern and the files that it matches, at most 200 for a line, not counting links. If there are
//     more, the pattern's field more is true; if they are too expensive to look up, known is false. The pattern of
//     find -name is not looked up. The field exists is false only if the disk has no such file.
//
// An incomplete URL is an error. So is a host other than a plain name or address with an optional port, such as
// good.com%2eevil.com.
//
// calls, calls_ok and denied count recorded steps. In the current step, calls also counts the earlier calls for which a
// condition was tested.
//
// A program can add its own Functions. Their Call receives the Input, and with it the run's state.
//
// # Values
//
// Whole numbers in arguments are ints with all their digits, or uints when they are too large for an int; numbers with a
// fraction or an exponent are doubles. Whole numbers and doubles are compared by their exact values:
// 9007199254740993 > 9007199254740992.0 is true.
//
// A number that these types cannot represent exactly is an error as soon as a condition uses it, even within lists and
// maps: a whole number too large for both, a double beyond 2^53, a fraction with too many digits. So is a literal or a
// conversion to double that would be rounded.
//
// # Failure
//
// These are errors, neither true nor false: a missing field, a division by zero, values whose types an operator
// does not accept, a cost above the limit, and a context that has ended. Pass the error to the Fail method of the hook's
// context, as policy rules do; the hook's failure policy then decides. An EvalError names the failed part, its
// place, and the values with their types.
//
// As always in CEL, a || b is true if one side is true, and a && b is false if one side is false, even if the other side
// is an error. An expression that fails for all values does not compile.
//
// # Cost
//
// An expression's text has at most 16 KiB. An expression may cost Options.CostLimit: about one unit for each operation,
// each value, and each ten bytes of text that is read or created. Calls with a larger result, such as replace, join,
// format or +, fail before they run if that cost exceeds the rest of the limit. An expression therefore takes at most
// about a hundred bytes of memory for each unit of its limit.
//
// A regular expression must be written in the condition or in vars. Regular expressions, strings and patterns have limits
// of their own, and yaml.parse refuses text with aliases.
//
// Comparisons, text tests such as startsWith and matches, and the functions of this package, joined by &&, || and !, take
// about 0.1 µs; all others about 0.4 µs.
//
// # Concurrency
//
// A Language, a Condition and an Expression are immutable and safe for concurrent use. An Input is safe for concurrent use
// while the context that it was made from is valid.
package condition
