package pii_test

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks/pii"
	"github.com/grapnel-go/grapnel/toolexec"
)

func Example() {
	filter, err := pii.New(pii.Options{
		Kinds:      []string{"email", "phone", "credit_card"},
		Strategies: map[string]pii.Strategy{"credit_card": pii.Mask},
		Except:     []string{"support@example.com"},
		Told: func(_ context.Context, r pii.Report) {
			fmt.Println("found in the result of", r.Tool+":", r.Counts)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := toolexec.Func("order", "Finds an order.", func(context.Context, struct{}) (string, error) {
		return "Order 20240115-0042 of Ada <ada@example.com>, +49 30 1234567, paid with 4111 1111 1111 1111.\nQuestions? support@example.com", nil
	})
	model := agenttest.Script(agenttest.Call("order", `{}`), agenttest.Say("done"))
	a := builder.New().WithDriver(model).With(capability.UseTools(orders), capability.UseHooks(filter.Results())).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("What about my order?")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// found in the result of order: map[credit_card:1 email:1 phone:1]
	// Order 20240115-0042 of Ada <[EMAIL]>, [PHONE], paid with **** **** **** 1111.
	// Questions? support@example.com
}
