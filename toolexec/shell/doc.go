// Package shell provides a tool that runs commands with a real shell, bash, in a
// working directory, and ends all processes that a command started.
//
//	bash, err := shell.Tool(shell.Config{Dir: workspace, Timeout: time.Minute})
//	if err != nil {
//		return err
//	}
//	a, err := builder.New().
//		WithDriver(driver).
//		With(capability.UseTools(bash), capability.UseHooks(noPush)).
//		Build().Get()
//
// Programs that run commands themselves use a Shell: New, then Run.
//
// # What a command gets
//
// Each command has its own shell: a changed directory, a variable or a background job
// does not last until the next command. A command begins in Config.Dir. It has an empty
// standard input and no terminal, so that a program that asks for a password fails. It
// does not inherit open files of this program.
//
// Of this program's environment, a command gets only the variables that DefaultEnv
// returns, unless Config.Env names others: keys of model services are not passed on by
// default. The tool adds GRAPNEL_IDEMPOTENCY_KEY, the idempotency key of the call; see
// toolexec.Call. A command that is part of a sampled trace gets TRACEPARENT and
// TRACESTATE. Do not insert values into the text of a command: pass them as variables,
// in Config.Vars or Command.Vars.
//
// # How a command ends
//
// A command has its own session and process group. When its time is up, when the run is
// cancelled, and also when the shell has exited but left processes running, all its
// processes get SIGTERM, and those that remain after Config.Grace get SIGKILL. So a
// server in the background lives only as long as its command. Run does not wait for
// pipes that such processes hold open: the result has the output that was written until
// then.
//
// On Linux, processes that created another session (setsid, daemons) are found, too:
// all descendants of a command carry a mark that the kernel passes on to children, a
// resource limit with an unusual value that restricts nothing. The mark survives a
// cleared environment and the death of the parent. Only a process of root, or a process
// that changes this limit, can remove it. On other systems, such processes are not
// found.
//
// # The answer
//
// The first line says how the command ended (exit code 1, killed by SIGSEGV); both
// streams follow. Only the head and the tail of a long stream are kept, with the number
// of omitted bytes between them; the rest is never in memory. Bytes that are not UTF-8,
// control characters and deceptive characters are replaced, and binary output is not
// shown at all; the answer says so in both cases.
//
// Exit code 0 is a good answer; any other exit code is an answer with Failed set. A
// command that exceeded its time limit has failed without an answer: with a
// *toolexec.TimeoutError around an *Error, whose text is the output until then. Hooks
// that need figures instead of text call ResultOf.
//
// # Limits
//
// Limits limits processes, CPU time, size of files and memory (Linux only). Processes
// are counted a hundred times a second, and the whole command is killed if it has too
// many; for users other than root an additional limit of the kernel stops a fork
// bomb. Without Limits, only time is limited.
//
// # No sandbox
//
// The tool is not a sandbox. A command can do everything that the user of this program
// can do: read that user's files outside of Dir, use the network, signal other
// processes, and read the initial environment of this program in /proc, unless the
// program called Conceal. If that matters, put a hook in front of the tool, and run the
// program in a container or as a separate user.
//
// # Concurrency
//
// A Shell and its tool are immutable and can run any number of commands at the same
// time.
//
// The package works on Unix. On other systems New returns an error.
package shell
