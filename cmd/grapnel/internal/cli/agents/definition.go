package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/agentfile"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/reserved"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/library"
)

// Definition is the definition of the agent of a run. Another process may use it to resume the run, possibly much
// later, when files have changed. It contains no secrets, because flags and agent files contain only names of
// variables.
type Definition struct {
	// Dir is the folder in which the run began. Paths are relative to it.
	Dir string `json:"dir"`
	// Flags are the flags that define the agent.
	Flags []flagSaid `json:"flags,omitempty"`
	// Files are the texts of the agent file, the schema and the policies, by their paths.
	Files map[string]string `json:"files,omitempty"`
	// Library holds the SHA-256 sums of the library policies, by name. Their texts are part of the program.
	Library map[string]string `json:"library,omitempty"`
	// Recording is the SHA-256 sum of the recording that is played.
	Recording string `json:"recording,omitempty"`
	// User is the SHA-256 sum of the user's policy. Its text is not stored: the current version is in force
	// when the run resumes.
	User string `json:"user_policy,omitempty"`
}

type flagSaid struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// DefinitionKey is the key of the session value that holds the definition of a durable run.
var DefinitionKey = agent.ReservedKey[Definition](reserved.InternalToken(), "grapnel.cli", agent.ScopeSession)

// shaping are the flags that define the agent, except the model, because the chosen model is stored.
var shaping = []string{
	"agent", "base-url", "instructions", "tool", "hook", "policy", "claude-hooks", "claude-compat", "rule-agent",
	"steps", "tokens", "cost", "time", "parallel", "output-schema",
}

// DefinitionOf returns the definition from the flags of a command and the chosen model.
func DefinitionOf(o *Options, given *cobra.Command, model agentfile.Model) (Definition, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Definition{}, fmt.Errorf("storing the definition of the agent: %w", err)
	}
	d := Definition{Dir: dir, Files: o.Texts, Library: libraryHashes(o.Rules.Policy), User: hashOf(GlobalPolicy())}
	d.Flags = []flagSaid{{"model", model.String()}}
	for _, name := range shaping {
		f := given.Flags().Lookup(name)
		if !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(interface{ GetSlice() []string }); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			d.Flags = append(d.Flags, flagSaid{name, value})
		}
	}
	if model.Provider == agentfile.Replay {
		d.Recording = hashOf(model.Name)
	}
	return d, nil
}

// Options returns the options of the definition.
func (d Definition) Options() (*Options, error) {
	o, c := &Options{Texts: maps.Clone(d.Files), Color: "auto"}, &cobra.Command{}
	o.registerAgent(c)
	for _, f := range d.Flags {
		if err := c.Flags().Set(f.Name, f.Value); err != nil {
			return nil, fmt.Errorf("the flag --%s that the run began with: %w", f.Name, err)
		}
	}
	return o, nil
}

// WithPolicies returns the definition with other policies than --policy names. Their texts are read
// again, and so are those of the policies that agent files name.
func (d Definition) WithPolicies(files []string) Definition {
	texts := map[string]string{}
	var flags []flagSaid
	for _, f := range d.Flags {
		if f.Name == "policy" {
			continue
		}
		flags = append(flags, f)
		path := f.Value
		if f.Name == "rule-agent" {
			_, path, _ = strings.Cut(path, "=")
		}
		if text, known := d.Files[path]; known {
			texts[path] = text
		}
	}
	for _, path := range files {
		flags = append(flags, flagSaid{"policy", path})
	}
	d.Flags, d.Files, d.Library = flags, texts, nil
	return d
}

// ChangedFiles describes the files that have changed since the run began. The working folder must be Dir. P is the
// policies in force now.
func (d Definition) ChangedFiles(model string, p *policy.Policy) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(d.Files)) {
		if now, err := os.ReadFile(path); err != nil || string(now) != d.Files[path] {
			what := "has changed"
			if err != nil {
				what = "cannot be read any more"
			}
			out = append(out, fmt.Sprintf("%s %s since the run began: it continues with the original.", path, what))
		}
	}
	now := libraryHashes(p)
	for _, name := range slices.Sorted(maps.Keys(d.Library)) {
		if now[name] != d.Library[name] {
			out = append(out, name+" has changed since the run began: it applies as it is now.")
		}
	}
	if hashOf(GlobalPolicy()) != d.User {
		out = append(out, "Your own policy has changed since the run began: it applies as it is now.")
	}
	if recording := strings.TrimPrefix(model, agentfile.Replay+":"); d.Recording != "" && hashOf(recording) != d.Recording {
		out = append(out, fmt.Sprintf("The recording %s has changed since the run began.", recording))
	}
	return out
}

// libraryHashes returns the SHA-256 sums of the library policies in a policy; p may be nil.
func libraryHashes(p *policy.Policy) map[string]string {
	hashes := map[string]string{}
	if p == nil {
		return nil
	}
	for _, path := range p.Files() {
		if !strings.HasPrefix(path, library.Prefix) {
			continue
		}
		if found, err := library.Find(path); err == nil {
			sum := sha256.Sum256(found.Text)
			hashes[library.Prefix+found.Name+"@"+found.Version] = hex.EncodeToString(sum[:])
		}
	}
	return hashes
}

// Enter changes to the folder where the run began.
func (d Definition) Enter() (note string, err error) {
	if here, err := os.Getwd(); err == nil && here == d.Dir {
		return "", nil
	}
	if err := os.Chdir(d.Dir); err != nil {
		return "", fmt.Errorf("changing to the folder where the run began: %w", err)
	}
	return fmt.Sprintf("The run continues in %s, where it began.", d.Dir), nil
}

// Summary returns the definition in one line.
func (d Definition) Summary() string {
	var b strings.Builder
	for _, f := range d.Flags {
		fmt.Fprintf(&b, " --%s=%s", f.Name, console.ShellWord(f.Value))
	}
	return strings.TrimSpace(b.String())
}

// hashOf returns the SHA-256 sum of a file; empty when it cannot be read.
func hashOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
