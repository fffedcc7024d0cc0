// Command grapnel runs agents from the command line: from flags, or from a small
// YAML or JSON file, without a line of Go.
//
//	grapnel run "Why do the tests fail?"
//	grapnel run --agent fixer.yaml --json - < task.txt
//	grapnel chat --model openai/gpt-5-mini --tool files
//
// docs/cli.md describes all commands.
package main

import (
	"os"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
