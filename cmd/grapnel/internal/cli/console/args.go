package console

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Streams are the standard streams of a command.
type Streams struct {
	In       *os.File
	Out, Err *os.File
}

// Takes returns a check for the number of arguments. The first required argument must not be empty. Text completes the
// error.
func Takes(least, most int, text string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most || least > 0 && args[0] == "" {
			return Usagef("%s %s", c.CommandPath(), text)
		}
		return nil
	}
}

// UnknownCommand returns an error that suggests a similar command.
func UnknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
	}
	return Usagef("%s; %q lists the commands", text, c.CommandPath()+" --help")
}

// Group makes a command that only has commands below it, and returns it.
func Group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.Args, c.RunE = UnknownCommand, func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(below...)
	return c
}

// Unlimited is the maximum of Takes for a command that takes any number of arguments.
const Unlimited = math.MaxInt

// NoArgs rejects arguments like cobra.NoArgs, with the exit code for usage errors.
func NoArgs(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return Usage(err)
	}
	return nil
}

// RegisterCompletion sets the values that a shell offers for a flag.
func RegisterCompletion(c *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // two functions for one flag: a programming error
	}
}
