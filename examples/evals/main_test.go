package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/internal/exampletest"
)

func TestOutput(t *testing.T) {
	for file, asJSON := range map[string]bool{"testdata/output.txt": false, "testdata/output.json": true} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, asJSON))
		exampletest.Golden(t, file, out.String())
		if !asJSON {
			exampletest.Readme(t, out.String())
		}
	}
}

// The careful model passes all cases. The hasty model passes only those that need no care.
func TestWhoPasses(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, true))
	var reports []Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &reports))
	require.Len(t, reports, len(models))
	assert.Equal(t, len(cases), reports[0].countPassed())
	var passed []string
	for _, c := range reports[1].Cases {
		if c.Passed {
			passed = append(passed, c.Case)
		}
	}
	assert.Equal(t, []string{"refund in time", "no such order"}, passed)
}
