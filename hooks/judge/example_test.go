package judge_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/judge"
	"github.com/grapnel-go/grapnel/toolexec"
)

func Example() {
	send := toolexec.Func("send_mail", "Sends a mail.", func(_ context.Context, in struct {
		To string `json:"to"`
	},
	) (string, error) {
		return "sent to " + in.To, nil
	})
	small := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) { // a model that sees what the rule is about
		if strings.Contains(s.Message(0).Text(), "eve@example.com") {
			return agent.Step{Message: agent.Assistant(`{"verdict": "deny", "reason": "the user did not ask for a mail to Eve"}`)}, nil
		}
		return agent.Step{Message: agent.Assistant(`{"verdict": "allow", "reason": "the user asked for it"}`)}, nil
	})
	j, err := judge.New(judge.Options{Driver: small, Rule: "Mails may only be sent to people who are named in the user's request.", Input: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	model := agenttest.Script(
		agenttest.Call("send_mail", `{"to": "ada@example.com"}`).Call("send_mail", `{"to": "eve@example.com"}`),
		agenttest.Say("done"),
	)
	a := builder.New().WithDriver(model).
		With(capability.UseTools(send), capability.UseHooks(j.Calls(hooks.ToolNamed("send_mail")))).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Tell Ada that we are late.")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// sent to ada@example.com
	// tool "send_mail": denied by judge: the user did not ask for a mail to Eve
}
