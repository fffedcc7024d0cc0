package main

import (
	"context"
	"crypto/rand"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/hooks/basedir"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/hooks/verify"
	"github.com/grapnel-go/grapnel/policy/bash"
)

// hooks returns the hooks that protect the machine and the secret from the model.
func (j Job) hooks() ([]hooks.Hook, error) {
	inside, err := basedir.Guard(j.Dir, basedir.Options{})
	if err != nil {
		return nil, err
	}
	secrets, err := redact.New(redact.Options{Literals: map[string]string{"SERVICE_TOKEN": j.Secret}})
	if err != nil {
		return nil, err
	}
	tests := verify.Command{Dir: j.Dir, Args: []string{"go", "test", "./..."}}
	clean := func(output string) string {
		text, _ := secrets.Text(output)
		return text
	}
	all := []hooks.Hook{
		inside,
		noWipe,
		secrets.Results(),
		verify.Hook(tests.Check, verify.Options{Name: "tests-pass", Clean: clean}),
	}
	if j.Audit != nil {
		all = append(all, audit.New(j.Audit, audit.Options{}).Hooks()...)
	}
	return all, nil
}

// noWipe denies commands that delete folders and everything in them. rm may delete single files, and nothing else may
// delete. Lines that cannot be analysed are denied, too. The hook cannot see into the programs and scripts that a line
// starts.
var noWipe = hooks.On(hooks.AtPreToolUse, "no-wipe",
	hooks.RequireText("command", func(_ context.Context, c hooks.ToolContext, command string) hooks.Result {
		line := bash.Analyse(command, bash.Options{})
		if !line.Clear() {
			return c.Deny("the line may run more than it shows: write plain commands")
		}
		for _, file := range line.Files {
			by := line.Commands[max(0, file.Command)]
			single := by.Name == "rm" && by.Known() && !by.Flag("r", "recursive") && !by.Flag("R", "")
			if file.Access == bash.Deletes && !single {
				return c.Deny("folders must not be deleted with their contents; remove single files")
			}
		}
		for git := range line.CommandsNamed("git") {
			if git.Sub == "clean" {
				return c.Deny("folders must not be deleted with their contents; remove single files")
			}
		}
		return c.Allow()
	}), hooks.ToolNamed("bash"))

// newSecret returns a token that only this process knows.
func newSecret() string { return "svc_" + rand.Text() }
