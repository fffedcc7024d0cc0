package redact_test

import (
	"context"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks/redact"
	"github.com/grapnel-go/grapnel/toolexec"
)

func Example() {
	redactor, err := redact.New(redact.Options{
		Literals: map[string]string{"DB_PASSWORD": "correct horse"},
		Patterns: []redact.Pattern{{Kind: "badge", Regexp: `badge (\d{6})`}},
		Told: func(_ context.Context, r redact.Report) {
			fmt.Println("replaced in the result of", r.Tool+":", r.Counts)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	read := toolexec.Func("read_file", "Reads a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return map[string]string{
			".env":      "DB=postgres://app:correct%20horse@db/app\nPORT=8080\n",
			"team.json": `{"name": "Ada", "door": "badge 123456", "note": "b64 Y29ycmVjdCBob3JzZQ=="}`,
		}[in.Path], nil
	})
	model := agenttest.Script(
		agenttest.Call("read_file", `{"path": ".env"}`),
		agenttest.Call("read_file", `{"path": "team.json"}`),
		agenttest.Say("done"),
	)
	a := builder.New().WithDriver(model).With(capability.UseTools(read), capability.UseHooks(redactor.Results())).Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("What is in there?")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// replaced in the result of read_file: map[DB_PASSWORD:1]
	// replaced in the result of read_file: map[DB_PASSWORD:1 badge:1]
	// DB=postgres://app:[redacted: DB_PASSWORD]@db/app
	// PORT=8080
	//
	// {"name": "Ada", "door": "badge [redacted: badge]", "note": "b64 [redacted: DB_PASSWORD]"}
}
