//go:build !unix

package mcp

import "os/exec"

// ownGroup returns at once: where there are no process groups, only the server itself is ended.
func ownGroup(*exec.Cmd) {}

// endGroup returns at once: there is no polite way.
func endGroup(*exec.Cmd) {}

// killGroup ends the server.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
