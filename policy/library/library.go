// Package library has policies that are ready to be used, as files. Wherever a policy is
// named, library:NAME is one of them:
//
//	grapnel run --policy library:safe-shell --tool shell "Tidy up"
//
//	include: [library:safe-shell, library:secrets]
//
// docs/policy-library.md says of each what it does and what it cannot see.
package library

import (
	"embed"
	"fmt"
	"strings"
)

// files are the policies, each a YAML file.
//
//go:embed *.yaml
var files embed.FS

// Prefix begins the names of these policies where files are named.
const Prefix = "library:"

// Names returns the names of the policies, without the ending of their files.
func Names() []string {
	entries, _ := files.ReadDir(".") // it is in the program
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Read returns the text of the policy of a name, with or without its ending.
func Read(name string) ([]byte, error) {
	text, err := files.ReadFile(strings.TrimSuffix(name, ".yaml") + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read %s%s: there is no such policy; there are %s", Prefix, name, strings.Join(Names(), ", "))
	}
	return text, nil
}
