package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/hooks"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/runs"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/policy/library"
)

// completions returns the values that shells offer for flags, by the name of the flag.
func completions() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"agent":         filesOf("yaml", "yml", "json"),
		"color":         cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp),
		"kind":          completeKind,
		"model":         completeModel,
		"output-schema": filesOf("json"),
		"policy":        completePolicy,
		"status":        completeStatus,
	}
}

// completeKind offers the kinds of runs, or of files with hooks.
func completeKind(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if c.HasParent() && c.Parent().Name() == "runs" {
		return console.TextsOf(runs.RunKinds), cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(hooks.Kinds)), cobra.ShellCompDirectiveNoFileComp
}

// completeStatus offers the statuses of stored runs, or of sessions.
func completeStatus(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if c.HasParent() && c.Parent().Name() == "sessions" {
		return console.TextsOf(wire.Statuses), cobra.ShellCompDirectiveNoFileComp
	}
	return console.TextsOf(durable.Statuses), cobra.ShellCompDirectiveNoFileComp
}

// registerCompletions registers the values of flags for a command and those below it.
func registerCompletions(c *cobra.Command) {
	for flag, values := range completions() {
		if c.Flags().Lookup(flag) != nil {
			console.RegisterCompletion(c, flag, values)
		}
	}
	for _, child := range c.Commands() {
		registerCompletions(child)
	}
}

func filesOf(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

// completeModel offers the providers; the names of their models are unknown here.
func completeModel(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(begun, "replay:") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	services := []string{"openai/", "openai-responses/", "anthropic/", "gemini/", "azure/", "azure-responses/", "vertex/", "replay:"}
	return services, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completePolicy offers policies of the library for the beginning of "library:", and files for other words.
func completePolicy(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if begun == "" || !strings.HasPrefix(begun, library.Prefix[:min(len(begun), len(library.Prefix))]) {
		return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
	}
	var names []string
	for _, name := range library.Names() {
		names = append(names, library.Prefix+name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
