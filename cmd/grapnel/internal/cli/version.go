package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo is what is known of how the program was built.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // of the commit
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildOf(info *debug.BuildInfo) buildInfo {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return buildInfo{
		Version: cmp.Or(info.Main.Version, "(devel)"), Commit: settings["vcs.revision"], Time: settings["vcs.time"],
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
		Short:   "Say which version this is",
		Example: "  grapnel version\n  grapnel version --json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			b := buildOf(info)
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

// noArgs accepts no arguments, as cobra.NoArgs does, with an exit code of its own.
func noArgs(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return &usageError{err}
	}
	return nil
}
