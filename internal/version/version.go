// Package version has the version of Grapnel.
package version

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Next is the version that this source becomes, without a leading v. It stands nowhere else in the code; a test compares it with
// the first release in CHANGELOG.md.
const Next = "0.1.0"

// module is the path of the module that Read looks for in a program.
const module = "github.com/grapnel-go/grapnel"

// stamped is the version of a release or a snapshot: the linker sets it, see .goreleaser.yaml.
var stamped string

// Read returns the version of Grapnel that is linked into the running program, with a leading v: the stamped one, else the
// one that the go command recorded, else Next with the suffix -dev.
var Read = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return cmp.Or(stamped, recordedVersion(info), "v"+Next+"-dev")
})

// recordedVersion returns the version of the module in a program, or "" where the go command recorded none: it writes (devel)
// for a checkout, and for one without a tag a pseudo-version that begins with v0.0.0.
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
