package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// A script decides on each call. It does not search the text of the call, which has many
// spellings: a rule of package policy or a hook in Go judges arguments.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	script := action.Shell{Dir: dir, Text: `
		if [ -e freeze ]; then
			echo '{"decision":"deny","reason":"nothing changes until the release is out"}'
		fi`}
	check, err := script.Action(action.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	hook := hooks.On(hooks.AtPreToolUse, "check", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		return action.Apply(ctx, c, check, action.NewRequest(c, "check"))
	}).WithTimeout(script.Limit())

	write := toolexec.Func("write", "Writes a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return "wrote " + in.Path, os.WriteFile(filepath.Join(dir, filepath.Base(in.Path)), nil, 0o600)
	})
	a := builder.New().
		WithDriver(agenttest.Script(
			agenttest.Call("write", `{"path":"freeze"}`),
			agenttest.Call("write", `{"path":"notes.txt"}`),
			agenttest.Say("done"),
		)).
		With(capability.UseTools(write), capability.UseHooks(hook)).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("take a note")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// wrote freeze
	// tool "write": denied by check: nothing changes until the release is out
}

func ExampleParseDecision() {
	for _, text := range []string{``, `{"decision":"deny","reason":"no"}`, `{"decision":"denied"}`, `{"decision":"allow","arguments":{}}`} {
		d, err := action.ParseDecision([]byte(text))
		switch {
		case err != nil:
			fmt.Println(err)
		case d == nil:
			fmt.Println("no opinion")
		default:
			fmt.Println(d.Decision, d.Reason)
		}
	}
	// Output:
	// no opinion
	// deny no
	// invalid decision: unknown decision "denied": expected one of allow, approve, ask, continue, deny, mock, reject, replace, rewrite, stop, withhold
	// invalid decision: allow does not take "arguments"
}

func ExampleShell_Lint() {
	for _, w := range (action.Shell{Text: "./report.sh ${ERROR}\n./report.sh \"${ERROR}\""}).Lint() {
		fmt.Println(w)
	}
	// Output:
	// command:1:13: ${ERROR}: bash splits its value at spaces and expands wildcards in it: write "${ERROR}"
}

func ExampleFields() {
	err := action.HTTP{URL: "http://example.com", Retries: -1}.Validate()
	for _, f := range action.Fields(err) {
		fmt.Println(f.Field)
	}
	// Output:
	// url
	// retries
}

func ExampleError() {
	a := lo.Must(action.Shell{Text: "exit 3"}.Action(action.Host{}))
	_, err := a.Do(context.Background(), &action.Request{})
	if failed, ok := errors.AsType[*action.Error](err); ok {
		fmt.Println(failed.Fault)
	}
	fmt.Println(err)
	// Output:
	// exit
	// shell: bash ended with exit code 3
}
