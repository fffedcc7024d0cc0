package pipeline

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// A wait is named by its ID or by enough of it, and by nothing that a later one could have.
func TestNamesOfWaits(t *testing.T) {
	const card = "5f0c8e31ab97d204c1a0b6e2f3d48590"
	for typed, want := range map[string]bool{
		card: true, card[:12]: true, card[:13]: true, card[:11]: false, "": false, "call_1": false, "p/ok": false, card[1:]: false, "5f0c8e31ab97#p/ok": false,
	} {
		assert.Equal(t, want, storage.IsNamed(card, typed), typed)
	}
	for typed, want := range map[string]bool{
		card + "#p/ok": true, "5f0c8e31ab97#p/ok": true, card[:12]: true, "p/ok": false, "5f0c8e31ab97#p/o": false,
	} {
		assert.Equal(t, want, storage.IsNamed(card+"#p/ok", typed), typed)
	}
}

// A command that names no gate is told the commands that do. Only gates of people can be approved.
func TestUnnamedGates(t *testing.T) {
	gate := func(id, hook string, kind durable.WaitKind) openGate {
		return openGate{pipeline.WaitingGate{Wait: id, For: kind, Hook: hook, Reason: "go\non?"}, "run"}
	}
	file, ann, bob := gate("gate-1", "p/file", durable.WaitFile), gate("gate-2", "p/ann", durable.WaitApproval), gate("gate-3", "p/bob", durable.WaitApproval)
	c := &cobra.Command{Use: "approve"}
	for name, tc := range map[string]struct {
		gates    []openGate
		approves bool
		want     []string
	}{
		"one":       {[]openGate{ann}, true, []string{"\n  approve friday gate-2\n      approval of p/ann: go on?"}},
		"several":   {[]openGate{file, ann, bob}, true, []string{"\n  approve friday gate-2\n", "\n  approve friday gate-3\n"}},
		"to reject": {[]openGate{file, ann}, false, []string{"\n  approve friday gate-1\n", "\n  approve friday gate-2\n"}},
		"none":      {nil, true, []string{"it waits for no gate"}},
		"a file":    {[]openGate{file}, true, []string{"no person can approve what it waits for: file of p/file"}},
	} {
		err := newUnnamedGateError((&storage.Store{}), c, "friday", tc.gates, tc.approves)
		require.Error(t, err, name)
		for _, want := range tc.want {
			assert.ErrorContains(t, err, want, name)
		}
		if name == "several" {
			assert.NotContains(t, err.Error(), "gate-1")
		}
	}
}
