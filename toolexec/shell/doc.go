// Package shell provides a tool that runs commands with bash in a working directory. It ends all processes that a
// command started.
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
// # The command's environment
//
// Each command has its own shell. A changed directory, a variable or a background job does not last until the next
// command. A command begins in Config.Dir. It has an empty standard input and no terminal, so that a program that asks
// for a password fails. It does not inherit open files of this program.
//
// From this program's environment, a command gets only the variables that DefaultEnv returns, unless Config.Env names
// others. By default, it does not get model services' keys. The tool adds GRAPNEL_IDEMPOTENCY_KEY, the call's
// idempotency key; see toolexec.Call. A command that is part of a sampled trace gets TRACEPARENT and TRACESTATE. Do not
// insert values into a command's text. Pass them as variables, in Config.Vars or Command.Vars.
//
// # How a command ends
//
// A command has its own session and process group. All its processes are ended when its time is up, when the run is
// cancelled, and when the shell exits but leaves processes running. They get SIGTERM and, if they remain after
// Config.Grace, SIGKILL. So a background server lives only as long as its command. Run does not wait for pipes that
// such processes hold open. The result has the output written until then.
//
// On Linux, the package also finds processes that created another session (setsid, daemons). All descendants of a
// command carry a mark that the kernel passes on to children: a resource limit with an unusual value that restricts
// nothing. The mark survives a cleared environment and the parent's death. Only root's processes, or a process that
// changes this limit, can remove it. On other systems, such processes are not found.
//
// # The answer
//
// The first line says how the command ended (exit code 1, killed by SIGSEGV). Both streams follow. For a long stream,
// only the head and the tail are kept, with the number of omitted bytes between them. The rest is never in memory.
// Control characters, deceptive characters and bytes that are not UTF-8 are replaced. Binary output is not shown at
// all. The answer says so in both cases.
//
// Exit code 0 is a successful answer. Any other exit code is an answer with Failed set. A command that exceeded its
// time limit has failed without an answer. The error is a *toolexec.TimeoutError around an *Error, whose text is the
// output until then. Hooks that need figures instead of text call ResultOf.
//
// # Limits
//
// Limits limits processes, CPU time, file size and memory (Linux only). Processes are counted a hundred times a second,
// and the whole command is killed if it has too many. For users other than root, an additional kernel limit stops a
// fork bomb. Without Limits, only time is limited.
//
// # No sandbox
//
// The tool is not a sandbox. A command can do everything that this program's user can do: read that user's files
// outside of Dir, use the network, and signal other processes. It can also read this program's initial environment in
// /proc, unless the program called Conceal. If that matters, put a hook in front of the tool, and run the program in a
// container or as a separate user.
//
// # Concurrency
//
// A Shell and its tool are immutable and can run any number of commands at the same
// time.
//
// The package works on Unix. On other systems New returns an error.
package shell
