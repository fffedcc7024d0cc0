// Package audit writes down what agents did, for people who have to know it later:
// an append-only file of JSON lines, one for each run, tool call, answer and decision.
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
//	run_started   a run has let its input in
//	tool_call     the hooks let a call through; written before anything runs
//	tool_result   a call was answered: executed, failed, mocked or not executed, and why
//	decision      a hook denied, stopped, asked, mocked, rewrote, replaced, withheld, or made the run go on
//	run_ended     a run has ended, however it did: status, who stopped it, what it used
//
// An Entry is a line; its fields are the format, and Entry.Version counts the changes
// of it that a reader must know of. Members may be added without a new version.
//
// What was said and done is not in it, but hashes of it: of the arguments as they ran
// and, where a hook rewrote them, as the model gave them; of the result as the model
// was told it, after all PostToolUse hooks, so that what was redacted or withheld
// does not get here by its hash either. Names of tools are written as the model gave
// them, if they are not long: it may call an unknown tool. With Options.Content the texts are there,
// too: arguments, results, reasons. Results are again what PostToolUse let out;
// arguments and reasons pass through no such hook, which is what Options.Clean is for.
//
// Who reads a log of plain hashes can try what the arguments may have been. With
// Options.Key they are keyed (HMAC-SHA256), and only who has the key can try.
//
// # Order
//
// tool_call is written by a control that is asked last at PreToolUse: no tool runs
// without one, and there is none for a call that a hook denied. A call that a hook
// answers, or that a person says no to, has one; its tool_result says so. tool_result by one that is asked last at
// PostToolUse, and there is one for every call. Priority has their numbers: a hook of
// yours beyond them is not seen.
//
// # Failure
//
// What cannot be written down must not happen. By default a line that cannot be
// written keeps the run from beginning, denies the call, withholds the result. With
// hooks.Abort in Options.Failure it fails the run, with hooks.Open it changes nothing.
// A decision, and the end of a run, are facts by then: a failure there is told to the
// agent's observer, and kept for Log.Err, unless Failure is hooks.Abort, which fails
// the run for a decision, too.
//
// # Concurrency
//
// A Log serves any number of runs and agents at once. Each line goes out in one write,
// so that several processes may append to one file. Should one of them die, or find
// the disk full, in the middle of a line, what another writes next stands behind it on
// the same line, and both cannot be read; only a log that is opened later, or the one
// that failed itself, begins a new one. Where that matters, give each process its file.
// A file that is moved away (by logrotate) is written to where it is until Close.
// A log that is opened while another process writes a line may begin with an empty line: readers pass over those.
package audit
