package cli

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/internal/version"
)

// buildInfo describes the build of the program.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // time of the commit
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuild returns the build information of the running program.
func readBuild() buildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) buildInfo {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return buildInfo{
		Version: version.Read(), Commit: settings["vcs.revision"], Time: settings["vcs.time"],
		Modified: settings["vcs.modified"] == "true", Go: info.GoVersion, Platform: settings["GOOS"] + "/" + settings["GOARCH"],
	}
}

func (b buildInfo) String() string {
	text := "grapnel " + b.Version
	if b.Commit != "" {
		text += ", commit " + b.Commit
		if b.Modified {
			text += " with changes"
		}
	}
	return text + ", " + b.Go + ", " + b.Platform
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  grapnel version\n  grapnel version --json",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := readBuild()
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(b)
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), b)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write it as a JSON object")
	return c
}
