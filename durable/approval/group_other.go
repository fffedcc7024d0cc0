//go:build !unix

package approval

import "os/exec"

// ownGroup leaves the command as it is, because the system has no process groups. Command then kills only the program.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
