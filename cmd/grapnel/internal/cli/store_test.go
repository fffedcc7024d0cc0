package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
)

// storeCommands are the arguments of all commands with the flag --store.
var storeCommands = map[string][]string{
	"grapnel serve":                 {},
	"grapnel run":                   {"hello"},
	"grapnel runs approve":          {"run_1"},
	"grapnel runs cancel":           {"run_1"},
	"grapnel runs check":            {},
	"grapnel runs delete":           {"run_1"},
	"grapnel runs deny-tools":       {"show"},
	"grapnel runs export":           {"run_1"},
	"grapnel runs list":             {},
	"grapnel runs pause":            {"run_1"},
	"grapnel runs prune":            {"--older-than", "30d"},
	"grapnel runs reject":           {"run_1"},
	"grapnel runs resume":           {"--all"},
	"grapnel runs show":             {"run_1"},
	"grapnel runs submit agent":     {"clerk", "hello"},
	"grapnel runs submit command":   {"report"},
	"grapnel runs submit blueprint": {"report"},
	"grapnel sessions list":         {},
	"grapnel sessions resume":       {"ses_1", "hello"},
	"grapnel sessions show":         {"ses_1"},
	"grapnel tokens create":         {"ci", "--role", "operator"},
	"grapnel tokens list":           {},
	"grapnel tokens revoke":         {"1234"},
	"grapnel blueprints apply":      {"blueprint.yaml"},
	"grapnel blueprints delete":     {"report"},
	"grapnel blueprints versions":   {"report"},
	"grapnel blueprints list":       {},
	"grapnel blueprints show":       {"report"},
	"grapnel runs tell":             {"run_1", "hello"},
	"grapnel runs watch":            {"run_1"},
	"grapnel runs work":             {"commands.yaml"},
	"grapnel pipeline abort":        {"friday"},
	"grapnel pipeline approve":      {"friday"},
	"grapnel pipeline list":         {},
	"grapnel pipeline logs":         {"friday"},
	"grapnel pipeline pause":        {"friday"},
	"grapnel pipeline rebuild":      {"friday"},
	"grapnel pipeline reject":       {"friday"},
	"grapnel pipeline resume":       {"friday"},
	"grapnel pipeline start":        {"pipeline.yaml"},
	"grapnel pipeline status":       {"friday"},
	"grapnel runs retry":            {"run_1"},
	"grapnel store backup":          {"backup.db"},
	"grapnel approvals answer":      {"run_1", "--approve"},
	"grapnel approvals list":        {},
	"grapnel approvals revoke":      {"w1"},
	"grapnel approvals serve":       {},
	"grapnel approvals show":        {"run_1"},
	"grapnel approvals waive":       {"--until", "30d", "--rule", "a/b", "--tool", "t"},
	"grapnel approvals waivers":     {},
}

// withStore returns the commands below c that have the flag --store.
func withStore(c *cobra.Command) (all []string) {
	others := []string{"grapnel runs schema", "grapnel hooks backtest", "grapnel store restore"} // which open no store, or only one that is named
	if c.Runnable() && !c.HasSubCommands() && c.Flag("store") != nil && !slices.Contains(others, c.CommandPath()) {
		all = append(all, c.CommandPath())
	}
	for _, below := range c.Commands() {
		all = append(all, withStore(below)...)
	}
	return all
}

// The store is named in the same way for every command: here it cannot be opened, and each command says so with the
// place that it has tried, and exits as for every mistake of the caller.
func TestEveryCommandFindsTheStore(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const text = "this is not a database, and long enough that nothing takes it for an empty one"
	usual := filepath.Join(dir, "state", "grapnel", "runs.db")
	require.NoError(t, os.MkdirAll(filepath.Dir(usual), 0o700))
	for path, content := range map[string]string{
		usual: text, "flag.txt": text, "variable.txt": text, "commands.yaml": "commands:\n  report: {argv: [sh]}\n",
		"blueprint.yaml": "name: report\ntype: procedural\n",
		"pipeline.yaml":  "name: p\nstages: [{name: a, command: {argv: [sh]}, termination: {type: fixed, iterations: 1}}]\n",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("GRAPNEL_STORE_KEY", "")
	t.Setenv("GRAPNEL_STORE_OLD_KEYS", "")
	t.Setenv("GRAPNEL_MODEL", "openai/test-model")
	t.Setenv("OPENAI_API_KEY", "sk-test-1234")
	const closed = "127.0.0.1:1" // of the database: nothing listens there
	url := "postgres://ann@" + closed + "/runs?connect_timeout=1"
	forms := map[string]struct{ flag, variable, place string }{
		"file":                 {"flag.txt", "", filepath.Join(dir, "flag.txt")},
		"sqlite:":              {"sqlite:flag.txt", "", filepath.Join(dir, "flag.txt")},
		"database":             {url, "", closed},
		"variable":             {"", "variable.txt", filepath.Join(dir, "variable.txt")},
		"sqlite: in variable":  {"", "sqlite:variable.txt", filepath.Join(dir, "variable.txt")},
		"database in variable": {"", url, closed},
		"flag and variable":    {"flag.txt", "variable.txt", filepath.Join(dir, "flag.txt")},
		"default":              {"", "", usual},
		"default by name":      {"default", "", usual},
		"name and variable":    {"default", "variable.txt", filepath.Join(dir, "variable.txt")},
		"another scheme":       {"mysql://ann:secret@host/runs", "", "the store mysql://…: expected a file, sqlite:FILE or a postgres:// URL"},
		"no file":              {"sqlite:", "", "the store sqlite: names no file"},
	}
	commands := withStore(Root())
	for _, path := range commands {
		assert.Contains(t, storeCommands, path, "add its arguments")
	}
	assert.Len(t, commands, len(storeCommands))
	for path, args := range storeCommands {
		for name, form := range forms {
			t.Run(strings.TrimPrefix(path, "grapnel ")+"/"+name, func(t *testing.T) {
				t.Setenv("GRAPNEL_STORE", form.variable)
				all := slices.Concat(strings.Fields(path)[1:], args)
				if form.flag != "" || path == "grapnel run" {
					all = append(all, "--store="+form.flag)
				}
				code, written := execute(t, all)
				assert.Equal(t, console.ExitUsage, code, written)
				assert.Contains(t, written, form.place)
				assert.NotContains(t, written, "secret")
			})
		}
	}
}

// execute runs a command, and returns its exit code and what it has written to standard error.
func execute(t *testing.T, args []string) (code int, written string) {
	t.Helper()
	in, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	defer out.Close()
	root := newRoot(console.Streams{In: in, Out: out, Err: out})
	root.SetArgs(args)
	code = console.ReportError(out, root.ExecuteContext(context.WithoutCancel(t.Context())))
	_, err = out.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	return code, string(text)
}

// A wrong number of arguments is a mistake of the caller for every command, whatever checks it.
func TestWrongArgumentsAreUsageErrors(t *testing.T) {
	many := slices.Repeat([]string{"x"}, 100)
	checked := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, args := range [][]string{nil, many} {
			if err := c.ValidateArgs(args); err != nil {
				checked++
				assert.ErrorAs(t, err, new(*console.UsageError), "%s with %d arguments", c.CommandPath(), len(args))
			}
		}
		for _, below := range c.Commands() {
			check(below)
		}
	}
	check(Root())
	assert.Greater(t, checked, 50)
}
