//go:build !unix

package verify

import "os/exec"

// ownGroup leaves cmd unchanged, because this system has no process groups. Only the program itself is killed.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
