package cli

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
	"github.com/grapnel-go/grapnel/internal/reserved"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/library"
)

// definition is what an agent is made of again when its run is resumed: in another
// process, long after, and from files that may have changed. It has no secrets, as
// neither flags nor agent files have any; only the names of variables.
type definition struct {
	// Dir is the folder that the run began in: paths are relative to it.
	Dir string `json:"dir"`
	// Flags are those that say what the agent is made of.
	Flags []flagSaid `json:"flags,omitempty"`
	// Files are the texts of the agent file, the schema and the policies, by their paths.
	Files map[string]string `json:"files,omitempty"`
	// Library are the SHA-256 of the policies of the library, by their names: their texts come with the program.
	Library map[string]string `json:"library,omitempty"`
	// Recording is the SHA-256 of the recording that is played.
	Recording string `json:"recording,omitempty"`
	// User is the SHA-256 of the policy of the user, of which the text is not kept: it is
	// in force as it is when the run goes on.
	User string `json:"user_policy,omitempty"`
}

type flagSaid struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// definitionKey is the session's value that a kept run carries from its begin.
var definitionKey = agent.ReservedKey[definition](reserved.Show(), "grapnel.cli", agent.ScopeSession)

// shaping are the flags that say what the agent is made of. The model is not among them,
// as the one that was chosen is kept.
var shaping = []string{
	"agent", "base-url", "instructions", "tool", "hook", "policy", "rule-agent", "steps", "tokens", "cost", "time", "parallel", "output-schema",
}

// definitionOf returns what the flags of a command say, with the model that was chosen.
func definitionOf(o *options, given *cobra.Command, model agentfile.Model) (definition, error) {
	dir, err := os.Getwd()
	if err != nil {
		return definition{}, fmt.Errorf("keeping what the agent is made of: %w", err)
	}
	d := definition{Dir: dir, Files: o.texts, Library: libraryHashes(o.rules.policy), User: hashOf(globalPolicy())}
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

// options returns the options that the definition stands for.
func (d definition) options() (*options, error) {
	o, c := &options{texts: maps.Clone(d.Files), color: "auto"}, &cobra.Command{}
	o.registerAgent(c)
	for _, f := range d.Flags {
		if err := c.Flags().Set(f.Name, f.Value); err != nil {
			return nil, fmt.Errorf("the flag --%s that the run began with: %w", f.Name, err)
		}
	}
	return o, nil
}

// changedFiles says which of the files are not what they were. It is to be called in Dir. P is the policies that are in force now.
func (d definition) changedFiles(model string, p *policy.Policy) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(d.Files)) {
		if now, err := os.ReadFile(path); err != nil || string(now) != d.Files[path] {
			what := "has changed"
			if err != nil {
				what = "cannot be read any more"
			}
			out = append(out, fmt.Sprintf("%s %s since the run began: it goes on with what it began with.", path, what))
		}
	}
	now := libraryHashes(p)
	for _, name := range slices.Sorted(maps.Keys(d.Library)) {
		if now[name] != d.Library[name] {
			out = append(out, name+" is not what it was when the run began: it holds as it is now.")
		}
	}
	if hashOf(globalPolicy()) != d.User {
		out = append(out, "Your own policy is not what it was when the run began: it holds as it is now.")
	}
	if recording := strings.TrimPrefix(model, agentfile.Replay+":"); d.Recording != "" && hashOf(recording) != d.Recording {
		out = append(out, fmt.Sprintf("The recording %s has changed since the run began.", recording))
	}
	return out
}

// libraryHashes returns the SHA-256 of the policies of the library that a policy is made of; p may be nil.
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

// enter goes to the folder that the run began in.
func (d definition) enter() (note string, err error) {
	if here, err := os.Getwd(); err == nil && here == d.Dir {
		return "", nil
	}
	if err := os.Chdir(d.Dir); err != nil {
		return "", fmt.Errorf("going to the folder that the run began in: %w", err)
	}
	return fmt.Sprintf("The run goes on in %s, where it began.", d.Dir), nil
}

// summary returns the definition in a line.
func (d definition) summary() string {
	var b strings.Builder
	for _, f := range d.Flags {
		fmt.Fprintf(&b, " --%s=%s", f.Name, shellWord(f.Value))
	}
	return strings.TrimSpace(b.String())
}

// hashOf returns the SHA-256 of a file; empty when it cannot be read.
func hashOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
