package upgrade_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/upgrade"
)

// TestStates reads the states of each version, writes them, and reads what it wrote.
func TestStates(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		for name, want := range known(t, version, "states").(map[string]any) {
			t.Run(name, func(t *testing.T) {
				var s, again agent.State
				require.NoError(t, json.Unmarshal(upgrade.Read(t, version, "state-"+name+".json"), &s))
				upgrade.AssertFacts(t, want, plain(t, stateFacts(s)), name)
				text, err := json.Marshal(s)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &again))
				upgrade.AssertFacts(t, want, plain(t, stateFacts(again)), name)
			})
		}
	})
}

// TestStatesGoOn resumes the states that wait, without a store.
func TestStatesGoOn(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		for name, c := range map[string]struct{ agent, call, answer string }{
			"waiting": {"clerk", "ask", "Paid."}, "child": {"boss", "t/ask", "Delegated."},
		} {
			var s agent.State
			require.NoError(t, json.Unmarshal(upgrade.Read(t, version, "state-"+name+".json"), &s))
			w := newWorld()
			s = s.WithApproval(c.call, agent.Approval{Verdict: agent.Approve, By: "ann"})
			final, err := w.agents(t, nil)[c.agent].Resume(t.Context(), s).Get()
			require.NoError(t, err, name)
			assert.Equal(t, c.answer, final.Answer())
			assert.Len(t, w.done(), 1, "the call that was approved, and no other")
		}
	})
}

func TestSealedState(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		seal, err := agent.NewSeal(sealKey)
		require.NoError(t, err)
		sealed := upgrade.Read(t, version, "state-sealed.json")
		s, err := seal.Unmarshal(sealed)
		require.NoError(t, err)
		upgrade.AssertFacts(t, known(t, version, "states").(map[string]any)["waiting"], plain(t, stateFacts(s)), "sealed")

		_, err = seal.Unmarshal(bytes.Replace(sealed, []byte(`"seal":1`), []byte(`"seal":2`), 1))
		require.ErrorContains(t, err, "the seal has version 2, but this program reads version 1: use a newer version of the module")
	})
}

// TestNewerStates: what a later version wrote is refused, also below the state.
func TestNewerStates(t *testing.T) {
	upgrade.EachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		for _, name := range []string{"done", "child"} {
			text := upgrade.Read(t, version, "state-"+name+".json")
			newer := regexp.MustCompile(`^{\s*"version": \d+`).ReplaceAll(text, []byte(`{"version": 99`))
			require.NotEqual(t, string(text), string(newer))
			err := json.Unmarshal(newer, new(agent.State))
			require.ErrorContains(t, err, "version 99 is newer than this program reads (")
			require.ErrorContains(t, err, "): use a newer version of the module")
		}
	})
}
