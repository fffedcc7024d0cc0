package version

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecorded(t *testing.T) {
	user := debug.Module{Path: "example.com/a", Version: "v9.0.0"}
	pseudo := debug.Module{Path: module, Version: "v0.0.0-20261123184448-f4d6745c8dd3"}
	for name, tc := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"no build information":            {debug.BuildInfo{}, ""},
		"a checkout":                      {debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, ""},
		"a checkout before the first tag": {debug.BuildInfo{Main: pseudo, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "f4d6745c8dd3"}}}, ""},
		"go install of a commit":          {debug.BuildInfo{Main: pseudo}, pseudo.Version},
		"go install of a release":         {debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.2.0"}}, "v0.2.0"},
		"a user's program":                {debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: module, Version: "v0.3.1"}}}, "v0.3.1"},
		"a user's program with a replaced module": {
			debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: module, Version: "v0.3.1", Replace: &debug.Module{Path: "../grapnel"}}}}, "",
		},
		"a program without the module": {debug.BuildInfo{Main: user}, ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, recordedVersion(&tc.info)) })
	}
}

// Tests are built in a checkout.
func TestRead(t *testing.T) { assert.Equal(t, "v"+Next+"-dev", Read()) }

// The changelog begins with the next version.
func TestNextIsInTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	first := regexp.MustCompile(`(?m)^## \[?([0-9.]+)`).FindSubmatch(text)
	require.NotNil(t, first, "no release in CHANGELOG.md")
	assert.Equal(t, Next, string(first[1]))
}
