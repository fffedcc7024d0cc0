// Package agentfile defines the settings of the tools and hooks that agent files of the command line can use,
// and the types of their values. docs/agent-file.md lists them for authors of agent files; package registry
// describes the rest of an agent file.
package agentfile
