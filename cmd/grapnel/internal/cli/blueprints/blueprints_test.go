package blueprints

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// A coordinator cannot make the command write outside of the folder.
func TestWriteBlueprintStaysInItsFolder(t *testing.T) {
	const text = "name: p\nstages: []\n"
	for name, b := range map[string]wire.Blueprint{
		"a name":          {Name: "../outside", Type: wire.Procedural},
		"a file":          {Name: "p", Type: wire.Pipeline, Pipeline: &wire.PipelineFiles{Files: map[string]string{"pipeline.yaml": text, "../../outside": "x"}}},
		"an absolute one": {Name: "p", Type: wire.Pipeline, Pipeline: &wire.PipelineFiles{Files: map[string]string{"pipeline.yaml": text, "/outside": "x"}}},
		"a link":          {Name: "linked", Type: wire.Pipeline, Pipeline: &wire.PipelineFiles{Files: map[string]string{"pipeline.yaml": text}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to := filepath.Join(dir, "to")
			require.NoError(t, os.Mkdir(to, 0o700))
			outside := filepath.Join(dir, "elsewhere")
			require.NoError(t, os.Mkdir(outside, 0o700))
			if err := os.Symlink(outside, filepath.Join(to, "linked")); err != nil {
				t.Skip(err)
			}
			require.Error(t, writeBlueprint(to, &b))
			for _, path := range []string{filepath.Join(dir, "outside"), filepath.Join(dir, "outside.json"), filepath.Join(outside, "pipeline.yaml")} {
				assert.NoFileExists(t, path)
			}
		})
	}
}
