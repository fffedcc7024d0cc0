// Package shell is a tool that runs commands with a real shell: bash, in a working
// directory, with an end to all that a command started.
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
// Each command has a shell of its own: a directory it changed to, a variable it set
// and a job it started are gone with the next one. It begins in Config.Dir, reads
// nothing on its standard input, and has no terminal, so that what would ask for a
// password fails. No other file of this program is open in it.
//
// Of the environment of this program it gets what DefaultEnv names and nothing else:
// keys of model services stay here, unless Config.Env names them. The tool adds
// GRAPNEL_IDEMPOTENCY_KEY, which names the call; see toolexec.Call. A command that is
// part of a sampled trace gets TRACEPARENT and TRACESTATE. A value is never put into
// the text of a command: it goes in as a variable, in Config.Vars or Command.Vars.
//
// # How a command ends
//
// A command has a session and a process group of its own. When its time is up, when
// the run is cancelled, and also when it is done and has left something running, all
// its processes get SIGTERM, and what is still there after Config.Grace gets SIGKILL.
// So a server put into the background lives as long as its command. Nothing waits for
// pipes that such processes hold open: output is what came until then.
//
// On Linux, processes that made a session of their own (setsid, daemons) are found,
// too: all that come of a command bear a mark that the kernel hands on to children, a
// limit of a kind that limits nothing. Clearing the environment or losing the parent
// does not remove it; a process of root can, and one that sets that very limit. On
// other systems those processes are not found.
//
// # What the model is told
//
// The first line says how it ended (exit code 1, killed by SIGSEGV), then come both
// streams. Of a long stream head and tail are kept, with the number of bytes left out
// between them; the rest is never in memory. Bytes that are no text, control characters
// and characters that deceive the eye are replaced, and binary output is not shown at
// all; both is said.
//
// Exit code 0 is a good answer, another one is an answer that says it failed. A
// command that took too long has failed as a tool does that gave no answer: with a
// *toolexec.TimeoutError around an *Error, whose text is what was written until then.
// Hooks that want figures and not text ask ResultOf.
//
// # Limits
//
// Limits bounds processes, CPU time, size of files and memory (Linux only). Processes
// are counted a hundred times a second, and a command that has too many is killed
// whole; for users other than root a limit of the kernel stands behind that, which a
// fork bomb cannot outrun. Without limits, time is the only bound.
//
// # What it is not
//
// It is no sandbox. A command may do what the user may do who runs this program: read
// the files of that user outside of Dir, use the network, signal other processes, and
// read in /proc what the environment of this program was when it began, unless the
// program called Conceal. Put a hook in front of the tool, and the program into a
// container or under a user of its own, where that matters.
//
// # Concurrency
//
// A Shell and its tool are immutable and run any number of commands at once.
//
// The package runs on Unix. Elsewhere New says that it does not.
package shell
