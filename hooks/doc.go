// Package hooks calls funcs before and after everything that an agent does. A hook can
// observe, deny or rewrite, answer instead of a tool, ask a person, and prevent that a run
// ends too early.
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
// A guard is a hook that judges a tool call before it runs, and denies calls that it cannot judge. Call.Text and
// Call.Decode leave a missing argument empty. RequireText denies a call without its text. The same value can be written
// in JSON in many ways, and so can a shell command. Package policy/bash parses commands. A guard should list allowed
// commands, not forbidden ones. Building an agent fails if a guard names a tool or argument that the agent does not
// have; capability.UseLater declares tools that are added later.
//
// # Short forms
//
// OnCall passes the arguments for one tool as a struct. Patch rewrites only the members that change. AlwaysDeny,
// AlwaysAsk and AlwaysMock give one answer to all calls that their matchers match. AlwaysFilter filters results.
// ContinueUntil makes a run continue until a condition is true.
//
// # Controls and observers
//
// On returns a control: its answer has an effect. Observe returns an observer: it receives the controls' decision, also
// for denied calls, and changes nothing. A control can give the answers for which its context has methods.
// StepEndContext, for example, has no Rewrite. The zero Result means Pass: the hook has no opinion and changes nothing.
//
// A hook never changes a state. It returns effects (messages, context, metadata) with its
// answer, and later hooks see them. Effects of tool hooks reach the state when the step is
// recorded.
//
// # Order
//
// A point's hooks are asked by priority, high first, then in the order they were given. At points after something has
// happened (…End, Post…, …Failed, and similar ones) they are asked in reverse order. Pairs of hooks then nest like
// parentheses, and a guard is asked last. Stop is not one of these points. Controls are asked first, one after the
// other. Each sees the changes by earlier controls. Then the observers are called, then detached hooks are started.
//
// At PreToolUse, Stop > Deny > Ask > Mock > Allow = Pass. After the first Stop or Deny no further control is asked. A
// later Deny wins over an earlier Ask. The first Mock wins. Allow does not skip other hooks. A denied call is answered
// and the step's other calls continue. A Stop prevents all calls in the step.
//
// A call runs only with arguments that every control has allowed. When a control rewrites a call, the controls that
// have not judged the rewrite are asked again, in the same order, until all have judged the same arguments. Controls
// that did not match before are included. A new answer replaces the previous one, with its effects, question and mock.
// A control that rewrites has judged its own rewrite. If the controls do not agree on a call in four rounds, the call
// is denied as a hook failure, regardless of their failure policies. Observers are called once, at the end. A control
// can therefore be asked several times about one call. If it counts calls, it must count each call ID once.
//
// At ToolFailed and PostToolUse each control sees the result as changed by earlier controls. A withheld result is
// hidden from all later hooks, and effects from the tool and earlier controls are dropped. Effects from hooks around a
// call are applied when the step is recorded, in call order. Hooks around the step's other calls do not see them.
//
// At ToolFailed, PostToolUse, PostInference and PostSubagent a control can answer with a
// filter, a function from text to text:
//
//	func hideKey(_ context.Context, c hooks.ToolResultContext) hooks.Result {
//		return c.Filter(func(text string) string { return strings.ReplaceAll(text, "SECRET-4711", "[key]") })
//	}
//
// A filter applies to every text that leaves the point: content, reasoning, calls, the error, a stop's message, and the
// messages, context and metadata that the tool and hooks add, including controls that are asked later. Errors, stops
// and panics of executors and drivers pass these points like results. A filter that panics withholds the text. Filters
// run before a result is cut to its limit, and before the text reaches the journal, events, spans and deltas. Controls'
// events at these points are sent after all controls were asked, with the filters applied. Observers see only filtered
// text. If a filter changes an error, a new error of the same kind replaces it.
//
// Calls whose arguments are not a valid JSON object are answered without calling the hooks at PreToolUse. For calls
// that violate their tool's schema, the hooks are called. A hook can deny such a call or fix it with a rewrite.
// Otherwise the model receives the schema error. PostToolUse sees the answer to every call.
//
// A Stop hook can continue a run that would otherwise end by itself, but not past a limit, a cancellation or an error.
// It can do so DefaultContinuations times in one run, unless the agent sets another number.
//
// # Detached hooks
//
// The run does not wait for an observer that is detached with Hook.Detach. The hook runs in its agent's bounded pool,
// with a context that outlives the run. It cannot decide anything, and its errors are only reported to the agent's
// observer. Agent.Drain waits until all detached hooks are done. Agent.Cancel cancels them and returns when they have
// ended.
//
// # Failure and time
//
// A panic, a passed deadline, an error and an invalid answer are failures: the hook could not decide. A control's
// failure counts as a denial (Closed), and an observer's failure changes nothing (Open), unless WithFailure sets
// another policy. At Stop a control that fails ends the run as stopped, not as done. After a cancellation, no hook's
// answer counts as permission.
//
// Every hook has a deadline. Without WithTimeout it is DefaultTimeout after the hook first
// uses its context, and the hook must honor it. The limit of WithTimeout applies even to a
// hook that ignores its context. A hook must not keep its context, which ends with the hook.
//
// A rewrite to arguments that violate the tool's schema is a failure, too. Neither the
// rewritten call nor the original runs, regardless of the policy.
//
// # Concurrency
//
// Hooks, matchers and sets are immutable. One hook serves all its agent's runs, also at the same time, so it must not
// keep run data in its own variables. Put such data into the run's metadata (agent.RunKey) or scratch values
// (agent.Scratch). PostToolUse and ToolFailed hooks can be called at the same time for several parallel tool calls.
package hooks
