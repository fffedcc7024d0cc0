package agentfile

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// General types of package yamlfile.
type (
	Count    = yamlfile.Count
	Duration = yamlfile.Duration
	Bytes    = yamlfile.Bytes
	Regexp   = yamlfile.Regexp
)

// Types of values in an agent file. They parse themselves from a file or a flag; the error of Set says what was
// expected. The zero value means that the file does not set the value.
type (
	// Dollars is an amount of US dollars above zero.
	Dollars float64
	// Pattern is a pattern for tool names: a name, a glob, or a regular expression between slashes.
	Pattern string
	// Command is the name of a program, optionally with a sub-command: rm, git push.
	Command string
	// EnvPattern is the name of an environment variable, or a glob such as GO*.
	EnvPattern string
)

// Set parses an amount.
func (v *Dollars) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return errors.New("expected US dollars above zero, such as 0.50")
	}
	*v = Dollars(f)
	return nil
}

func (v *Dollars) String() string {
	return lo.Ternary(*v == 0, "", strconv.FormatFloat(float64(*v), 'f', -1, 64))
}

// Type returns the name of the value's type in a help text.
func (*Dollars) Type() string { return "dollars" }

// Set parses a pattern.
func (v *Pattern) Set(text string) error {
	const expected = "expected the name of a tool, a glob such as mcp__*, or a regular expression between slashes"
	if text == "" {
		return errors.New(expected)
	}
	if err := hooks.ToolMatching(text).Err(); err != nil {
		return fmt.Errorf("%s: %w", expected, err)
	}
	*v = Pattern(text)
	return nil
}

var command = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*( [A-Za-z0-9_][A-Za-z0-9_.:+-]*)*$`)

// Set parses a command.
func (v *Command) Set(text string) error {
	if !command.MatchString(text) {
		return errors.New("expected a program, optionally with a subcommand, such as rm or git push, but no paths or options")
	}
	*v = Command(text)
	return nil
}

var envPattern = regexp.MustCompile(`^[A-Za-z_*?\[][A-Za-z0-9_*?\[\]-]*$`)

// Set parses the name of a variable, or a glob.
func (v *EnvPattern) Set(text string) error {
	if _, err := path.Match(text, ""); err != nil || !envPattern.MatchString(text) {
		return &yamlfile.SecretError{Expected: "expected the name of an environment variable, such as GOPATH or GO*, not its value"}
	}
	*v = EnvPattern(text)
	return nil
}

// Model selects a model of a provider, or a recording.
type Model struct {
	// Provider is one of Providers, or Replay. Empty means that no model is set.
	Provider string
	// Name is the model's name at its provider; for Replay it is the file.
	Name string
}

// Providers are the valid words before the slash.
var Providers = []string{"openai", "openai-responses", "anthropic", "gemini", "azure", "azure-responses", "vertex"}

// Replay is the provider that plays a recording.
const Replay = "replay"

// Set parses a model such as openai/gpt-5, or replay:FILE.
func (m *Model) Set(text string) error {
	if file, ok := strings.CutPrefix(text, Replay+":"); ok && file != "" {
		*m = Model{Replay, file}
		return nil
	}
	const expected = "expected a provider and a model, such as openai/gpt-5-mini, or replay:FILE"
	provider, name, found := strings.Cut(text, "/")
	switch {
	case !found || provider == "" || name == "":
		return errors.New(expected)
	case !lo.Contains(Providers, provider):
		return errors.New(expected + "; " + yamlfile.Unknown("provider", provider, append([]string{Replay}, Providers...)))
	}
	*m = Model{provider, name}
	return nil
}

func (m *Model) String() string {
	switch m.Provider {
	case "":
		return ""
	case Replay:
		return Replay + ":" + m.Name
	}
	return m.Provider + "/" + m.Name
}

// Type returns the name of the value's type in a help text.
func (*Model) Type() string { return "model" }
