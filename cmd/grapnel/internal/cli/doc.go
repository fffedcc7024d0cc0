// Package cli is the grapnel command: its flags, how they become an agent, and
// what is written where.
//
//	os.Exit(cli.Main(os.Args[1:]))
//
// Answers go to standard output, everything else to standard error. An agent file
// is read by package agentfile, what happens is shown by package timeline or
// written by package events, and the agent in between is made here, of the drivers,
// tools and hooks that ship with the module.
package cli
