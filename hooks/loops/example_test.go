package loops_test

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks/loops"
	"github.com/grapnel-go/grapnel/toolexec"
)

func Example() {
	read := toolexec.Func("read_file", "Reads a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return "there is no " + in.Path, nil
	})
	stuck := agenttest.Script().Then(agenttest.Call("read_file", `{"path": "go.sum"}`)) // whatever it is told
	a := builder.New().WithDriver(stuck).
		With(capability.UseTools(read), capability.UseHooks(loops.Hooks(loops.Options{Deny: 2, Stop: 4})...)).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("What do we depend on?")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println("-", m.Text())
		}
	}
	fmt.Println(final.Status()+":", final.StopSignal().Message)
	// Output:
	// - there is no go.sum
	// - there is no go.sum
	// - tool "read_file": denied by loops: the same call of read_file was made 2 times in a row and returned nothing new; the same call will not help: use the results that you have, try something else, or explain why you cannot continue
	// - tool "read_file": denied by loops: the same call of read_file was made 3 times in a row and returned nothing new; the same call will not help: use the results that you have, try something else, or explain why you cannot continue
	// stopped: the run is in a loop: the same call of read_file was made 4 times in a row and returned nothing new
}
