package library_test

import (
	"context"
	"strings"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// ready is an executor for calls whose arguments are already parsed.
type ready struct{}

func (ready) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c, Strict: true})
}

func (ready) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(agent.NewResult(p))
}

// BenchmarkAssistant measures a decision by all of library:assistant, with provenance, in a run of 42 messages.
func BenchmarkAssistant(b *testing.B) {
	p, err := policy.LoadFiles("assistant.yaml")
	require.NoError(b, err)
	list, err := p.Hooks()
	require.NoError(b, err)
	before := user("Pay 20 to CH11 2222 3333 4444 and mail ann@a.example about it")
	for range 20 {
		before = before.tool("open_page", `{}`, strings.Repeat("Some words of a page. ", 20))
	}
	var s agent.State
	driver := agent.DriverFunc(func(_ context.Context, now agent.State) (agent.Step, error) {
		s = now
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := agent.New(agent.Config{Driver: driver, Request: agent.Request{Tools: agent.ToolsOf(
		agent.ToolSpec{Name: "list_payments", Parameters: `{"type": "object", "properties": {"limit": {"type": "integer"}}}`},
		agent.ToolSpec{Name: "send_money", Parameters: `{"type": "object", "properties": {"recipient": {"type": "string"},
			"amount": {"type": "number"}, "subject": {"type": "string"}}}`},
		agent.ToolSpec{Name: "send_email", Parameters: `{"type": "object", "properties": {"recipients": {"type": "array", "items": {"type": "string"}},
			"subject": {"type": "string"}, "body": {"type": "string"}}}`},
		agent.ToolSpec{Name: "create_event", Parameters: `{"type": "object", "properties": {"title": {"type": "string"}, "start_time": {"type": "string"},
			"participants": {"type": "array", "items": {"type": "string"}}}}`},
		agent.ToolSpec{Name: "open_page", Parameters: `{"type": "object", "properties": {"url": {"type": "string"}}}`},
		agent.ToolSpec{Name: "delete_file", Parameters: `{"type": "object", "properties": {"file_id": {"type": "string"}}}`},
		agent.ToolSpec{Name: "share_file", Parameters: `{"type": "object", "properties": {"file_id": {"type": "string"}, "email": {"type": "string"}}}`},
		agent.ToolSpec{Name: "update_profile", Parameters: `{"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}`},
		agent.ToolSpec{Name: "order_product", Parameters: `{"type": "object", "properties": {"product_id": {"type": "string"}}}`},
		agent.ToolSpec{Name: "zorble", Parameters: `{"type": "object", "properties": {"frob": {"type": "string"}}}`},
	)}}).Get()
	require.NoError(b, err)
	_, err = a.Run(b.Context(), agent.NewState(before...), agent.UserText("Go on")).Get()
	require.NoError(b, err)
	for name, call := range map[string]agent.ToolCall{
		"books":   {Name: "create_event", Arguments: `{"title": "Rent", "start_time": "2031-06-05T10:00", "participants": ["bob@b.example"]}`},
		"fetches": {Name: "open_page", Arguments: `{"url": "https://www.evil.example/?q=1"}`},
		"deletes": {Name: "delete_file", Arguments: `{"file_id": "26"}`},
		"grants":  {Name: "share_file", Arguments: `{"file_id": "26", "email": "bob@b.example"}`},
		"profile": {Name: "update_profile", Arguments: `{"street": "Elm Street 5", "city": "Bern"}`},
		"buys":    {Name: "order_product", Arguments: `{"product_id": "P7"}`},
		"unknown": {Name: "zorble", Arguments: `{"frob": "hard"}`},
		"reads":   {Name: "list_payments", Arguments: `{"limit": 5}`},
		"pays":    {Name: "send_money", Arguments: `{"recipient": "CH1122223333444", "amount": 20, "subject": "rent"}`},
		"sends":   {Name: "send_email", Arguments: `{"recipients": ["ann@a.example"], "subject": "Payment", "body": "It is done."}`},
	} {
		b.Run(name, func(b *testing.B) {
			compiled, err := hooks.NewSet(list...).Compile(call.Name)
			require.NoError(b, err)
			x := compiled.WrapExecutor(ready{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				call := call
				call.ID = string(rune('a' + i%20)) // each is a different call
				if _, err := x.Prepare(b.Context(), s, &call).Get(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
