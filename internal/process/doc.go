// Package process runs programs such that there is an end to all that they started: for tools and hook actions that run
// commands.
//
//	var stdout bytes.Buffer
//	r, err := process.Run(ctx, process.Command{
//		Path: "/usr/bin/lint", Args: []string{"check", "--strict"}, Env: os.Environ(), Stdin: []byte("{}"),
//		Stdout: &stdout, Timeout: time.Minute, Grace: 2 * time.Second,
//	})
//
// A program has a session and a process group of its own. When its time is up, when ctx is done, and also when it has
// exited and left something running, all its processes get SIGTERM, and what is still there after the grace SIGKILL.
// Pipes that such processes hold open are not waited for: output is what came until then.
//
// On Linux, processes that made a session of their own are found, too: all that come of a program bear a mark that the
// kernel hands on to children, a limit of a kind that limits nothing. A program that is not Gated may have started
// something that left its session before the mark was set; that is possible only for as long as one system call takes.
//
// The package runs on Unix. Elsewhere Run says that it does not.
package process
