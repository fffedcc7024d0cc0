// Package action is what declared hooks do: run a command or a text of bash, ask a web service, a tool, an agent, a
// pipeline, a model or a person, or call a Go func.
package action
