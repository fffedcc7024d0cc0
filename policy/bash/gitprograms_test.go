package bash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/policy/bash"
)

// Git programs with their own names are treated as git sub-commands.
func TestProgramsOfGit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"git-push origin main --force":         "push",
		"/usr/lib/git-core/git-reset --hard":   "reset",
		"env X=y git-clean -fdx":               "clean",
		"echo a | xargs git-branch -D":         "branch",
		"git push":                             "push",
		"git-lfs-unknown-thing x":              "",
		"sudo -u me /usr/libexec/git-core/git": "",
	} {
		sub := ""
		for git := range bash.Analyse(line, bash.Options{}).CommandsNamed("git") {
			sub = git.Sub
		}
		assert.Equal(t, want, sub, line)
	}
}
