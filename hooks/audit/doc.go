// Package audit writes an audit log of agents' actions. The log is an append-only file of JSON lines for the start and
// end of runs, tool calls, their results and hooks' decisions.
//
//	log, err := audit.Open("/var/log/agents/audit.jsonl", audit.Options{})
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(tools...), capability.UseHooks(log.Hooks()...)).
//		Build().Get()
//
// # Format
//
//	run_started   a run has accepted its input
//	tool_call     the hooks allowed a call; written before anything runs
//	tool_result   a call has its result: executed, failed, mocked or not executed, and why
//	decision      a hook denied, stopped, asked, mocked, rewrote, replaced, withheld, or continued the run
//	run_ended     a run has ended in any way: its status, the stop reason, its usage
//
// Each line is an Entry. Its fields are the format. Entry.Version increases with each incompatible change of the
// format. New members do not change it.
//
// The log holds hashes, not texts. It hashes the arguments that the tool got, and the model's arguments if a hook
// rewrote them. It hashes the result after all PostToolUse hooks, so that not even a hash of redacted or withheld text
// is written. Tool names are written as the model gave them, up to 128 bytes, because a model can call an unknown tool.
// Options.Content adds arguments, results and reasons as text. Results are as the model received them after
// PostToolUse. Arguments and reasons do not pass through such a hook, so use Options.Clean to remove secrets from them.
//
// A reader of plain hashes can test guesses at the arguments. With Options.Key the hashes are keyed (HMAC-SHA256),
// and only a reader with the key can test guesses.
//
// # Order
//
// The control that runs last at PreToolUse writes tool_call. A tool never runs without this line, and a denied call
// does not have one. Calls that a hook answers or a person rejects have one, and their tool_result says so. The control
// that runs last at PostToolUse writes tool_result, one for every call. Both hooks have an extreme priority. The log
// does not see decisions by hooks with a more extreme priority.
//
// # Failure
//
// An action that cannot be logged must not happen. By default a failed write prevents the run's start, denies the call
// or withholds the result. With hooks.Abort in Options.Failure, a failed write fails the run. With hooks.Open it
// changes nothing. The lines decision and run_ended record past events. A failure to write them is reported to the
// agent's observer and by Log.Err. With hooks.Abort, a failure to write a decision fails the run, too.
//
// # Concurrency
//
// A Log can serve any number of runs and agents at the same time. Each line is written in one write, so that several
// processes can append to one file. If a process dies or finds the disk full in the middle of a line, another process's
// next line continues that line. Neither line can be read. Only a log that is opened later, or the log that failed,
// starts a new line. If this matters, give each process its own file. If the file is moved (by logrotate), the log
// keeps writing to the moved file until Close. A log that is opened while another process writes a line can begin with
// an empty line. Readers skip empty lines.
package audit
