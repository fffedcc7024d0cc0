// Command langchaingo is an agent of github.com/tmc/langchaingo.
//
// A question is an error of its tool, which ends the run. The run begins again with the answer, because langchaingo cannot
// resume it: earlier calls are made again. Where they must not, give the guard an Approver that waits for the person.
//
// The input of a tool here is JSON. For a tool whose input is plain text, wrap a func of a struct with that text.
package main

import (
	"context"
	"errors" // ask

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/grapnel-go/grapnel/agent" // guard
	"github.com/grapnel-go/grapnel/examples/frameworks/desk"
	"github.com/grapnel-go/grapnel/guard"  // guard
	"github.com/grapnel-go/grapnel/policy" // guard
)

type tool struct {
	name, text string
	call       func(ctx context.Context, input string) (string, error)
}

func (t tool) Name() string                                           { return t.name }
func (t tool) Description() string                                    { return t.text }
func (t tool) Call(ctx context.Context, input string) (string, error) { return t.call(ctx, input) }

func run(ctx context.Context, d *desk.Desk, url, input string) (string, error) {
	rules := desk.Must(policy.LoadFiles("policy.yaml"))                                               // guard
	g := desk.Must(guard.New(guard.Config{Name: "desk", Rules: rules, Approver: agent.ParkApprover})) // guard
	session := g.Session(ctx, "", agent.UserText(input))                                              // guard
	defer session.Close(ctx)                                                                          // guard
	ctx = guard.WithSession(ctx, session)                                                             // guard

	model := desk.Must(openai.New(openai.WithBaseURL(url), openai.WithModel(desk.Model)))
	executor := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, []tools.Tool{
		tool{"pay", `Pays a person: {"to": name, "amount": number}`, guard.Tool("pay", desk.JSON(d.Pay))},    // guarded
		tool{"read_mail", `Reads a mailbox: {"name": name}`, guard.Tool("read_mail", desk.JSON(d.ReadMail))}, // guarded
	}))
	answer, err := chains.Run(ctx, executor, input)
	if ask, ok := errors.AsType[*guard.AskError](err); ok { // ask
		return chains.Run(guard.WithAnswers(ctx, ask.Token, d.Answer(ask)), executor, input) // ask
	} // ask
	return answer, err
}

func main() { desk.Main(run) }
