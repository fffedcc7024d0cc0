package toolexec_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/toolexec"
)

// ask prints the model's answer to a call.
func ask(e agent.Executor, name, args string) {
	ctx, c := context.Background(), agent.ToolCall{ID: "call_1", Name: name, Arguments: args}
	p := e.Prepare(ctx, agent.State{}, &c).MustGet()
	r := e.Execute(ctx, agent.State{}, p).MustGet()
	fmt.Printf("%s: %s\n", r.Status, r.CutToLimit().Text())
}

func Example() {
	weather := toolexec.Func("weather", "Tells the weather of a city.",
		func(_ context.Context, in struct {
			City string `json:"city" jsonschema:"the city's name in English"`
			Days int    `json:"days,omitempty"`
		}) (string, error) {
			return fmt.Sprintf("%s: rain for %d days", in.City, max(1, in.Days)), nil
		})
	box, err := toolexec.NewToolbox(weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := agent.DriverFunc(func(_ context.Context, s agent.State) (agent.Step, error) {
		if s.RunStepCount() == 0 {
			call := agent.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city": "Bergen", "days": 3}`}
			return agent.Step{Message: agent.Assistant("", call)}, nil
		}
		return agent.Step{Message: agent.Assistant("Take an umbrella.")}, nil
	})
	a := agent.New(agent.Config{
		Driver:   model,
		Request:  agent.Request{Tools: box.Specs()},
		Executor: toolexec.NewExecutor(box, toolexec.Options{}),
	}).MustGet()
	final := a.Run(context.Background(), agent.NewState(), agent.UserText("What should I pack for Bergen?")).MustGet()
	for _, m := range final.Messages() {
		for _, c := range m.Calls() {
			fmt.Printf("%s calls %s with %s\n", m.Role(), c.Name, c.Arguments)
		}
		if m.Text() != "" {
			fmt.Printf("%s: %s\n", m.Role(), m.Text())
		}
	}
	// Output:
	// user: What should I pack for Bergen?
	// assistant calls weather with {"city": "Bergen", "days": 3}
	// tool: Bergen: rain for 3 days
	// assistant: Take an umbrella.
}

func ExampleFunc() {
	type query struct {
		Text  string   `json:"text" jsonschema:"what to look for"`
		Kinds []string `json:"kinds,omitempty"`
	}
	type hit struct {
		Title string `json:"title"`
		Score int    `json:"score"`
	}
	search := toolexec.Func("search", "Looks something up.", func(_ context.Context, in query) ([]hit, error) {
		return []hit{{"All about " + in.Text, 97}}, nil
	})
	fmt.Println(search.Spec().Parameters)

	box, _ := toolexec.NewToolbox(search)
	e := toolexec.NewExecutor(box, toolexec.Options{})
	ask(e, "search", `{"text": "grapnels"}`)
	ask(e, "search", `{"text": "grapnels", "kind": "all"}`)
	ask(e, "serach", `{"text": "grapnels"}`)
	// Output:
	// {"type":"object","properties":{"text":{"type":"string","description":"what to look for"},"kinds":{"type":"array","items":{"type":"string"}}},"required":["text"],"additionalProperties":false}
	// executed: [{"title":"All about grapnels","score":97}]
	// not_executed: tool "search": not executed: checking arguments: /kind: is not known; did you mean "kinds"?; known: "kinds", "text"
	// not_executed: unknown tool "serach"; did you mean "search"?; the tools are search
}

func ExampleCallFunc() {
	visits := agent.SessionKey[int]("visits")
	greet := toolexec.CallFunc(agent.ToolSpec{Name: "greet", Description: "Greets a person."},
		func(_ context.Context, c toolexec.Call, in struct{ Name string }) (toolexec.Output, error) {
			n := visits.Or(c.State, 0) + 1
			out := toolexec.TextOutput(fmt.Sprintf("Hello %s, visitor %d.", in.Name, n))
			out.Effects = agent.EffectsOf(visits.Set(n)) // the state itself cannot be changed here
			return out, nil
		})
	box, _ := toolexec.NewToolbox(greet)
	ask(toolexec.NewExecutor(box, toolexec.Options{}), "greet", `{"Name": "Ada"}`)
	// Output: executed: Hello Ada, visitor 1.
}

func ExampleRaw() {
	spec := agent.ToolSpec{Name: "roll", Description: "Rolls dice.", Parameters: `{
		"type": "object",
		"properties": {"sides": {"type": "integer", "minimum": 2}},
		"required": ["sides"]
	}`}
	roll := toolexec.Raw(spec, func(_ context.Context, c toolexec.Call) (string, error) {
		return "sent to the table: " + c.Arguments, nil
	})
	box, _ := toolexec.NewToolbox(roll)
	e := toolexec.NewExecutor(box, toolexec.Options{})
	ask(e, "roll", `{"sides": 20}`)
	ask(e, "roll", `{"sides": 1}`)
	// Output:
	// executed: sent to the table: {"sides": 20}
	// not_executed: tool "roll": not executed: checking arguments: /sides: must be at least 2; got integer 1
}

func ExampleNewToolbox() {
	now := func(context.Context, struct{}) (string, error) { return "noon", nil }
	wait := func(context.Context, struct{ For time.Duration }) (string, error) { return "", nil }
	_, err := toolexec.NewToolbox(
		toolexec.Func("now", "Tells the time.", now),
		toolexec.Func("now", "Tells the time, too.", now),
		toolexec.Func("what time is it", "Tells the time politely.", now),
		toolexec.Func("wait", "Waits.", wait),
	)
	fmt.Println(err)
	// Output:
	// building the toolbox: tool "now": the name is given twice
	// tool "what time is it": a name must be 1 to 64 letters, digits, _ and -
	// tool "wait": inferring schema of struct { For time.Duration }: field struct { For time.Duration }.For: a time.Duration has no common JSON form: use a number with the unit in its name
}

func ExampleWithPolicy() {
	attempts := 0
	fetch := toolexec.CallFunc(agent.ToolSpec{Name: "fetch"}, func(context.Context, toolexec.Call, struct{}) (string, error) {
		if attempts++; attempts < 3 {
			return "", errors.New("service unavailable")
		}
		return "first line\n" + strings.Repeat("line\n", 400) + "last line", nil
	})
	box, _ := toolexec.NewToolbox(toolexec.WithPolicy(fetch, toolexec.Policy{
		Timeout:        30 * time.Second,
		Retry:          toolexec.Retry{Attempts: 3, Delay: time.Millisecond},
		MaxResultBytes: 80,
	}))
	ask(toolexec.NewExecutor(box, toolexec.Options{}), "fetch", ``)
	fmt.Println(attempts, "attempts")
	// Output:
	// executed: first line
	// line
	// line
	// [… 1979 of 2020 bytes left out …]
	// e
	// line
	// line
	// last line
	// 3 attempts
}

func ExampleOutput() {
	test := toolexec.Func("test", "Runs the tests.", func(context.Context, struct{}) (toolexec.Output, error) {
		// The tests ran, and the news is bad. An error would say that they could not be run.
		return toolexec.Output{Content: agent.TextContent("1 of 12 tests failed"), Failed: true}, nil
	})
	box, _ := toolexec.NewToolbox(test)
	ask(toolexec.NewExecutor(box, toolexec.Options{}), "test", ``)
	// Output: executed: 1 of 12 tests failed
}
