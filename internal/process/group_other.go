//go:build !unix

package process

import "os/exec"

// OwnGroup changes nothing, because there are no process groups.
func OwnGroup(*exec.Cmd) {}

// EndGroup sends nothing, because no signal asks a process to end here.
func EndGroup(*exec.Cmd) {}

// KillGroup kills the started command alone.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
