// Package agentfile has the settings of the tools and hooks that agent files of the command
// line may name, and the words in them. docs/agent-file.md lists them for those who write
// files; what an agent file is besides, package registry says.
package agentfile
