package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// A notifier that panics leaves the run waiting, and the others are called.
func TestNotifierPanics(t *testing.T) {
	t.Parallel()
	p := newPayer(t, hooks.On(hooks.AtPreToolUse, "limit", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("sure?") }))
	told := 0
	p.keeper = durable.Keep(p.store, durable.Options{Notify: []durable.Notifier{
		durable.NotifierFunc(func(context.Context, durable.Notice) error { panic("boom") }),
		durable.NotifierFunc(func(context.Context, durable.Notice) error { told++; return nil }),
	}})
	assert.NotPanics(t, func() { p.park() })
	assert.Equal(t, 1, told)
	_, err := durable.Decide(t.Context(), p.store, p.wait(), agent.Approval{Verdict: agent.Approve, By: "ann"})
	assert.NoError(t, err)
}
