// Command openaiagents is an agent of github.com/nlpodyssey/openai-agents-go.
//
// A question is an error of its tool, which an error function turns into a text for the model. The run ends as usual, and
// the next one continues with its transcript and the answer.
package main

import (
	"context"
	"errors" // ask
	"fmt"

	"github.com/nlpodyssey/openai-agents-go/agents"
	"github.com/openai/openai-go/v2/packages/param"

	"github.com/grapnel-go/grapnel/agent" // guard
	"github.com/grapnel-go/grapnel/examples/frameworks/desk"
	"github.com/grapnel-go/grapnel/guard"  // guard
	"github.com/grapnel-go/grapnel/policy" // guard
)

func run(ctx context.Context, d *desk.Desk, url, input string) (string, error) {
	rules := desk.Must(policy.LoadFiles("policy.yaml"))                                               // guard
	g := desk.Must(guard.New(guard.Config{Name: "desk", Rules: rules, Approver: agent.ParkApprover})) // guard
	session := g.Session(ctx, "", agent.UserText(input))                                              // guard
	defer session.Close(ctx)                                                                          // guard
	ctx = guard.WithSession(ctx, session)                                                             // guard

	pay := desk.Must(agents.SafeNewFunctionTool("pay", "Pays a person.", guard.Tool("pay", d.Pay)))                         // guarded
	readMail := desk.Must(agents.SafeNewFunctionTool("read_mail", "Reads a mailbox.", guard.Tool("read_mail", d.ReadMail))) // guarded
	wait := agents.ToolErrorFunction(func(ctx context.Context, err error) (any, error) {                                    // ask
		if ask, ok := errors.AsType[*guard.AskError](err); ok { // ask
			return d.Park(ask), nil // ask
		} // ask
		return agents.DefaultToolErrorFunction(ctx, err) // ask
	}) // ask
	pay.FailureErrorFunction = &wait // ask

	client := agents.NewOpenaiClient(param.NewOpt(url), param.Opt[string]{})
	a := agents.New("desk").WithModelInstance(agents.NewOpenAIChatCompletionsModel(desk.Model, client)).WithTools(pay, readMail)
	runner := agents.Runner{Config: agents.RunConfig{TracingDisabled: true}}
	result, err := runner.Run(ctx, a, input)
	for asks := d.Parked(); err == nil && len(asks) > 0; asks = d.Parked() { // ask
		for _, ask := range asks { // ask
			ctx = guard.WithAnswers(ctx, ask.Token, d.Answer(ask)) //nolint:fatcontext // ask
		} // ask
		result, err = runner.RunInputs(ctx, a, agents.InputList(result.ToInputList(), "The person has answered.")) // ask
	} // ask
	if err != nil {
		return "", err
	}
	return fmt.Sprint(result.FinalOutput), nil
}

func main() { desk.Main(run) }
