// Package process runs programs and ends all processes that they start. It is for tools and hook actions that
// run commands.
//
//	var stdout bytes.Buffer
//	r, err := process.Run(ctx, process.Command{
//		Path: "/usr/bin/lint", Args: []string{"check", "--strict"}, Env: os.Environ(), Stdin: []byte("{}"),
//		Stdout: &stdout, Timeout: time.Minute, Grace: 2 * time.Second,
//	})
//
// A program has its own session and process group. If it exceeds its time, if ctx is done, or if it exits and leaves
// processes running, all its processes receive SIGTERM and, after the grace period, SIGKILL. Run does not wait for
// pipes that such processes hold open; output that arrives later is lost.
//
// On Linux, processes that created their own session are found, too: all descendants of a program have a mark
// that the kernel passes on to children, a limit without effect. If a program is not Gated, a child may have
// left its session before the mark was set, in the time of one system call.
//
// The package runs on Unix. On other systems, Run returns an error.
package process
