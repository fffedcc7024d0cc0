// Package library has policies that are ready to be used, as files. Wherever a policy is
// named, library:NAME is the newest version of one of them, and library:NAME@VERSION a
// given version:
//
//	grapnel run --policy library:safe-shell --tool shell "Tidy up"
//
//	include: [library:safe-shell@1, library:secrets]
//
// Their rules have names of their own, such as library:safe-shell/readable, also in a policy that includes them.
// A version has the same rules for good: a rule that is new, that goes or that decides otherwise makes a new version of its policy,
// and of the policies that include it. docs/policy-library.md says of each policy what it does and what it cannot see.
package library

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// files are the policies: NAME.yaml is the newest version of one, which says its version itself, and
// NAME@VERSION.yaml an older one.
//
//go:embed *.yaml
var files embed.FS

// Prefix begins the names of these policies where files are named, and those of their rules.
const Prefix = "library:"

// Policy is one version of a policy.
type Policy struct {
	// Name is safe-shell of library:safe-shell.
	Name string
	// Version is what the file says of itself.
	Version string
	// Newest reports whether no version is newer.
	Newest bool
	// Text is the file.
	Text []byte
}

// Path returns what names the policy where files are named: with its version unless it is the newest.
func (p Policy) Path() string {
	if p.Newest {
		return Prefix + p.Name
	}
	return Prefix + p.Name + "@" + p.Version
}

// Names returns the names of the policies, without the ending of their files.
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

// Versions returns the versions of a policy, the newest first; nil for an unknown name.
func Versions(name string) []string { return versionsIn(files, name) }

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

// Find returns the policy that a reference names: NAME, or NAME@VERSION, each with or without Prefix and the ending .yaml.
func Find(reference string) (Policy, error) { return findIn(files, reference) }

func findIn(files fs.FS, reference string) (Policy, error) {
	reference = strings.TrimSuffix(strings.TrimPrefix(reference, Prefix), ".yaml")
	name, version, pinned := strings.Cut(reference, "@")
	if !slices.Contains(namesIn(files), name) {
		return Policy{}, fmt.Errorf("read %s%s: unknown policy; known: %s", Prefix, name, strings.Join(namesIn(files), ", "))
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

// Read returns the text of the policy that a reference names, as Find takes it.
func Read(reference string) ([]byte, error) {
	p, err := Find(reference)
	return p.Text, err
}

// stems returns the names of the files without their ending, in order.
func stems(files fs.FS) []string {
	found, _ := fs.Glob(files, "*.yaml") // the pattern is right
	for i, name := range found {
		found[i] = strings.TrimSuffix(name, ".yaml")
	}
	slices.Sort(found)
	return found
}

// versionOf returns what a file says under its key version.
func versionOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, "version:"); ok {
			return strings.Trim(version, " \"\r\n")
		}
	}
	return ""
}
