package grapnel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/snippets"
)

// prelude declares the names that snippets leave to the reader. Keep it short: a snippet itself shows what it is
// about.
const prelude = `
var (
	ctx                  context.Context
	t                    *testing.T
	out                  io.Writer
	driver, small, other agent.Driver // the model of the agent, and two more
	tools                []toolexec.Tool
	noPush, noWipe       hooks.Hook // deny calls
	confirm              hooks.Hook // asks a person
	a                    *agent.Agent
	s                    agent.State
	input                agent.Message
	store                durable.Store
	keeper               *durable.Keeper
	run                  agent.RunID
	runners              map[durable.Kind]durable.Runner
	workspace            string
	key                  []byte  // seals what a guard gives away
	db                   *sql.DB // of the program
	pay                  func(ctx context.Context, arguments string) (string, error)
)
`

// Every block of Go in a Markdown file or a doc comment must compile.
func TestSnippetsCompile(t *testing.T) {
	touchSources(t)
	blocks, err := snippets.Find(".")
	require.NoError(t, err)
	packages, err := snippets.List(t.Context(), ".", "./...")
	require.NoError(t, err)
	report := packages.Check(prelude, blocks)
	for _, err := range report.Errors {
		assert.Fail(t, err.Error(), "mend the snippet: names that it leaves to the reader stand in the prelude of snippets_test.go")
	}
	for _, b := range report.Text {
		t.Log("not Go: ", b)
	}
	assert.Greater(t, len(report.Go), 90, "blocks of Go were found in documents and doc comments")
}
