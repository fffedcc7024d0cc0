package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

// Hook events name the action and its target, and show the changes by a rewrite.
func TestEventsOfActions(t *testing.T) {
	n := &notes{}
	p := load(t, `
policy: p
hooks:
  RunStart:
    - {id: enrich, decision: rewrite, set: {path: '"/data"'}, reason: the data is there}
    - {id: told, type: func, func: note, observe: true}
`, n.host())
	f := fire(t, p, hookstest.Blueprint(hooks.RunStart, hooks.BlueprintRun{Parameters: json.RawMessage(`{"id":"R1"}`)}))
	var changed, told []hooks.Event
	for _, e := range f.Events {
		if e.Kind != hooks.HookComplete {
			continue
		}
		if e.Decision == hooks.Rewrite {
			changed = append(changed, e)
		}
		if e.Hook == "p/told" {
			told = append(told, e)
		}
	}
	require.Len(t, changed, 1)
	assert.JSONEq(t, `{"id":"R1"}`, changed[0].Before)
	assert.JSONEq(t, `{"id":"R1","path":"/data"}`, changed[0].After)
	assert.Equal(t, "the data is there", changed[0].Reason)
	assert.Empty(t, changed[0].Origin.Action)
	require.Len(t, told, 1)
	assert.Equal(t, []string{"func", "note"}, []string{told[0].Origin.Action, told[0].Origin.Target})
}
