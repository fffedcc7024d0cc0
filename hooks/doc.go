// Package hooks asks and tells funcs what an agent is about to do and has done:
// they watch, deny, rewrite, answer in a tool's place, ask a person, and keep a
// run from ending too early.
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
// Call.Decode leave a missing argument empty; RequireText denies a call without its
// text. Text of JSON has many spellings, and so has a line of a shell: package
// policy/bash reads lines, and a guard names what it allows, not what it forbids.
// A guard for a tool or argument that the agent does not have is an error where the agent
// is built; capability.UseLater declares those that come later.
//
// # Short forms
//
// OnCall gets the arguments of one tool's calls as a struct; Patch rewrites the members that
// change. AlwaysDeny, AlwaysAsk and AlwaysMock give one answer to all calls that their matchers
// match, AlwaysFilter cleans results, ContinueUntil makes a run go on until something is true.
//
// # Controls and observers
//
// On makes a control: its answer counts. Observe makes an observer: it is told
// what the controls decided, denied calls included, and changes nothing. What a
// control may answer is what the context it was given has methods for: there is
// no Rewrite at StepEnd. The zero Result passes: a hook that says nothing changes
// nothing.
//
// A hook never changes a state. It returns effects (messages, context, metadata)
// with its answer, and the hooks after it see them. Effects of tool hooks reach
// the state when the step is recorded.
//
// # Order
//
// Hooks of a point are asked by priority, high first, then in the order they were
// given; at the points after something happened (…End, Post…, …Failed, and all others
// that tell of what is done) in reverse, so that a capability's pair nests and a guard
// has the last word. Stop is none of them. Controls come first, one
// after the other, each seeing what the ones before left. Then the observers are
// told, then detached hooks are started.
//
// At PreToolUse, Stop > Deny > Ask > Mock > Allow = Pass. The first Stop or Deny
// ends the asking; a later Deny wins over an earlier Ask; the first Mock wins;
// Allow skips nothing. A denied call is answered and the other calls of the step
// go on. A Stop keeps all calls of the step from running.
//
// What every control allowed is what runs. When a control rewrites a call, the controls
// that have not judged the rewrite, those that did not match before among them, are asked
// again, in the same order, until all have judged the same arguments. A new answer
// replaces the one before, with its effects, question and mock. A control that rewrites has
// judged its own rewrite. A call on which the controls do not agree in four rounds is
// denied as a failure of the hooks, whatever their failure policies say. Observers are told
// once, at the end. A control may therefore be asked several times about one call: what it
// counts, it counts once for a call id.
//
// At ToolFailed and PostToolUse each control sees what the ones before left of the
// result. What is withheld is gone for all that come after, with the changes that the
// tool, and controls that were asked earlier, wanted. The effects of hooks around a call are applied when the step is
// recorded, in call order; hooks around other calls of the step do not see them.
//
// At ToolFailed, PostToolUse, PostInference and PostSubagent a control may answer with a
// filter, a function from text to text:
//
//	func hideKey(_ context.Context, c hooks.ToolResultContext) hooks.Result {
//		return c.Filter(func(text string) string { return strings.ReplaceAll(text, "SECRET-4711", "[key]") })
//	}
//
// It applies to every text that leaves the point: content, reasoning, calls, the error, the
// message of a stop, and the messages, context and metadata that the tool and hooks add,
// those of controls that are asked later among them. Errors, stops and panics of executors
// and drivers pass these points like results. A filter that panics withholds the text.
// Filters run before a result is cut to its limit, and before journal, events, spans and
// deltas: what controls say there is told once all of them were asked, as the filters leave
// it, and so is what observers see. An error in which a filter changed something cannot be
// reached any more; its kind stays.
//
// Calls whose arguments cannot be read as one JSON object are answered without
// asking PreToolUse. Calls that break their tool's schema are asked about: a
// denial wins, a rewrite may mend them, otherwise the model gets the schema's
// complaint. PostToolUse sees the answer to every call.
//
// A Stop hook may make a run go on that would end by itself, but not past a limit,
// a cancel or an error, and only so often in one run: DefaultContinuations, if the
// agent does not say otherwise.
//
// # Detached hooks
//
// An observer that is Detached is started and not waited for, on a bounded pool of
// its agent, with a context that outlives the run. It cannot decide anything, and
// its errors are only told to the agent's observer. Agent.Drain waits until all of
// them are done, Agent.Cancel ends them and returns when they have ended.
//
// # Failure and time
//
// A panic, a passed deadline, an Err and an answer that makes no sense are
// failures: the hook could not decide. For a control that is taken for a no
// (Closed), for an observer it changes nothing (Open), unless WithFailure says
// otherwise. At Stop a control that fails ends the run as stopped, not as done.
// After cancelling, no answer is a permission.
//
// Every hook has a deadline: DefaultTimeout from when it first looks at its context,
// which it must honour; or the one that WithTimeout sets, which holds even for a hook
// that does not. A hook must not keep its context: it ends with the hook.
//
// Arguments that a hook rewrote into ones that break the tool's schema are a failure,
// too, and never run; nor does then the original, whatever the policy.
//
// # Concurrency
//
// Hooks, matchers and sets are immutable. One hook serves all runs of its agent at
// once: it must keep nothing of a run in variables of its own. What belongs to a
// run goes into its metadata (agent.RunKey) or its scratch values (agent.Scratch).
// PostToolUse and ToolFailed hooks are called for parallel tool calls at once.
package hooks
