// Command tour is the README's five-minute tour as a program: a typed tool, hooks that deny, rewrite, redact and keep
// an agent from stopping too early, a printed plan, a run step by step, a typed answer. The model is a script, so it
// needs no key and no network.
//
//	go run ./examples/tour
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

func main() {
	if err := tour(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

type Transfer struct {
	To     string  `json:"to" jsonschema:"name of the payee"`
	Amount float64 `json:"amount" jsonschema:"in euros"`
}

var transfer = toolexec.Func("transfer", "Sends money to a person.",
	func(_ context.Context, in Transfer) (string, error) {
		return fmt.Sprintf("sent %.2f to %s, key SECRET-4711", in.Amount, in.To), nil
	})

var onlyFriends = hooks.OnCall("only-friends", "transfer",
	func(_ context.Context, c hooks.ToolContext, in Transfer) hooks.Result {
		if in.To != "Alice" && in.To != "Bob" {
			return c.Deny(in.To + " is no friend")
		}
		if in.Amount <= 0 {
			return c.Deny("the amount must be above zero")
		}
		if in.Amount > 100 {
			in.Amount = 100
			return c.Patch(in)
		}
		return c.Allow()
	})

var redact = hooks.AlwaysFilter("redact", func(text string) string {
	return strings.ReplaceAll(text, "SECRET-4711", "[redacted]")
}).WithPriority(hooks.PriorityGuard)

var thankFirst = hooks.On(hooks.AtStop, "thank-first",
	func(_ context.Context, c hooks.StopContext) hooks.Result {
		if strings.Contains(c.Answer(), "Thank") {
			return c.Allow()
		}
		return c.Continue("Say thank you first.")
	})

// Receipt is the typed answer.
type Receipt struct {
	Payee string  `json:"payee"`
	Sum   float64 `json:"sum"`
}

func tour(ctx context.Context, out io.Writer) error {
	// The model of this tour always gives these replies.
	driver := agenttest.Script(
		agenttest.Call("transfer", `{"to":"Alice","amount":250}`).
			Call("transfer", `{"to":"Mallory","amount":1}`).
			Call("transfer", `{"to":"Bob","amount":"ten"}`),
		agenttest.Say("All paid."),
		agenttest.Say("All paid. Thank you!"),
	).EachRun()

	b := builder.New().
		WithName("banker").
		WithDriver(driver).
		WithInstructions("You pay bills.").
		With(
			capability.UseTools(transfer),
			capability.UseHooks(onlyFriends, redact, thankFirst),
			capability.UseGuards{Steps: 10},
		)

	plan, err := b.Plan().Get()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, plan)

	a, err := b.Build().Get()
	if err != nil {
		return err // all errors
	}

	for s, err := range a.Steps(ctx, agent.NewState(), agent.UserText("Pay Alice, Mallory and Bob.")) {
		if err != nil {
			return err
		}
		if s.Status().Terminal() {
			fmt.Fprintln(out, "status:", s.Status())
			continue
		}
		step := s.LastStep()
		fmt.Fprintf(out, "step %d: %s\n", step.Index()+1, step.Message().Text())
		for _, r := range step.Results() {
			fmt.Fprintf(out, "  %-12s %s\n", r.Status, strings.ReplaceAll(r.Text(), "\n", " "))
		}
	}

	receipts, err := builder.New().WithDriver(agenttest.Script(
		agenttest.Say(`{"payee":"Alice"}`), // the sum is missing: sent back with what is wrong
		agenttest.Say(`{"payee":"Alice","sum":100}`),
	)).Build().Get()
	if err != nil {
		return err
	}
	answer, err := builder.RunAs[Receipt](ctx, receipts, agent.NewState(), agent.UserText("The receipt, please.")).Get()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "typed: %.0f to %s\n\n", answer.Value.Sum, answer.Value.Payee)

	_, err = builder.New().
		With(capability.UseHooks(onlyFriends, onlyFriends), capability.UseGuards{Steps: -2}).
		Build().Get()
	if err == nil {
		return errors.New("a broken agent was built")
	}
	fmt.Fprintln(out, err)
	return nil
}
