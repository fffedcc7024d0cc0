package waiver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func open(t *testing.T) durable.Store {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// add stores a waiver for a scope.
func add(t *testing.T, store durable.Store, s waiver.Scope) durable.Waiver {
	t.Helper()
	w, err := waiver.New(s, "ann", time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.NoError(t, store.AddWaiver(t.Context(), w))
	return w
}

// pay runs an agent that transfers money, with hooks that ask. It reports how often a person was asked, and the final
// state.
func pay(t *testing.T, store durable.Store, arguments string, asking ...hooks.Hook) (asked int, paid bool, final agent.State) {
	t.Helper()
	tool := toolexec.Func("transfer", "Transfers money.", func(context.Context, struct {
		To     string `json:"to"`
		Amount int    `json:"amount"`
	}) (string, error) {
		paid = true
		return "paid", nil
	})
	person := agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
		asked++
		return agent.Approval{Verdict: agent.RejectAndContinue, By: "bob"}, nil
	})
	a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("transfer", arguments), agenttest.Say("done"))).
		With(capability.UseTools(tool), capability.UseHooks(append(asking, waiver.Hook(store))...), capability.UseApproval(person)).Build().Get()
	require.NoError(t, err)
	final, err = a.Run(t.Context(), agent.NewState(), agent.UserText("pay")).Get()
	require.NoError(t, err)
	return asked, paid, final
}

func asks(q agent.Question) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, "payments/large", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.AskAbout(q) }).
		WithPriority(hooks.PriorityGuard)
}

const rent = `{"to":"landlord","amount":900}`

func TestWaiver(t *testing.T) {
	scope := waiver.Scope{Rule: "payments/large", Tool: "transfer", Arguments: map[string]string{"to": "landlord"}}
	for name, c := range map[string]struct {
		scope     waiver.Scope
		arguments string
		question  agent.Question
		more      []hooks.Hook
		waived    bool
	}{
		"covers the question":      {scope: scope, arguments: rent, waived: true},
		"another payee":            {scope: scope, arguments: `{"to":"mallory","amount":900}`},
		"another rule":             {scope: waiver.Scope{Rule: "payments/small", Tool: "transfer"}, arguments: rent},
		"another tool":             {scope: waiver.Scope{Rule: "payments/large", Tool: "refund"}, arguments: rent},
		"a pattern of tools":       {scope: waiver.Scope{Rule: "payments/large", Tool: "trans*"}, arguments: rent, waived: true},
		"needs approvers":          {scope: scope, arguments: rent, question: agent.Question{Approvers: []string{"finance"}}},
		"needs two people":         {scope: scope, arguments: rent, question: agent.Question{Quorum: 2}},
		"one of two rules covered": {scope: scope, arguments: rent, more: []hooks.Hook{hooks.AlwaysAsk("night", "it is late")}},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			add(t, store, c.scope)
			c.question.Reason = "it is much"
			asked, paid, _ := pay(t, store, c.arguments, append(c.more, asks(c.question))...)
			assert.Equal(t, c.waived, paid)
			assert.Equal(t, !c.waived, asked == 1)
		})
	}
}

// A question of a required policy is for people.
func TestWaiverOfARequiredPolicy(t *testing.T) {
	store := open(t)
	add(t, store, waiver.Scope{Rule: "payments/large", Tool: "transfer"})
	required := asks(agent.Question{Reason: "it is much"}).From(&hooks.Origin{Policy: "payments", Rule: "large", Required: true})
	asked, paid, _ := pay(t, store, rent, required)
	assert.False(t, paid)
	assert.Equal(t, 1, asked)
}

func TestWaiverIsRevoked(t *testing.T) {
	store := open(t)
	w := add(t, store, waiver.Scope{Rule: "payments/large", Tool: "transfer"})
	require.NoError(t, store.RevokeWaiver(t.Context(), w.ID, "eve"))
	_, paid, _ := pay(t, store, rent, asks(agent.Question{}))
	assert.False(t, paid)
	all, err := store.Waivers(t.Context(), true)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "eve", all[0].RevokedBy)
	records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Subject: w.ID})
	require.NoError(t, err)
	require.Len(t, records, 2)
	assert.Equal(t, durable.AuditWaiverRevoked, records[0].Kind)
	assert.Equal(t, "ann", records[1].By)
}

