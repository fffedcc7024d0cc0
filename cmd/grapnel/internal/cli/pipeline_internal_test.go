package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/pipeline"
)

// An answer is for one gate, and an approval only for that of a person.
func TestChooseGate(t *testing.T) {
	gate := func(id, hook string, kind durable.WaitKind) openGate {
		return openGate{pipeline.WaitingGate{Wait: id, For: kind, Hook: hook}, "run"}
	}
	file, ann, bob := gate("gate-1", "p/file", durable.WaitFile), gate("gate-2", "p/ann", durable.WaitApproval), gate("gate-3", "p/bob", durable.WaitApproval)
	for name, tc := range map[string]struct {
		gates    []openGate
		named    string
		approves bool
		want     string
		wrong    string
	}{
		"the only one":           {[]openGate{ann}, "", true, "gate-2", ""},
		"the one of a person":    {[]openGate{file, ann}, "", true, "gate-2", ""},
		"by its hook":            {[]openGate{ann, bob}, "p/bob", true, "gate-3", ""},
		"by its id":              {[]openGate{ann, bob}, "gate-2", true, "gate-2", ""},
		"a file is rejected":     {[]openGate{file}, "", false, "gate-1", ""},
		"none":                   {nil, "", true, "", "it waits for no gate"},
		"only a file":            {[]openGate{file}, "", true, "", "no person can approve what it waits for: file of p/file (gate-1)"},
		"several":                {[]openGate{ann, bob}, "", true, "", "name one with --gate: "},
		"several to reject":      {[]openGate{file, ann}, "", false, "", "name one with --gate: "},
		"another":                {[]openGate{ann}, "p/cid", true, "", "--gate p/cid: no such gate waits for this answer"},
		"a file by its own name": {[]openGate{file, ann}, "p/file", true, "", "no such gate waits for this answer"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseGate(tc.gates, tc.named, tc.approves)
			if tc.wrong != "" {
				require.ErrorContains(t, err, tc.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got.Wait)
		})
	}
}
