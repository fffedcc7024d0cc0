// Package release is an example without a program: a pipeline with commands, a gate, and a check after each task.
// README.md explains it.
package release
