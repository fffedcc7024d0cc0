package main

import (
	"bytes"
	"context"
	"log"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

// The test program is the server as well, as main is.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args[1:], "server") {
		if err := serveNotes(context.Background()); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

func TestReadme(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, useServer(t.Context(), &out, program))
	exampletest.Readme(t, out.String())
}

func TestOnlyDraftsHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{onlyDrafts}, Tool: "mcp__notes__delete_note", Argument: "name",
		Allowed: []string{"draft"}, Forbidden: []string{"recipes", "Draft", "draft ", "*", ""},
	}.Hold(t)
}
