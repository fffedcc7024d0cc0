package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/evasion"
	"github.com/grapnel-go/grapnel/internal/exampletest"
)

var duration = regexp.MustCompile(`\b[0-9.]+(ns|µs|ms|s)\b`)

func TestReadme(t *testing.T) {
	for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
		t.Setenv("OTEL_"+signal+"_EXPORTER", "none")
	}
	t.Setenv("OTEL_SDK_DISABLED", "")
	var out bytes.Buffer
	require.NoError(t, observeRun(t.Context(), &out))
	exampletest.Readme(t, out.String(), duration)
}

func TestOnlyReadyHolds(t *testing.T) {
	t.Parallel()
	evasion.Guard{
		Hooks: []hooks.Hook{onlyReady}, Tool: "publish", Argument: "version",
		Allowed: []string{"v1.0.1"}, Forbidden: []string{"v2.0.0", "V1.0.1", "v1.0.1 ", "*", ""},
	}.Hold(t)
}
