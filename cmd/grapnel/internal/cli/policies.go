package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// globalPolicy returns the policy that holds for every agent of this user, where there is
// one; empty where its place is unknown.
func globalPolicy() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "grapnel", "policy.yaml")
}

// loadPolicies loads the policy of the user and those of the files; nil when there are
// none. Read is how files are read; nil means as they are. The policy of the user, and what
// it includes, is always read as it is: it is in force today, also for a run that began
// under another one.
func loadPolicies(files []string, read func(path string) ([]byte, error)) (*policy.Policy, error) {
	global := globalPolicy()
	from := read
	if user, err := os.Stat(global); err == nil && read != nil {
		from = func(path string) ([]byte, error) {
			if file, err := os.Stat(path); err == nil && os.SameFile(user, file) { // who names it means it
				return yamlfile.Read(path)
			}
			return read(path)
		}
	}
	layers := []policy.Layer{{Name: "run", Files: files}}
	if global != "" {
		layers = append(layers, policy.Layer{Name: "global", Files: []string{global}, Optional: true, Read: yamlfile.Read})
	}
	p, err := policy.Load(layers, policy.Options{Host: action.Host{Secrets: action.Secrets{File: secretsFile()}}, Read: from})
	if err != nil {
		return nil, &usageError{err}
	}
	if len(p.Names())+len(p.DisabledPolicies()) == 0 {
		return nil, nil
	}
	return p, nil
}

// secretsFile returns the file with the secrets that actions may name; empty where there is
// none.
func secretsFile() string {
	global := globalPolicy()
	if global == "" {
		return ""
	}
	path := filepath.Join(filepath.Dir(global), "secrets.env")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// policyNote says which policies are in force.
func policyNote(p *policy.Policy) string {
	note := fmt.Sprintf("In force: %s (%s).", p, p.Hash()[:12])
	if off := p.DisabledPolicies(); len(off) > 0 {
		note += fmt.Sprintf(" Switched off: %v.", off)
	}
	return note
}
