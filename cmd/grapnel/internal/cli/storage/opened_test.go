package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

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
		k := &Store{Address: Address{usual: true}}
		assert.Contains(t, k.HowToGoOn(s), "grapnel runs approve run_")
		time.Sleep(2 * time.Hour)
		assert.Contains(t, k.HowToGoOn(s), "grapnel runs resume run_")
		assert.NotContains(t, k.HowToGoOn(s), "approve")
	})
}
