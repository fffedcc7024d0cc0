package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// measureWaiting measures the approval of a call where many runs wait for one. An agent parks some of them; the rest are copies
// of one of these in every table. That one then runs to its end.
func measureWaiting(m *measuring) {
	p := m.backend.open(m.T)
	keeper := durable.Keep(p.Store, durable.Options{})
	pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{ Cents int }) (string, error) { return "paid", nil })
	ask := hooks.On(hooks.AtPreToolUse, "guard", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Ask("it pays") })
	clerk, err := builder.New().WithName("clerk").
		WithDriver(agenttest.Script(agenttest.Call("pay", `{"Cents":100}`), agenttest.Say("Paid.")).EachRun()).
		With(capability.UseTools(pay), capability.UseHooks(ask), capability.UseDurability{Keeper: keeper}, capability.UseApproval(agent.ParkApprover)).
		Build().Get()
	require.NoError(m, err)

	var id agent.RunID
	park := func() {
		s, err := clerk.Run(m.Context(), agent.NewState(), agent.UserText("Pay the bill.")).Get()
		require.NoError(m, err)
		require.True(m, s.Waiting())
		id = s.Run().ID
	}
	park() // starts what the store itself needs
	before := runtime.NumGoroutine()
	for range m.parked - 1 {
		park()
	}
	// Goroutines of the last queries end by themselves.
	rowsOnly := assert.Eventually(m, func() bool { return runtime.NumGoroutine() <= before+2 }, time.Minute, 5*time.Millisecond)
	empty := p.bare.size(m.T)
	copyRun(m.T, p.bare, string(id), m.waiting-m.parked, map[string]string{}, "payloads", "entries", "waits")
	p.bare.tidy(m.T)
	size := (p.bare.size(m.T) - empty) / int64(m.waiting-m.parked)

	var took []time.Duration
	copied := func(i int) agent.RunID { return agent.RunID(fmt.Sprint("run", 1+i*(m.waiting-m.parked-1)/m.answers)) }
	for i := range m.answers {
		took = append(took, timed(func() {
			require.NoError(m, durabletest.Approve(m.Context(), p.Store, copied(i), "call_1_1", agent.Approval{Verdict: agent.Approve}))
		}))
	}
	r, err := p.Run(m.Context(), copied(0))
	require.NoError(m, err)
	require.Equal(m, durable.StatusReady, r.Status)
	require.NoError(m, durabletest.Approve(m.Context(), p.Store, id, "call_1_1", agent.Approval{Verdict: agent.Approve}))
	s, err := keeper.Resume(m.Context(), clerk, id, durable.TakeFree).Get()
	require.NoError(m, err)
	require.Equal(m, "Paid.", s.Answer())

	m.report.each(m, "waiting", took)
	m.row(thousands(m.waiting)+" waiting runs", "answer in < 20 ms", rowsOnly && quantile(took, 50) < 20*time.Millisecond,
		"no goroutines, %.1f KB each; **%s**, p99 %s", float64(size)/1000, milliseconds(quantile(took, 50)), milliseconds(quantile(took, 99)))
}
