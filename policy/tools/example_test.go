package tools_test

import (
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/policy/tools"
)

func ExampleTable_Describe() {
	d := tools.Table{}.Describe(agent.ToolSpec{
		Name: "createTransfer", Description: "Moves money to another account.",
		Parameters: `{"type": "object", "properties": {"targetAccount": {"type": "string"}, "value": {"type": "number"}}}`,
	})
	fmt.Println(d.Effects, d.Certainty)
	for _, a := range d.Arguments {
		fmt.Println(a.Name, a.Role, a.Certainty)
	}
	// Output:
	// [pays] sure
	// targetAccount payee likely
	// value amount likely
}
