package timeline

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/grapnel-go/grapnel/hooks"
)

// A run that parks shows what it waits for; when it goes on, from where; and when it is
// shown from a store, what it did.
func TestParked(t *testing.T) {
	var out, again bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		line := New(Config{Out: &out})
		list := append(guards(), hooks.On(hooks.AtPreToolUse, "push", func(_ context.Context, c hooks.ToolContext) hooks.Result {
			return c.AskAbout(agent.Question{Reason: "others see it", Within: time.Hour})
		}))
		a := builder.New().WithDriver(agenttest.Script(
			agenttest.Say("I push.").Call("bash", `{"command":"git push --force origin"}`), agenttest.Say("Done."), agenttest.Say("Done."),
		)).With(capability.UseTools(bash), capability.UseHooks(list...), capability.UseApproval(agent.ParkApprover)).
			WithObserver(line).Build().MustGet()
		s := a.Run(t.Context(), agent.NewState(), agent.UserText("Push it.")).MustGet()
		require.True(t, s.Waiting())
		line.Observe(t.Context(), durable.NotifyFailed{Run: s.Run(), Err: errors.New("no\x1bpaper")})
		line.Observe(t.Context(), durable.StoreStalled{Run: s.Run()})
		line.Observe(t.Context(), durable.StoreStalled{Run: s.Run(), Err: errors.New("no\x1bdisk")})
		line.Observe(t.Context(), durable.StoreRecovered{Run: s.Run(), After: 3 * time.Second})
		time.Sleep(10 * time.Minute) // of the bubble's clock
		s = agenttest.WithApproval(s, s.Interventions()[0].CallID(), agent.Approval{Verdict: agent.Approve, By: "ann"})
		New(Config{Out: &again}).Waits(s.Interventions()[0], time.Now())
		s = a.Resume(t.Context(), s).MustGet()
		require.Equal(t, agent.StatusDone, s.Status())
		New(Config{Out: &again}).Replay(s)
	})
	assert.Equal(t, `
step 1  I push.
  ? push asks for approval: others see it
    bash {"command":"git push --force-with-lease origin"}
    the model asked for {"command":"git push --force origin"}
    call_1_1, asked just now; in 1 hour the default applies: reject

parked: it waits for approval of bash (call_1_1)
0 steps · 0 calls · <1ms
  ! sending the notice that the run waits failed: no␛paper
  ! the run waits for its store: it does not answer
  ! the run waits for its store: no␛disk
  ✓ the store accepts writes again, after 3.0s

resumed: after 0 steps, 10m0s after it began

step 1 goes on
  ▸ bash git push --force origin
    ✎ no-wipe rewrote it to: git push --force-with-lease origin
    ? push asks for approval: others see it
    ✓ ok · 1.5s
      ran git push --force-with-lease origin
  10m2s

step 2  Done.
  ↺ tests-first keeps it from stopping: Run the tests: none has passed since you
    changed parse.go.

step 3  Done.

done: the model gave its answer
3 steps · 1 call · 1 rewritten · 10m2s
`, out.String())
	assert.Equal(t, `  ? push asks for approval: others see it
    bash {"command":"git push --force-with-lease origin"}
    the model asked for {"command":"git push --force origin"}
    call_1_1, asked 10 minutes ago; answered: approve, by ann
you  Push it.

step 1  I push.
  ▸ bash git push --force origin
    ✎ with changed arguments: git push --force-with-lease origin
    ✓ ok · 1.5s
      ran git push --force-with-lease origin
  10m2s

step 2  Done.

step 3  Done.
`, again.String())
}

func TestRough(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1 second", 59 * time.Second: "59 seconds", 90 * time.Second: "1 minute", 5 * time.Hour: "5 hours", 72 * time.Hour: "3 days",
	} {
		assert.Equal(t, want, Rough(d))
	}
}
