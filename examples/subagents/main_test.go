package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

func TestReadme(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, runEditor(t.Context(), &out))
	exampletest.Readme(t, out.String())
}

func TestOnlyDocsHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{onlyDocs(io.Discard)}, Tool: "fetch", Argument: "host",
		Allowed: []string{"docs.example.com"}, Forbidden: []string{"intranet.example.com", "docs.example.com.evil.example", "DOCS.example.com", "*", ""},
	}.Hold(t)
}
