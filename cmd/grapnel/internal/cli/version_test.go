package cli

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/internal/version"
)

func TestVersion(t *testing.T) {
	b := buildOf(&debug.BuildInfo{GoVersion: "go1.26.8", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"},
	}})
	assert.Equal(t, "grapnel "+version.Read()+", commit abc with changes, go1.26.8, linux/amd64", b.String())
}
