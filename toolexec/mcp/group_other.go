//go:build !unix

package mcp

import "os/exec"

// ownGroup changes nothing. Without process groups, only the server itself is ended.
func ownGroup(*exec.Cmd) {}

// endGroup ends nothing, because no signal asks a process to end.
func endGroup(*exec.Cmd) {}

// killGroup ends the server.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
