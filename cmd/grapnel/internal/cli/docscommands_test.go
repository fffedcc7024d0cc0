package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/snippets"
)

var (
	calling   = regexp.MustCompile(`(?:^|[|(&;] *|^\$ |^[A-Z_]+=\S+ )(?:\S*bin/)?grapnel +((?:[a-z]\|[a-z]|[^|;&>#)])+)`)
	quoted    = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	aFlag     = regexp.MustCompile(`^(--[a-z][\w-]*|-[a-z]\b)`)
	lowerWord = regexp.MustCompile(`^[a-z][a-z-]+$`)
)

// otherFlags lists flags in inline code that belong to other programs.
var otherFlags = map[string]string{
	"--volume": "podman", "--user": "podman",
	"--no-verify": "git", "--no-gpg-sign": "git", "--config-env": "git", "--force": "git", "--force-with-lease": "git", "--out": "an unknown program",
	"--connect-to": "curl", "--resolve": "curl",
}

// checkLine reports commands and flags that do not exist in a line that begins after the word grapnel. What a line
// gives to a command is not read.
func checkLine(c *cobra.Command, words []string) error {
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], "[](),`")
		switch {
		case word == "--":
			return nil
		case word == "-": // standard input
		case strings.HasPrefix(word, "-"):
			name, _, hasValue := strings.Cut(word, "=")
			flag := findFlag(c, name)
			if flag == nil {
				return fmt.Errorf("%q has no flag %s", c.CommandPath(), name)
			}
			if !hasValue && flag.NoOptDefVal == "" {
				i++
			}
		case c.HasSubCommands() && lowerWord.MatchString(strings.ReplaceAll(word, "|", "-")):
			var errs []error
			for one := range strings.SplitSeq(word, "|") {
				below := findBelow(c, one)
				if below == nil {
					return fmt.Errorf("%q has no command %q", c.CommandPath(), one)
				}
				errs = append(errs, checkLine(below, words[i+1:]))
			}
			return errors.Join(errs...)
		}
	}
	return nil
}

func findBelow(c *cobra.Command, name string) *cobra.Command {
	for _, below := range c.Commands() {
		if below.Name() == name || below.HasAlias(name) {
			return below
		}
	}
	return nil
}

// findFlag returns the flag with a name, dashes included, from a command or a command above it.
func findFlag(c *cobra.Command, name string) *pflag.Flag {
	c.InitDefaultHelpFlag()
	sets := []*pflag.FlagSet{c.Flags(), c.PersistentFlags(), c.InheritedFlags()}
	for _, set := range sets {
		flag := set.Lookup(strings.TrimPrefix(name, "--"))
		if len(name) == 2 {
			flag = set.ShorthandLookup(name[1:])
		}
		if flag != nil {
			return flag
		}
	}
	return nil
}

// hasFlag reports whether a command, or one below it, has the flag.
func hasFlag(c *cobra.Command, name string) bool {
	if findFlag(c, name) != nil {
		return true
	}
	for _, below := range c.Commands() {
		if hasFlag(below, name) {
			return true
		}
	}
	return false
}

// checkSpan reports what inline code says of commands and flags and is not so.
func checkSpan(root *cobra.Command, text string) error {
	text = quoted.ReplaceAllString(text, "TEXT")
	if found := calling.FindStringSubmatch(text); found != nil {
		return checkLine(root, strings.Fields(found[1]))
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	if below := findBelow(root, words[0]); below != nil && below.HasSubCommands() && len(words) > 1 && lowerWord.MatchString(words[1]) {
		return checkLine(root, words)
	}
	if name := aFlag.FindString(text); name != "" && strings.HasPrefix(text, "-") && otherFlags[name] == "" && !hasFlag(root, name) {
		return fmt.Errorf("no command has the flag %s", name)
	}
	return nil
}

// Commands and flags in documents must exist, in inline code and in blocks.
func TestCommandsInDocsExist(t *testing.T) {
	root := newRoot(console.Streams{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	top := filepath.Join("..", "..", "..", "..")
	pages, err := snippets.ReadPages(filepath.Join(top, "*.md"), filepath.Join(top, "docs", "*.md"), filepath.Join(top, "examples", "*", "*.md"))
	require.NoError(t, err)
	lines := 0
	for _, page := range pages {
		if name := filepath.Base(page.File); name == "CHANGELOG.md" || name == "evidence.md" {
			continue // history
		}
		for _, span := range page.Spans {
			assert.NoError(t, checkSpan(root, span.Text), span.String())
		}
		for _, b := range page.Code {
			if b.Lang == "go" {
				continue
			}
			for i, line := range strings.Split(b.Text, "\n") {
				for _, found := range calling.FindAllStringSubmatch(quoted.ReplaceAllString(strings.TrimSpace(line), "TEXT"), -1) {
					lines++
					assert.NoError(t, checkLine(root, strings.Fields(found[1])), "%s:%d: %s", b.File, b.Line+i, line)
				}
			}
		}
	}
	assert.Greater(t, lines, 50)
}

func TestMissingCommandsAreFound(t *testing.T) {
	root := newRoot(console.Streams{})
	for text, right := range map[string]bool{
		"grapnel run --agent FILE":                  true,
		"grapnel run --agnt FILE":                   false,
		"grapnel runs approve|reject RUN CALL":      true,
		"grapnel runs approve|refuse RUN CALL":      false,
		"grapnel runs":                              true,
		"grapnel walk":                              false,
		"echo x | bin/grapnel hooks fire -p F -Z":   false,
		"grapnel run --durable=runs.db \"a - b\"":   true,
		"runs list":                                 true,
		"runs lists":                                false,
		"--policy FILE":                             true,
		"--polisy FILE":                             false,
		"-p":                                        true,
		"pipeline":                                  true,
		"grapnel hooks backtest --policy FILE... R": true,
	} {
		assert.Equal(t, right, checkSpan(root, text) == nil, text)
	}
}
