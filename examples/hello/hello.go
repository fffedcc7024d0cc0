package main

import (
	"context"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

type Mail struct {
	To   string `json:"to" jsonschema:"a mail address"`
	Text string `json:"text"`
}

// sendMail is the agent's tool. It only says what it would send.
var sendMail = toolexec.Func("send_mail", "Sends a mail.", func(_ context.Context, in Mail) (string, error) {
	return "sent to " + in.To, nil
})

var addressBook = []string{"ann@example.com", "carl@example.com"}

// onlyKnown is the hook. The agent asks it before each call of send_mail, and the tool runs only if it allows the call.
var onlyKnown = hooks.OnCall("only-known", "send_mail", func(_ context.Context, c hooks.ToolContext, in Mail) hooks.Result {
	if !slices.Contains(addressBook, in.To) {
		return c.Deny(in.To + " is not in the address book")
	}
	return c.Allow()
})

func sayHello(ctx context.Context, driver agent.Driver) (agent.State, error) {
	a, err := builder.New().WithDriver(driver).With(capability.UseTools(sendMail), capability.UseHooks(onlyKnown)).Build().Get()
	if err != nil {
		return agent.State{}, err
	}
	return a.Run(ctx, agent.NewState(), agent.UserText("Say hello to ann@example.com and to bob@example.org.")).Get()
}
