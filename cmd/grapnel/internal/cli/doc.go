// Package cli is the grapnel command: it parses the flags, builds the agent from them, and writes the output.
//
//	os.Exit(cli.Main(os.Args[1:]))
//
// Answers go to standard output, everything else to standard error. Package agentfile defines the agent
// files, packages timeline and events show the progress, and package cli builds the agent from the drivers,
// tools and hooks of this module.
package cli
