// Command release writes the files that accompany the binaries of a release, and checks licences:
//
//	release man DIR            manual pages, one a command
//	release completions DIR    completion scripts for bash, zsh, fish and PowerShell
//	release licences FILE      the licences of all that the command links, for its archives
//	release licences -check    fails if the command or the library links a module under a licence that is not allowed
//	release version VERSION    fails if VERSION is not the one that internal/version prepares, or a snapshot of it
//
// Run it with "go -C tools/release run .": DIR and FILE are below the root of the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli"
	"github.com/grapnel-go/grapnel/internal/version"
)

// repository is the path from the folder of this module to the root of the repository.
const repository = "../.."

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: release man DIR | completions DIR | licences FILE | licences -check | version VERSION")
	}
	at := filepath.Join(repository, args[1])
	switch {
	case args[0] == "version":
		return checkVersion(args[1])
	case args[0] == "man":
		return writeMan(at)
	case args[0] == "completions":
		return writeCompletions(at)
	case args[0] == "licences" && args[1] == "-check":
		return checkLicences()
	case args[0] == "licences":
		return writeLicences(at)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func checkVersion(v string) error {
	if v == version.Next || strings.HasPrefix(v, version.Next+"-snapshot") {
		return nil
	}
	return fmt.Errorf("the version is %s, and internal/version prepares %s: change Next there, or the tag", v, version.Next)
}

// writeMan writes a manual page for each command that has a help text.
func writeMan(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Root()
	root.InitDefaultCompletionCmd()
	hideDate(root)
	return doc.GenManTree(root, &doc.GenManHeader{Title: "GRAPNEL", Section: "1", Source: "Grapnel", Manual: "Grapnel"}, dir)
}

// hideDate removes the line with the date of generation, so that the same source always yields the same pages.
func hideDate(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, child := range c.Commands() {
		hideDate(child)
	}
}

func writeCompletions(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Root()
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(dir, root.Name()+".bash"), true),
		root.GenZshCompletionFile(filepath.Join(dir, "_grapnel")),
		root.GenFishCompletionFile(filepath.Join(dir, root.Name()+".fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(dir, root.Name()+".ps1")),
	)
}
