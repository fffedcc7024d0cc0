package condition_test

import (
	"context"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
	"github.com/grapnel-go/grapnel/toolexec"
)

// wipes is true for lines that may delete files, including lines that cannot be analysed.
const wipes = `!shell.clear(args.command) || shell.files(args.command).exists(f, f.access == "delete")`

// newNoWipe returns a hook that denies calls for which the condition is true. Without a command, the condition fails
// and the call is denied.
func newNoWipe() (hooks.Hook, error) {
	language, err := condition.New(condition.Options{})
	if err != nil {
		return hooks.Hook{}, err
	}
	deletes, err := language.Compile(wipes, hooks.PreToolUse)
	return hooks.On(hooks.AtPreToolUse, "no-wipe", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		yes, err := deletes.Test(ctx, condition.Of(c))
		switch {
		case err != nil:
			return c.Fail(err)
		case yes:
			return c.Deny("nothing is deleted here")
		}
		return c.Pass()
	}, hooks.ToolNamed("bash")), err
}

func Example() {
	noWipe, err := newNoWipe()
	if err != nil {
		fmt.Println(err)
		return
	}

	bash := toolexec.Func("bash", "Runs a line.", func(context.Context, struct {
		Command string `json:"command"`
	}) (string, error) {
		return "ran", nil
	})
	a := builder.New().
		WithDriver(agenttest.Script(agenttest.Call("bash", `{"command":"ls && sudo rm -rf x"}`), agenttest.Say("done"))).
		With(capability.UseTools(bash), capability.UseHooks(noWipe)).
		Build().MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("clean up")).MustGet()
	for _, m := range final.Messages() {
		if m.Role() == agent.RoleTool {
			fmt.Println(m.Text())
		}
	}
	// Output:
	// tool "bash": denied by no-wipe: nothing is deleted here
}

// onCall passes a call to f as the input of a condition.
func onCall(tool, arguments string, f func(ctx context.Context, in condition.Input)) {
	hook := hooks.On(hooks.AtPreToolUse, "try", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		f(ctx, condition.Of(c))
		return c.Pass()
	})
	hookstest.ToolCall(tool, arguments).Fire(context.Background(), hooks.NewSet(hook)).MustGet()
}

func ExampleLanguage_Compile() {
	language, _ := condition.New(condition.Options{})
	_, err := language.Compile("tool == 'bash' &&\n  agrs.command == 'ls'", hooks.PreToolUse)
	fmt.Println(err)
	_, err = language.Compile("result.text == ''", hooks.PreToolUse)
	fmt.Println(err)
	// Output:
	// condition at PreToolUse, line 2, column 3: unknown name "agrs.command": did you mean args?
	// condition at PreToolUse, column 1: result.text does not exist at PreToolUse, only at PostToolUse, ToolFailed, RunResult, RunFinish
}

func ExampleCondition_Explain() {
	language, _ := condition.New(condition.Options{})
	c, _ := language.Compile("args.amount > 100 && args.to != 'ann'", hooks.PreToolUse)
	onCall("pay", `{"amount":250,"to":"bob"}`, func(ctx context.Context, in condition.Input) {
		for _, fact := range c.Explain(ctx, in) {
			fmt.Printf("%s: %s\n", fact.Name, fact.Value)
		}
	})
	// Output:
	// args.amount > 100: true
	// args.amount: 250
	// args.to != "ann": true
	// args.to: "bob"
}

func ExampleCondition_Test() {
	language, _ := condition.New(condition.Options{})
	c, _ := language.Compile("args.amount / args.parts > 100", hooks.PreToolUse)
	onCall("pay", `{"amount":250,"parts":0}`, func(ctx context.Context, in condition.Input) {
		_, err := c.Test(ctx, in)
		fmt.Println(err)
	})
	// Output:
	// condition "args.amount / args.parts > 100" at PreToolUse, column 13: args.amount / args.parts: division by zero; args.amount is the int 250, args.parts is the int 0
}

func ExampleCondition_Constant() {
	language, _ := condition.New(condition.Options{})
	c, _ := language.Compile("tool == 'bash' || 1 < 2", hooks.PreToolUse)
	fmt.Println(c.Constant())
	// Output:
	// true true
}

func ExampleLanguage_Expression() {
	language, _ := condition.New(condition.Options{})
	e, _ := language.Expression("path.clean('/srv/' + args.path)", hooks.PreToolUse)
	onCall("write", `{"path":"../srv/./a.txt"}`, func(ctx context.Context, in condition.Input) {
		v, err := e.Value(ctx, in)
		fmt.Println(v.Value(), err, e.Type())
	})
	// Output:
	// /srv/a.txt <nil> string
}

func ExampleFunction() {
	early := condition.Function{
		Name:      "within_steps",
		Overloads: []condition.Overload{{Args: []*cel.Type{cel.IntType}, Result: cel.BoolType}},
		Call: func(in condition.Input, args ...ref.Val) ref.Val {
			return types.Bool(types.Int(in.State().RunStepCount()) < args[0].(types.Int))
		},
	}
	language, _ := condition.New(condition.Options{Functions: []condition.Function{early}})
	c, _ := language.Compile("tool == 'bash' && within_steps(3)", hooks.PreToolUse)
	onCall("bash", `{}`, func(ctx context.Context, in condition.Input) { fmt.Println(c.Test(ctx, in)) })
	// Output:
	// true <nil>
}
