// Package version returns the version of Grapnel.
package version

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Next is the version of the next release, without a leading v. No other code contains this version; a test compares
// it with the first release in CHANGELOG.md.
const Next = "0.1.0"

// module is the module path that Read looks for in a program.
const module = "github.com/grapnel-go/grapnel"

// stamped is the version of a release or a snapshot. The linker sets it: see .goreleaser.yaml.
var stamped string

// Read returns the version of Grapnel in the running program, with a leading v: the stamped version; otherwise the
// version that the go command recorded; otherwise Next with the suffix -dev.
var Read = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return cmp.Or(stamped, recordedVersion(info), "v"+Next+"-dev")
})

// recordedVersion returns the module's version in a program, or "" if the go command recorded none. The go command
// records (devel) for a checkout, and a pseudo-version that begins with v0.0.0 for a checkout without a tag.
func recordedVersion(info *debug.BuildInfo) string {
	found := info.Main
	for _, m := range info.Deps {
		if m.Path == module {
			found = *m
			if m.Replace != nil {
				found = *m.Replace
			}
		}
	}
	checkout := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if found.Path != module || found.Version == "(devel)" || checkout && strings.HasPrefix(found.Version, "v0.0.0-") {
		return ""
	}
	return found.Version
}
