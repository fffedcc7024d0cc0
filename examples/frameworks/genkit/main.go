// Command genkit is an agent of github.com/firebase/genkit.
//
// A question is an interrupt of its tool. Genkit goes on where it was, and makes only this call again.
package main

import (
	"context"
	"errors" // ask

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai"

	"github.com/grapnel-go/grapnel/agent" // guard
	"github.com/grapnel-go/grapnel/examples/frameworks/desk"
	"github.com/grapnel-go/grapnel/guard"  // guard
	"github.com/grapnel-go/grapnel/policy" // guard
)

func tool[In any](k *genkit.Genkit, name, text string, f func(context.Context, In) (string, error)) ai.Tool {
	f = guard.Tool(name, f) // guard
	return genkit.DefineTool(k, name, text, func(tc *ai.ToolContext, in In) (string, error) {
		out, err := f(tc, in)
		if ask, ok := errors.AsType[*guard.AskError](err); ok { // ask
			return "", ai.InterruptWith(tc, ask) // ask
		} // ask
		return out, err
	})
}

func run(ctx context.Context, d *desk.Desk, url, input string) (string, error) {
	rules := desk.Must(policy.LoadFiles("policy.yaml"))                                               // guard
	g := desk.Must(guard.New(guard.Config{Name: "desk", Rules: rules, Approver: agent.ParkApprover})) // guard
	session := g.Session(ctx, "", agent.UserText(input))                                              // guard
	defer session.Close(ctx)                                                                          // guard
	ctx = guard.WithSession(ctx, session)                                                             // guard

	service := &compat_oai.OpenAICompatible{Provider: "desk", BaseURL: url}
	k := genkit.Init(ctx, genkit.WithPlugins(service))
	model := service.DefineModel("desk", desk.Model, ai.ModelOptions{Supports: &compat_oai.BasicText})
	tools := ai.WithTools(tool(k, "pay", "Pays a person.", d.Pay), tool(k, "read_mail", "Reads a mailbox.", d.ReadMail))
	response := desk.Must(genkit.Generate(ctx, k, ai.WithModel(model), tools, ai.WithPrompt(input)))
	if calls := response.Interrupts(); len(calls) > 0 { // ask
		for i, call := range calls { // ask
			ask, _ := ai.InterruptAs[guard.AskError](call)                            // ask
			ctx = guard.WithAnswers(ctx, ask.Token, d.Answer(&ask))                   //nolint:fatcontext // ask
			calls[i] = genkit.LookupTool(k, call.ToolRequest.Name).Restart(call, nil) // ask
		} // ask
		response = desk.Must(genkit.Generate(ctx, k, ai.WithModel(model), tools, ai.WithMessages(response.History()...), ai.WithToolRestarts(calls...))) // ask
	} // ask
	return response.Text(), nil
}

func main() { desk.Main(run) }
