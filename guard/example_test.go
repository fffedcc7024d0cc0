package guard_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

const deskPolicy = `
policy: desk
hooks:
  PreToolUse:
    - id: limit
      match: {tool: pay}
      when: '!(args.amount > 0 && args.amount <= 100)'
      decision: deny
      reason: ${args.amount} is not between 0 and 100
`

// payFor is a tool of some other framework.
func payFor(_ context.Context, arguments string) (string, error) { return "paid " + arguments, nil }

func Example() {
	ctx := context.Background()
	p, err := policy.Parse("policy.yaml", []byte(deskPolicy), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(guard.Config{Name: "desk", Rules: p})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := g.Session(ctx, "conversation-7", agent.UserText("Pay the bills."))
	for _, arguments := range []string{`{"amount":5}`, `{"amount":500}`} {
		fmt.Println(guard.Do(ctx, s, guard.Call{Tool: "pay", Arguments: arguments}, payFor, guard.Text))
	}
	fmt.Println(s.Close(ctx))
	// Output:
	// paid {"amount":5} <nil>
	// tool "pay": denied by desk/limit: 500 is not between 0 and 100 <nil>
	// <nil>
}

// A wrapped func is a tool for any framework that calls funcs.
func ExampleTool() {
	g, err := guard.New(guard.Config{Name: "desk", Hooks: []hooks.Hook{hooks.AlwaysDeny("closed", "the desk is closed")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := guard.Tool("pay", payFor)
	_, err = pay(context.Background(), `{"amount":5}`)
	fmt.Println(err)
	s := g.Session(context.Background(), "")
	fmt.Println(pay(guard.WithSession(context.Background(), s), `{"amount":5}`))
	// Output:
	// guard: the call belongs to no session: open one with Guard.Session, and pass it on with WithSession
	// tool "pay": denied by closed: the desk is closed <nil>
}

// The framework makes the call again, and the answer is in its context.
func ExampleWithAnswers() {
	g, err := guard.New(guard.Config{
		Name: "desk", Hooks: []hooks.Hook{hooks.AlwaysAsk("four-eyes", "money leaves")}, Approver: agent.ParkApprover,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	type payment struct{ Amount int }
	pay := guard.Tool("pay", func(_ context.Context, p payment) (string, error) { return fmt.Sprint("paid ", p.Amount), nil })
	ctx := guard.WithSession(context.Background(), g.Session(context.Background(), ""))
	_, err = pay(ctx, payment{5})
	if ask, ok := errors.AsType[*guard.AskError](err); ok {
		ctx = guard.WithAnswers(ctx, ask.Token, agent.Approval{Verdict: agent.Approve, By: "ann"})
	}
	fmt.Println(pay(ctx, payment{5}))
	// Output: paid 5 <nil>
}

// The host asks, and makes the call again with the answer.
func ExampleAskError() {
	ctx := context.Background()
	g, err := guard.New(guard.Config{
		Name: "desk", Hooks: []hooks.Hook{hooks.AlwaysAsk("four-eyes", "money leaves")}, Approver: agent.ParkApprover,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := g.Session(ctx, "")
	call := guard.Call{ID: "call-1", Tool: "pay", Arguments: `{"amount":5}`}
	_, err = guard.Do(ctx, s, call, payFor, guard.Text)
	if ask, ok := errors.AsType[*guard.AskError](err); ok {
		fmt.Println(ask.Questions.Reason())
		call.Token, call.Answers = ask.Token, []agent.Approval{{Verdict: agent.Approve, By: "ann"}}
	}
	fmt.Println(guard.Do(ctx, s, call, payFor, guard.Text))
	// Output:
	// money leaves
	// paid {"amount":5} <nil>
}
