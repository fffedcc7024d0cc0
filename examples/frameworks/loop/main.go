// Command loop is an agent whose loop is its own, with github.com/openai/openai-go.
//
// A loop asks in place, and makes the same call again.
package main

import (
	"context"
	"errors" // ask

	"github.com/openai/openai-go/v2"
	"github.com/openai/openai-go/v2/option"

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

	tools := map[string]func(context.Context, string) (string, error){
		"pay":       guard.Tool("pay", desk.JSON(d.Pay)),            // guarded
		"read_mail": guard.Tool("read_mail", desk.JSON(d.ReadMail)), // guarded
	}
	client := openai.NewClient(option.WithBaseURL(url))
	request := openai.ChatCompletionNewParams{
		Model:    desk.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(input)},
		Tools: []openai.ChatCompletionToolUnionParam{
			describe("pay", "Pays a person.", map[string]any{"to": text, "amount": number}),
			describe("read_mail", "Reads a mailbox.", map[string]any{"name": text}),
		},
	}
	for {
		completion, err := client.Chat.Completions.New(ctx, request)
		if err != nil {
			return "", err
		}
		message := completion.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		request.Messages = append(request.Messages, message.ToParam())
		for _, c := range message.ToolCalls {
			result, err := tools[c.Function.Name](ctx, c.Function.Arguments)
			if ask, ok := errors.AsType[*guard.AskError](err); ok { // ask
				answered := guard.WithAnswers(ctx, ask.Token, d.Answer(ask))         // ask
				result, err = tools[c.Function.Name](answered, c.Function.Arguments) // ask
			} // ask
			if err != nil {
				result = err.Error()
			}
			request.Messages = append(request.Messages, openai.ToolMessage(result, c.ID))
		}
	}
}

var text, number = map[string]any{"type": "string"}, map[string]any{"type": "number"}

func describe(name, description string, properties map[string]any) openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: name, Description: openai.String(description),
		Parameters: openai.FunctionParameters{"type": "object", "properties": properties},
	})
}

func main() { desk.Main(run) }
