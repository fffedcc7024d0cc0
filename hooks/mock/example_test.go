package mock_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks/mock"
	"github.com/grapnel-go/grapnel/toolexec"
)

var pay = toolexec.Func("pay", "Pays a bill.", func(_ context.Context, in struct {
	To     string  `json:"to"`
	Amount float64 `json:"amount"`
},
) (string, error) {
	return fmt.Sprintf("paid %g to %s", in.Amount, in.To), nil
})

func Example() {
	table, err := mock.NewTable(mock.Options{},
		mock.Row{Tool: "pay", Arguments: mock.Arguments{"to": "ACME"}, Failure: "the bank is closed", Times: 1},
		mock.Row{Tool: "pay", Arguments: mock.Arguments{"to": "ACME"}, Text: "paid"},
		mock.Row{Name: "the landlord", Tool: "pay", Arguments: mock.Arguments{"to": "Ada"}, Text: "paid"},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := agenttest.Script(
		agenttest.Call("pay", `{"to": "ACME", "amount": 12}`),
		agenttest.Call("pay", `{"to": "ACME", "amount": 12}`),
		agenttest.Call("pay", `{"to": "Bob", "amount": 1000}`),
		agenttest.Say("done"),
	)
	a := builder.New().WithDriver(model).With(capability.UseTools(pay), capability.UseHooks(table.Hook())).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("Pay the bills.")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Status(), "-", m.Text())
		}
	}
	fmt.Println("never asked for:", table.UnusedRows())
	// Output:
	// mocked - the bank is closed
	// mocked - paid
	// not_executed - tool "pay": denied by mock: the table of mocks has no answer of pay to these arguments: {"to": "Bob", "amount": 1000}
	// never asked for: [the landlord]
}

func ExampleReplay() {
	run := func(model *agenttest.Driver, with capability.Capability) {
		a := builder.New().WithDriver(model).With(capability.UseTools(pay), with).Build().MustGet()
		final := a.Run(context.Background(), agent.NewState(), agent.UserText("Pay the bills.")).MustGet()
		for _, m := range final.Messages() {
			if m.Role() == agent.RoleTool {
				fmt.Println(m.Status(), "-", m.Text())
			}
		}
	}
	var file bytes.Buffer
	recorder := mock.Record(&file)
	run(agenttest.Script(agenttest.Call("pay", `{"to": "ACME", "amount": 12}`), agenttest.Say("done")), capability.UseHooks(recorder.Hook()))

	recording, err := mock.Read("bills.jsonl", &file)
	if err != nil {
		fmt.Println(err)
		return
	}
	player := mock.Replay(recording, mock.Options{})
	run(agenttest.Script(
		agenttest.Call("pay", `{"amount": 12.00, "to": "ACME"}`).Call("pay", `{"to": "Bob", "amount": 1000}`), agenttest.Say("done"),
	), capability.UseHooks(player.Hook()))
	// Output:
	// executed - paid 12 to ACME
	// mocked - paid 12 to ACME
	// not_executed - tool "pay": denied by mock: the recording bills.jsonl has no answer of pay to these arguments: {"to": "Bob", "amount": 1000}
}
