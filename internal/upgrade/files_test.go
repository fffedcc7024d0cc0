package upgrade_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/hooks/audit"
	"github.com/grapnel-go/grapnel/internal/upgrade"
	"github.com/grapnel-go/grapnel/pipeline"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/policy/recorded"
	"github.com/grapnel-go/grapnel/registry"
)

// TestPolicies runs each version's policy tests: every rule must decide as before.
func TestPolicies(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		suite, err := policytest.Open(filepath.Join(upgrade.Dir(version), "policy.test.yaml"))
		require.NoError(t, err)
		result, err := suite.Run(t.Context(), policytest.Options{})
		require.NoError(t, err)
		require.Len(t, result.Cases, 8)
		for _, c := range result.Cases {
			assert.Empty(t, c.Failures, c.Name)
		}
	})
}

// TestAgentFile reads the agent files. cmd/grapnel runs them with the script upgrade.txtar.
func TestAgentFile(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		d, err := registry.Read("agent.yaml", upgrade.Read(t, version, "agent.yaml"))
		require.NoError(t, err)
		assert.Equal(t, "fixture", d.Name)
		text, err := d.YAML()
		require.NoError(t, err)
		again, err := registry.Read("agent.yaml", text)
		require.NoError(t, err)
		assert.Equal(t, d, again)
	})
}

func TestPipeline(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		p, err := pipeline.Load(filepath.Join(upgrade.Dir(version), "pipeline.yaml"), pipeline.LoadOptions{Host: action.Host{Parks: true, Approver: agent.ParkApprover}})
		require.NoError(t, err)
		assert.Equal(t, "release", p.Name)
	})
}

func TestBlueprint(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		b, err := coordinator.ParseBlueprint(upgrade.Read(t, version, "blueprint.json"))
		require.NoError(t, err)
		assert.Equal(t, "report", b.Name)
	})
}

// TestLogs reads each version's recordings, event logs and audit logs.
func TestLogs(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		for name, want := range map[string]struct {
			format recorded.Format
			calls  []string
		}{
			"transcript.jsonl": {recorded.Replay, []string{`bash {"command": "ls"}`, `bash {"command": "rm -rf a.txt"}`, `bash {"command": "date"}`}},
			"events.jsonl":     {recorded.Events, []string{`bash {"command": "ls"}`, `bash {"command": "rm -rf a.txt"}`, `bash {"command": "date"}`}},
			"audit.jsonl":      {recorded.Audit, []string{`add {"amount":1}`, `pay {"amount":9}`}},
		} {
			r, err := recorded.Open(filepath.Join(upgrade.Dir(version), name))
			require.NoError(t, err)
			var calls []string
			for run, err := range r.Runs() {
				require.NoError(t, err)
				assert.Equal(t, want.format, run.Format, name)
				for _, c := range run.Calls() {
					calls = append(calls, c.Function.Name+" "+c.Function.Arguments)
				}
			}
			require.NoError(t, r.Close())
			assert.Equal(t, want.calls, calls, name)
		}
		for line := range bytes.Lines(upgrade.Read(t, version, "audit.jsonl")) {
			d := json.NewDecoder(bytes.NewReader(line))
			d.DisallowUnknownFields()
			require.NoError(t, d.Decode(new(audit.Entry)))
		}
	})
}

// TestNewerLogs checks that a line in a newer format is refused.
func TestNewerLogs(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		for name, says := range map[string]string{
			"events.jsonl": "the event log has version 2, but this program reads version 1: use a newer grapnel",
			"audit.jsonl":  "the audit log has version 2, but this program reads version 1: use a newer grapnel",
		} {
			newer := bytes.ReplaceAll(upgrade.Read(t, version, name), []byte(`{"v":1,`), []byte(`{"v":2,`))
			r := recorded.NewReader(name, bytes.NewReader(newer))
			for run, err := range r.Runs() {
				assert.Nil(t, run)
				assert.ErrorContains(t, err, says)
			}
		}
	})
}

// TestNewerFiles checks that a file with a newer format number is refused before any other problem is reported.
func TestNewerFiles(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		write := func(name, head string) string {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(path, append([]byte(head), upgrade.Read(t, version, name)...), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "shared.yaml"), upgrade.Read(t, version, "shared.yaml"), 0o600))
			return path
		}
		load := map[string]func(path string) error{
			"policy.yaml": func(path string) error {
				_, err := policy.Load([]policy.Layer{{Name: "run", Files: []string{path}}}, policy.Options{})
				return err
			},
			"policy.test.yaml": func(path string) error {
				_, err := policytest.Open(path)
				return err
			},
			"agent.yaml": func(path string) error {
				_, err := registry.Read(path, readPath(t, path))
				return err
			},
		}
		for name, load := range load {
			err := load(write(name, "format: 2\nnovelty: {of: format 2}\n"))
			require.ErrorContains(t, err, name+":1:9: format 2 is newer than this program reads (1): use a newer version of Grapnel")
			assert.NotContains(t, err.Error(), "novelty", "of a later form nothing else is known to be wrong")
			err = load(write(name, "format: 1\n"))
			if name == "policy.test.yaml" && err != nil { // the policy file is missing here
				assert.ErrorContains(t, err, "no policy")
				continue
			}
			require.NoError(t, err)
			require.ErrorContains(t, load(write(name, "format: first\n")), "expected the number of the file's format, which is 1")
		}
	})
}

func readPath(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}
