// Package adkguard lets package guard decide on the tool calls of agents that are built with the Agent Development Kit (adk).
//
//	a := adkguard.New(g)
//	desk, err := a.NewAgent(config) // in place of llmagent.New
//	r, err := runner.New(runner.Config{Agent: desk, PluginConfig: a.PluginConfig()})
//
// NewAgent seals tools and toolsets. A sealed tool asks the guard and then runs, with exactly the arguments that were
// judged. A denial, a mock and a rejection are the tool's answer. Tools that adk adds, such as transfer_to_agent, are
// judged, too. Streamed answers are read to their end, filtered, and then shown as one chunk. Without the plugin, or
// in an agent that NewAgent has not made, no call runs. Only in agents that agenttool starts, nothing notices it.
//
// # Asking a person
//
// When guard.Config.Approver parks a call, adk asks for a confirmation. Its payload has the tool and the arguments that
// would run. The answer to a rejected call may have a payload with a "reason", and "end": true ends the run. The stored
// events keep the question and the ledger, encrypted, so that another process with the same guard.Config.Key can continue.
// Whoever may write in the user's name can answer, and nothing proves who did. Questions with approvers need an
// Approver that does not park. An agent that a tool starts cannot ask, and neither can tools that adk adds: such calls
// are denied. An answer that does not count lets the model make the call again, which is asked anew.
//
// # Sessions
//
// An invocation, with its resumptions, is a session. The agents to which it transfers share it, and so do tasks and
// single turns. Rules count the invocation's calls. Answers from earlier invocations are strangers' texts. An
// agent that a tool starts, with agenttool or its own runner, has a child session. When a session stops, the next model
// call is answered with the reason, and loops of agents end.
//
// # The user's words
//
// These are the messages with which invocations begin. What an agent writes in the user's name is not, and neither is
// what a user says later in live mode.
//
// # Limits
//
// Numbers in arguments are float64 before the guard sees them. Tools that the model's service runs are refused, because
// nothing sees their calls. A task begins without callbacks for tools: the guard judges it when the model has answered,
// and cannot ask. A task that a callback or a plugin begins in the model's place is refused. Callbacks after the guard can
// change what it has filtered, and a plugin whose callback answers for an event must come after the guard's, which keeps
// the ledger there. Tools that workflow nodes and agents of your own run themselves are not judged, and a runner that such
// an agent starts takes its message for the user's. Only answers are filtered: not what a tool writes into its own question,
// state and artifacts, nor what a client answers later for a call that takes long. When an invocation goes on after a call
// whose answer was not stored, rules that count calls deny.
package adkguard
