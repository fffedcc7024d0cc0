// Package audit writes an audit log of what agents did: an append-only file of JSON lines for the start and end of
// runs, tool calls, their results and the decisions of hooks.
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
// # What is written
//
//	run_started   a run has accepted its input
//	tool_call     the hooks let a call through; written before anything runs
//	tool_result   a call has its result: executed, failed, mocked or not executed, with the reason
//	decision      a hook denied, stopped, asked, mocked, rewrote, replaced, withheld, or continued the run
//	run_ended     a run has ended in any way: its status, what stopped it, what it used
//
// Each line is an Entry; its fields are the format. Entry.Version increases with each incompatible change of the
// format; new members do not change it.
//
// The log holds hashes, not texts: of the arguments that the tool got; of the model's arguments, if a hook rewrote
// them; and of the result after all PostToolUse hooks, so that not even a hash of redacted or withheld text is
// written. Tool names are written as the model gave them, up to 128 bytes, since a model may call an unknown tool.
// Options.Content adds the texts of arguments, results and reasons. Results are those that the model received
// after PostToolUse; arguments and reasons pass through no such hook, so use Options.Clean to remove secrets from
// them.
//
// A reader of plain hashes can test guesses at the arguments. With Options.Key the hashes are keyed (HMAC-SHA256),
// and only a reader with the key can test guesses.
//
// # Order
//
// The control that runs last at PreToolUse writes tool_call: no tool runs without one, and a call that a hook
// denied has none. A call that a hook answers or a person rejects does have one; its tool_result says so. The
// control that runs last at PostToolUse writes tool_result, one for every call. Both hooks have an extreme
// priority; the log does not see the decisions of hooks with a more extreme one.
//
// # Failure
//
// What cannot be logged must not happen. By default a failed write keeps the run from starting, denies the call or
// withholds the result. With hooks.Abort in Options.Failure it fails the run, with hooks.Open it changes nothing.
// The lines decision and run_ended record what has already happened: a failure to write them is reported to the
// agent's observer and by Log.Err. With hooks.Abort, a failure to write a decision fails the run, too.
//
// # Concurrency
//
// A Log serves any number of runs and agents concurrently. Each line is one write, so several processes may append to
// one file. If a process dies or finds the disk full in the middle of a line, the next line of another process
// continues that line, and neither can be read. Only a log that is opened later, or the log that failed, starts a new
// line. If this matters, give each process its own file. If the file is moved (by logrotate), the log keeps writing
// to the moved file until Close. A log that is opened while another process writes a line may begin with an empty
// line, so readers must skip empty lines.
package audit
