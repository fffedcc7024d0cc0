// Package library contains ready-made policies as files. Wherever a policy is named, library:NAME refers to the newest
// version of one of them, and library:NAME@VERSION to a specific version:
//
//	grapnel run --policy library:safe-shell --tool shell "Tidy up"
//
//	include: [library:safe-shell@1, library:secrets]
//
// Their rules have fixed names such as library:safe-shell/readable, even in a policy that includes them. A version's
// rules never change: adding, removing or changing a rule creates a new version of its policy and all policies that
// include it. docs/policy-library.md describes each policy and its limits.
package library

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/grapnel-go/grapnel/internal/near"
)

// files holds the policies. NAME.yaml is the newest version; the file states its version. NAME@VERSION.yaml is an older
// version.
//
//go:embed *.yaml
var files embed.FS

// Prefix begins the names of these policies and their rules.
const Prefix = "library:"

// Policy is one version of a policy.
type Policy struct {
	// Name is the name without Prefix, such as safe-shell.
	Name string
	// Version is the version stated in the file.
	Version string
	// Newest is set for the newest version.
	Newest bool
	// Text is the file's content.
	Text []byte
}

// Path returns the reference to the policy: with its version unless it is the newest.
func (p Policy) Path() string {
	if p.Newest {
		return Prefix + p.Name
	}
	return Prefix + p.Name + "@" + p.Version
}

// Names returns the policies' names, without file extensions.
func Names() []string { return namesIn(files) }

func namesIn(files fs.FS) []string {
	var names []string
	for _, name := range stems(files) {
		if !strings.Contains(name, "@") {
			names = append(names, name)
		}
	}
	return names
}

// versionsIn returns a policy's versions, newest first; nil for an unknown name.
func versionsIn(files fs.FS, name string) []string {
	newest, err := fs.ReadFile(files, name+".yaml")
	if err != nil {
		return nil
	}
	var older []string
	for _, stem := range stems(files) {
		if version, ok := strings.CutPrefix(stem, name+"@"); ok {
			older = append(older, version)
		}
	}
	slices.SortFunc(older, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(b, a)) }) // 10 before 9
	return append([]string{versionOf(newest)}, older...)
}

// Find returns the policy for a reference: NAME or NAME@VERSION, each with or without Prefix and the extension .yaml.
func Find(reference string) (Policy, error) { return findIn(files, reference) }

func findIn(files fs.FS, reference string) (Policy, error) {
	reference = strings.TrimSuffix(strings.TrimPrefix(reference, Prefix), ".yaml")
	name, version, pinned := strings.Cut(reference, "@")
	if !slices.Contains(namesIn(files), name) {
		known := namesIn(files)
		hint := ""
		if meant, ok := near.Name(name, known); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", meant)
		}
		return Policy{}, fmt.Errorf("read %s%s: unknown policy%s; known: %s", Prefix, name, hint, strings.Join(known, ", "))
	}
	versions := versionsIn(files, name)
	if !pinned {
		version = versions[0]
	}
	if !slices.Contains(versions, version) {
		return Policy{}, fmt.Errorf("read %s%s: unknown version %q; known: %s", Prefix, reference, version, strings.Join(versions, ", "))
	}
	p := Policy{Name: name, Version: version, Newest: version == versions[0]}
	file := strings.TrimPrefix(p.Path(), Prefix) + ".yaml"
	var err error
	if p.Text, err = fs.ReadFile(files, file); err != nil {
		return Policy{}, fmt.Errorf("read %s%s: %w", Prefix, reference, err)
	}
	return p, nil
}

// stems returns the files' names without their extension, in order.
func stems(files fs.FS) []string {
	found, _ := fs.Glob(files, "*.yaml") // the pattern is valid
	for i, name := range found {
		found[i] = strings.TrimSuffix(name, ".yaml")
	}
	slices.Sort(found)
	return found
}

// versionOf returns the value of the key version in a file.
func versionOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, "version:"); ok {
			return strings.Trim(version, " \"\r\n")
		}
	}
	return ""
}
