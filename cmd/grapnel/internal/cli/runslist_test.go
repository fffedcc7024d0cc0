package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A list says what a run waits for, which is not always an approval.
func TestDescribeWaits(t *testing.T) {
	t.Parallel()
	pay := listedCall{Call: "c1", Tool: "pay", Kind: durable.WaitApproval}
	for want, calls := range map[string][]listedCall{
		"waits for approval of pay (c1)":                       {pay},
		"waits for a decision whether to repeat pay (c1)":      {{Call: "c1", Tool: "pay", Kind: durable.WaitDoubt}},
		"waits for input for order (c2)":                       {{Call: "c2", Tool: "order", Kind: durable.WaitInput}},
		"waits for a file about deploy (c3#window)":            {{Call: "c3#window", Tool: "deploy", Kind: durable.WaitFile}},
		"waits for a file about deploy (c3#window): /srv/open": {{Call: "c3#window", Tool: "deploy", Kind: durable.WaitFile, File: "/srv/open"}},
		"waits for the end of run r2":                          {{Call: "child", Tool: "x", Kind: durable.WaitChild, Child: "r2"}},
		"waits for approval of gate":                           {{Call: "gate", Kind: durable.WaitApproval}},
		"waits for moon x (c)":                                 {{Call: "c", Tool: "x", Kind: "moon"}},
		"waits for approval of pay (c1), pay (c4), and for a decision whether to repeat send (c2)": {
			pay, {Call: "c2", Tool: "send", Kind: durable.WaitDoubt}, {Call: "c4", Tool: "pay", Kind: durable.WaitApproval},
		},
	} {
		assert.Equal(t, want, describeWaits(calls))
	}
}

// A list says on one line why a run has ended.
func TestEnding(t *testing.T) {
	t.Parallel()
	run := func(status durable.Status, reason agent.StopReason) durable.Run {
		return durable.Run{Status: status, Reason: reason}
	}
	for want, l := range map[string]listed{
		"":                              {Run: run(durable.StatusCompleted, agent.StopCompleted)},
		"no answer: the reply is empty": {Run: run(durable.StatusCompleted, agent.StopEmptyReply)},
		"a.yaml:2:8: set KEY":           {Run: run(durable.StatusFailed, agent.StopError), Error: "a.yaml:2:8: set KEY\n     2 | model: x\n       |        ^"},
	} {
		assert.Equal(t, want, l.ending())
	}
}

// An answer after its deadline is refused, so the run is only resumed.
func TestHowToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := hooks.On(hooks.AtPreToolUse, "push", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			return c.AskAbout(agent.Question{Reason: "others see it", Within: time.Hour})
		})
		push := toolexec.Func("push", "", func(context.Context, struct{}) (string, error) { return "", nil })
		a := builder.New().WithDriver(agenttest.Script(agenttest.Call("push", "{}"))).
			With(capability.UseTools(push), capability.UseHooks(asks), capability.UseApproval(agent.ParkApprover)).Build().MustGet()
		s := a.Run(t.Context(), agent.NewState(), agent.UserText("Push it.")).MustGet()
		k := &openedStore{address: storeAddress{usual: true}}
		assert.Contains(t, k.howToGoOn(s), "grapnel runs approve run_")
		time.Sleep(2 * time.Hour)
		assert.Contains(t, k.howToGoOn(s), "grapnel runs resume run_")
		assert.NotContains(t, k.howToGoOn(s), "approve")
	})
}

// A word after a bare --durable that names a store is a mistake; other words are the prompt.
func TestIsStoreName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs"), sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.NoError(t, os.WriteFile("notes.txt", []byte("SQLite"), 0o600))
	for word, want := range map[string]bool{
		"runs.db": true, "work/x.sqlite": true, "sqlite:runs": true, "postgres://db/runs": true, "runs": true,
		"pay": false, "notes.txt": false, ".": false, "fix runs.db": false, "": false, "postgres": false,
	} {
		assert.Equal(t, want, isStoreName(word), word)
	}
}