// When the waivers cannot be read, the person is asked.
func TestWaiversThatCannotBeRead(t *testing.T) {
	store := open(t)
	require.NoError(t, store.AddWaiver(t.Context(), durable.Waiver{
		ID: "broken", By: "ann", Created: time.Now(), Expires: time.Now().Add(time.Hour), Data: []byte("{"),
	}))
	asked, paid, _ := pay(t, store, rent, asks(agent.Question{}))
	assert.False(t, paid)
	assert.Equal(t, 1, asked)
	require.NoError(t, store.Close())
	asked, paid, _ = pay(t, store, rent, asks(agent.Question{}))
	assert.False(t, paid)
	assert.Equal(t, 1, asked)
}

// The effect of a waiver is known before there is one: from the answers that people gave.
func TestPreview(t *testing.T) {
	store := open(t)
	tool := toolexec.Func("transfer", "Transfers money.", func(context.Context, struct {
		To     string `json:"to"`
		Amount int    `json:"amount"`
	}) (string, error) {
		return "paid", nil
	})
	answer := func(arguments string, verdict agent.ApprovalVerdict) {
		a, err := builder.New().WithDriver(agenttest.Script(agenttest.Call("transfer", arguments), agenttest.Say("done"))).
			With(capability.UseTools(tool), capability.UseHooks(asks(agent.Question{})), capability.UseApproval(agent.ParkApprover),
				capability.UseDurability{Keeper: durable.Keep(store, durable.Options{})}).Build().Get()
		require.NoError(t, err)
		s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("pay")).Get()
		require.NoError(t, err)
		require.True(t, s.Parked())
		waits, err := store.OpenWaits(t.Context(), durable.WaitFilter{Run: s.Run().ID})
		require.NoError(t, err)
		require.Len(t, waits, 1)
		_, err = durable.Decide(t.Context(), store, waits[0], agent.Approval{Verdict: verdict, By: "bob"})
		require.NoError(t, err)
	}
	answer(rent, agent.Approve)
	answer(rent, agent.RejectAndContinue)
	answer(`{"to":"mallory","amount":900}`, agent.RejectAndEnd)

	scope := waiver.Scope{Rule: "payments/large", Tool: "transfer", Arguments: map[string]string{"to": "landlord"}}
	effect, err := waiver.Preview(t.Context(), store, scope, time.Time{}, 1000)
	require.NoError(t, err)
	assert.Equal(t, 3, effect.Answers)
	require.Len(t, effect.Covered, 2)
	assert.Equal(t, 1, effect.Rejected)
	assert.JSONEq(t, rent, effect.Covered[0].Call.Arguments)
	effect, err = waiver.Preview(t.Context(), store, scope, time.Time{}, 1)
	require.NoError(t, err)
	assert.Equal(t, 1, effect.Answers)
	effect, err = waiver.Preview(t.Context(), store, scope, time.Now().Add(time.Hour), 1000)
	require.NoError(t, err)
	assert.Zero(t, effect.Answers)
}

