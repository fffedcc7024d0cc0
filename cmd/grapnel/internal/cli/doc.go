// Package cli is the grapnel command: it puts the commands of its rooms together.
//
//	os.Exit(cli.Main(os.Args[1:]))
//
// Answers go to standard output, everything else to standard error. Package agentfile defines the agent
// files, packages timeline and events show the progress, and package agents builds the agent from the drivers,
// tools and hooks of this module.
package cli
