// Package hooks calls funcs before and after everything that an agent does. Hooks observe,
// deny, rewrite, answer instead of a tool, ask a person, and keep a run from ending too
// early.
//
//	var noPush = hooks.On(hooks.AtPreToolUse, "no-push",
//		hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
//			line := bash.Analyse(command, bash.Options{})
//			if !line.Clear() {
//				return c.Deny("the line may run more than it shows: write plain commands")
//			}
//			for git := range line.CommandsNamed("git") {
//				switch git.Sub {
//				case "status", "diff", "log", "add", "commit":
//				default:
//					return c.Deny("nothing is pushed: git may status, diff, log, add and commit")
//				}
//			}
//			return c.Allow()
//		}), hooks.ToolNamed("bash"))
//
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(noPush)).
//		Build().Get()
//
// # Guards
//
// A guard judges what the tool will do, and denies what it cannot judge. Call.Text and
// Call.Decode leave a missing argument empty; RequireText denies a call without its text.
// The same JSON text can be written in many ways, and so can a shell command: package
// policy/bash parses commands, and a guard should name what it allows, not what it forbids.
// A guard for a tool or argument that the agent does not have is an error when the agent is
// built; capability.UseLater declares tools that are added later.
//
// # Short forms
//
// OnCall passes the arguments of one tool's calls as a struct; Patch rewrites only the
// members that change. AlwaysDeny, AlwaysAsk and AlwaysMock give one answer to all calls
// that their matchers match, AlwaysFilter filters results, ContinueUntil makes a run go on
// until a condition is true.
//
// # Controls and observers
//
// On makes a control: its answer counts. Observe makes an observer: it receives the
// decision of the controls, also for denied calls, and changes nothing. The methods of a
// control's context determine which answers it can give: there is no Rewrite at StepEnd.
// The zero Result passes: a hook without an opinion changes nothing.
//
// A hook never changes a state. It returns effects (messages, context, metadata)
// with its answer, and the hooks after it see them. Effects of tool hooks reach
// the state when the step is recorded.
//
// # Order
//
// Hooks of a point are asked by priority, high first, then in the order they were given. At
// the points after something has happened (…End, Post…, …Failed, and similar ones) they are
// asked in reverse, so that pairs of hooks nest like parentheses and a guard has the last
// word. Stop is not one of these points. Controls come first, one after the other; each
// sees the changes of the ones before. Then the observers are called, then detached hooks
// are started.
//
// At PreToolUse, Stop > Deny > Ask > Mock > Allow = Pass. After the first Stop or Deny no
// further control is asked; a later Deny wins over an earlier Ask; the first Mock wins;
// Allow skips nothing. A denied call is answered and the other calls of the step go on. A
// Stop prevents all calls of the step.
//
// A call runs only with arguments that every control has allowed. When a control rewrites a
// call, the controls that have not judged the rewrite, including those that did not match
// before, are asked again, in the same order, until all have judged the same arguments. A
// new answer replaces the previous one, with its effects, question and mock. A control that
// rewrites has judged its own rewrite. If the controls do not agree on a call in four
// rounds, it is denied as a failure of the hooks, whatever their failure policies are.
// Observers are called once, at the end. A control may therefore be asked several times
// about one call; if it counts calls, it must count each call id once.
//
// At ToolFailed and PostToolUse each control sees the result as the ones before left it. A
// withheld result is hidden from all later hooks, and the changes that the tool and earlier
// controls wanted are dropped. The effects of hooks around a call are applied when the step
// is recorded, in call order; hooks around other calls of the step do not see them.
//
// At ToolFailed, PostToolUse, PostInference and PostSubagent a control may answer with a
// filter, a function from text to text:
//
//	func hideKey(_ context.Context, c hooks.ToolResultContext) hooks.Result {
//		return c.Filter(func(text string) string { return strings.ReplaceAll(text, "SECRET-4711", "[key]") })
//	}
//
// It applies to every text that leaves the point: content, reasoning, calls, the error, the
// message of a stop, and the messages, context and metadata that are added by the tool and
// by hooks, even by controls that are asked later. Errors, stops and panics of executors and
// drivers pass these points like results. A filter that panics withholds the text. Filters
// run before a result is cut to its limit, and before journal, events, spans and deltas.
// Events of controls at these points are sent after all controls were asked, with the
// filters applied, and observers see only filtered texts. An error that a filter changed is
// not reachable any more; its kind stays.
//
// Calls whose arguments are not a valid JSON object are answered without calling the hooks
// at PreToolUse. For calls that violate their tool's schema, the hooks are called: a denial
// wins, a rewrite may fix them, otherwise the model gets the schema error. PostToolUse sees
// the answer to every call.
//
// A Stop hook may continue a run that would otherwise end by itself, but not past a limit, a
// cancellation or an error, and only a limited number of times in one run:
// DefaultContinuations, unless the agent sets another number.
//
// # Detached hooks
//
// An observer that is Detached is started and not waited for, on a bounded pool of its
// agent, with a context that outlives the run. It cannot decide anything, and its errors
// are only reported to the agent's observer. Agent.Drain waits until all of them are done,
// Agent.Cancel cancels them and returns when they have ended.
//
// # Failure and time
//
// A panic, a passed deadline, an Err and an invalid answer are failures: the hook could not
// decide. For a control a failure counts as a denial (Closed), for an observer it changes
// nothing (Open), unless WithFailure sets another policy. At Stop a control that fails ends
// the run as stopped, not as done. After a cancellation, no answer of a hook counts as
// permission.
//
// Every hook has a deadline. Without WithTimeout it is DefaultTimeout after the hook first
// uses its context, and the hook must honor it. The limit of WithTimeout applies even to a
// hook that ignores its context. A hook must not keep its context, which ends with the hook.
//
// A rewrite to arguments that violate the tool's schema is a failure, too. Neither the
// rewritten call nor the original runs, whatever the policy.
//
// # Concurrency
//
// Hooks, matchers and sets are immutable. One hook serves all runs of its agent at once: it
// must not keep data of a run in variables of its own. Put it into the run's metadata
// (agent.RunKey) or scratch values (agent.Scratch). PostToolUse and ToolFailed hooks can
// be called at the same time for several parallel tool calls.
package hooks