// The narrowest scope is for exactly the call. It says what no pattern describes, and why no waiver may answer.
func TestScopeOfCall(t *testing.T) {
	asked := func(q agent.Question) agent.Questions {
		q.By, q.Waivable = "payments/large", true
		return agent.Questions{q}
	}
	s, free, err := waiver.ScopeOfCall(asked(agent.Question{}), agent.ToolCall{Name: "transfer", Arguments: `{"to":"rm *.log | a/b",` +
		`"amount":900,"x.y":true,"tags":["a"],"empty":"","hidden":"a\u202eb","big":1e+5}`})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"to": `rm \*\.log \| a\/b`, "amount": "900", `x\.y`: "true"}, s.Arguments)
	assert.Equal(t, []string{"big", "empty", "hidden", "tags"}, free)
	for arguments, covered := range map[string]bool{
		`{"to":"rm *.log | a/b","amount":900,"x.y":true}`:         true,
		`{"to":"rm *.log | a/b","amount":9.0e2,"x.y":true}`:       true,
		`{"to":"rm *.log | a/b","amount":901,"x.y":true}`:         false,
		`{"to":"rm *.log | a/b","amount":900,"x.y":false}`:        false,
		`{"to":"rm x.log | a/b","amount":900,"x.y":true}`:         false,
		`{"to":"rm *.log | a/b","amount":900,"x":{"y":true}}`:     false,
		`{"to":"rm *.log | a/b","amount":900,"x.y":true,"z":"a"}`: true,
	} {
		assert.Equal(t, covered, s.Covers("payments/large", agent.ToolCall{Name: "transfer", Arguments: arguments}), arguments)
	}
	two := append(asked(agent.Question{}), agent.Question{By: "night", Waivable: true})
	for why, q := range map[string]agent.Questions{
		"payments/large, night":   two,
		"of a required policy":    asked(agent.Question{Required: true}),
		"it needs 2 approvals":    asked(agent.Question{Quorum: 2}),
		"that have not begun":     asked(agent.Question{Kind: agent.QuestionDoubt}),
		"would allow all of them": asked(agent.Question{}),
		"does not use waivers":    {{By: "payments/large"}},
	} {
		_, _, err := waiver.ScopeOfCall(q, agent.ToolCall{Name: "transfer", Arguments: `{"tags":["a"]}`})
		assert.ErrorContains(t, err, why)
	}
}

func TestEndOf(t *testing.T) {
	for now, want := range map[string]string{
		"2026-12-03T23:59:00Z": "2026-12-05", "2026-12-04T00:00:00Z": "2026-12-12", "2026-12-05T12:00:00Z": "2026-12-12",
		"2026-12-04T01:00:00+02:00": "2026-12-05",
	} {
		at, err := time.Parse(time.RFC3339, now)
		require.NoError(t, err)
		assert.Equal(t, want+"T00:00:00Z", waiver.EndOf(time.Friday, at).Format(time.RFC3339), now)
	}
}

func TestNewIsStrict(t *testing.T) {
	later := time.Now().Add(time.Hour)
	for want, try := range map[string]func() (durable.Waiver, error){
		"name the rule and the tool": func() (durable.Waiver, error) { return waiver.New(waiver.Scope{Tool: "x"}, "ann", later) },
		"its author is missing":      func() (durable.Waiver, error) { return waiver.New(waiver.Scope{Rule: "r", Tool: "x"}, "", later) },
		"the author's name must be": func() (durable.Waiver, error) {
			return waiver.New(waiver.Scope{Rule: "r", Tool: "x"}, "ann\u202e", later)
		},
		"the reason must be": func() (durable.Waiver, error) {
			return waiver.New(waiver.Scope{Rule: "r", Tool: "x", Reason: "a\x1b[2J"}, "ann", later)
		},
		"not in the future": func() (durable.Waiver, error) {
			return waiver.New(waiver.Scope{Rule: "r", Tool: "x"}, "ann", time.Now())
		},
		`tool pattern "a|b"`: func() (durable.Waiver, error) { return waiver.New(waiver.Scope{Rule: "r", Tool: "a|b"}, "ann", later) },
	} {
		_, err := try()
		assert.ErrorContains(t, err, want)
	}
}

func ExampleNew() {
	w, err := waiver.New(waiver.Scope{Rule: "payments/large", Tool: "transfer", Arguments: map[string]string{"to": "landlord"}},
		"ann", time.Now().Add(30*24*time.Hour))
	if err != nil {
		panic(err)
	}
	s, err := waiver.ScopeOf(w)
	if err != nil {
		panic(err)
	}
	fmt.Println(s)
	// Output: payments/large: transfer with to=landlord
}
