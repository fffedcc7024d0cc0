// Package process runs programs and ends all processes that they start. It is for tools and hook actions that
// run commands.
//
//	var stdout bytes.Buffer
//	r, err := process.Run(ctx, process.Command{
//		Path: "/usr/bin/lint", Args: []string{"check", "--strict"}, Env: os.Environ(), Stdin: []byte("{}"),
//		Stdout: &stdout, Timeout: time.Minute, Grace: 2 * time.Second,
//	})
//
// A program has its own session and process group. If it exceeds its time limit, if ctx is done, or if it exits and
// leaves processes running, all its processes receive SIGTERM and, after the grace period, SIGKILL. Run does not wait
// for pipes that such processes hold open; later output is lost.
//
// On Linux, Run also finds processes that created their own session. It marks the program with a limit without effect,
// which the kernel passes on to all descendants. Unless the program is Gated, a child may leave the session before the
// mark is set, within the time of one system call.
//
// Run works on Unix. On other systems, it returns an error. OwnGroup, EndGroup and KillGroup are for commands that the
// caller runs itself, on every system.
package process
