package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

func TestCompletions(t *testing.T) {
	for name, tc := range map[string]struct {
		words []string
		want  string
	}{
		"a command":             {[]string{"hooks", "back"}, "backtest\t"},
		"colours":               {[]string{"run", "--color", ""}, "auto\nalways\nnever\n:4"},
		"tools":                 {[]string{"chat", "-t", ""}, "shell\nfiles\n:4"},
		"hooks":                 {[]string{"run", "--hook", ""}, "base-dir\nredact\n:4"},
		"services":              {[]string{"run", "-m", ""}, "openai/\nopenai-responses/\nanthropic/\n"},
		"recordings":            {[]string{"run", "-m", "replay:"}, ":0"},
		"agent files":           {[]string{"run", "--agent", ""}, "yaml\nyml\njson\n:8"},
		"policy files":          {[]string{"run", "--policy", ""}, "yaml\nyml\njson\n:8"},
		"policies of a library": {[]string{"hooks", "explain", "-p", "library:"}, "library:safe-shell\n"},
		"kinds of files":        {[]string{"hooks", "check", "--kind", ""}, "blueprint\npipeline\npolicy\n:4"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			root := newRoot(console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
			root.SetOut(&out)
			root.SetErr(&bytes.Buffer{})
			root.SetArgs(append([]string{"__complete"}, tc.words...))
			require.NoError(t, root.Execute())
			assert.Contains(t, out.String(), tc.want)
		})
	}
}

func TestVersionFlag(t *testing.T) {
	var out bytes.Buffer
	root := newRoot(console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	root.SetOut(&out)
	root.SetArgs([]string{"--version"})
	require.NoError(t, root.Execute())
	assert.Equal(t, readBuild().String()+"\n", out.String())
}
