package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/library"
)

// GlobalPolicy returns the file of the user's policy for all agents; empty when its folder is unknown.
func GlobalPolicy() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "grapnel", "policy.yaml")
}

// LoadPolicies loads the user's policy and the files; nil when there are none. Read reads
// files; nil means from disk. Dir is the folder of the agent's work; empty means the working directory. The policy
// of the user, with its includes, is always read from disk: its current version is in force, also for a run that began under another
// one.
func LoadPolicies(files []string, dir string, read func(path string) ([]byte, error)) (*policy.Policy, error) {
	global := GlobalPolicy()
	from := read
	if user, err := os.Stat(global); err == nil && read != nil {
		from = func(path string) ([]byte, error) {
			if file, err := os.Stat(path); err == nil && os.SameFile(user, file) { // the user named the file explicitly
				return yamlfile.Read(path)
			}
			return read(path)
		}
	}
	layers := []policy.Layer{{Name: "run", Files: files}}
	if global != "" {
		layers = append(layers, policy.Layer{Name: "global", Files: []string{global}, Optional: true, Read: yamlfile.Read})
	}
	p, err := policy.Load(layers, policy.Options{
		Host: action.Host{Secrets: action.Secrets{File: SecretsFile()}, Dir: dir}, Dir: dir, Read: from,
	})
	if err != nil {
		return nil, console.Usage(err)
	}
	if len(p.Names())+len(p.DisabledPolicies()) == 0 {
		return nil, nil
	}
	return p, nil
}

// SecretsFile returns the file with the secrets that actions may name; empty when there is none.
func SecretsFile() string {
	global := GlobalPolicy()
	if global == "" {
		return ""
	}
	path := filepath.Join(filepath.Dir(global), "secrets.env")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// CurrentPolicies returns the absolute paths of policies, which must load. Policies of the library keep their names.
func CurrentPolicies(files []string) ([]string, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if _, err := LoadPolicies(files, "", nil); err != nil {
		return nil, err
	}
	out := make([]string, len(files))
	for i, file := range files {
		if out[i] = file; strings.HasPrefix(file, library.Prefix) {
			continue
		}
		var err error
		if out[i], err = filepath.Abs(file); err != nil {
			return nil, fmt.Errorf("--policy %s: %w", file, err)
		}
	}
	return out, nil
}

// PolicyNote describes the policies in force.
func PolicyNote(p *policy.Policy) string {
	note := fmt.Sprintf("In force: %s (%s).", p, p.Hash()[:12])
	if off := p.DisabledPolicies(); len(off) > 0 {
		note += fmt.Sprintf(" Switched off: %v.", off)
	}
	return note
}

// PoliciesIn moves the policies among the arguments of a command to policies, and returns the other arguments. It
// returns an error if there are more than most of them; -1 means no limit.
func PoliciesIn(args []string, policies *[]string, most int) (others []string, err error) {
	for _, arg := range args {
		if IsPolicy(arg) {
			*policies = append(*policies, arg)
			continue
		}
		others = append(others, arg)
	}
	if most >= 0 && len(others) > most {
		return nil, console.Usagef("expected policies and %d other argument, got %d: %s", most, len(others), strings.Join(others, ", "))
	}
	return others, nil
}

// IsPolicy reports whether an argument names a policy: a policy of the library, or a file with the top-level keys of
// a policy. Events and recordings do not have these keys at their top level.
func IsPolicy(path string) bool {
	if strings.HasPrefix(path, library.Prefix) {
		return true
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))) {
		return false
	}
	text, err := yamlfile.Read(path)
	if err != nil {
		return false
	}
	root, ok := yamlfile.Parse(path, text).Root()
	if !ok || root.Kind() != yamlfile.MappingNode {
		return false
	}
	has := func(key string) bool { return root.Find(key).Kind() != yamlfile.AbsentNode }
	return has("hooks") || has("policy") && !has("cases")
}
