package main

import (
	"context"
	"crypto/rand"
	"path"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/hooks/basedir"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/hooks/verify"
)

// hooks are what stands between the model and the machine.
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

// noWipe denies commands that delete folders with all that is in them. It looks at
// words, which stops a mistake and not somebody who hides what a command does.
var noWipe = hooks.On(hooks.AtPreToolUse, "no-wipe", func(_ context.Context, c hooks.ToolContext) hooks.Result {
	command, ok := c.Call().Text("command")
	if !ok {
		return c.Deny("there is no command to look at")
	}
	for _, part := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";&|\n()`", r) }) {
		words := strings.Fields(part)
		at := slices.IndexFunc(words, func(w string) bool { return path.Base(strings.TrimPrefix(w, `\`)) == "rm" })
		if at >= 0 && lo.SomeBy(words[at+1:], func(w string) bool {
			return w == "--recursive" || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rR")
		}) {
			return c.Deny("nothing is deleted with all that is in it; remove single files")
		}
	}
	return c.Allow()
}, hooks.ToolNamed("bash"))

// newSecret is a token that only this process knows.
func newSecret() string { return "svc_" + rand.Text() }
