package provenance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/policy/internal/provenance"
)

// talk is a conversation under construction.
type talk struct {
	state agent.State
	calls int
}

func user(text string) *talk { return new(talk).user(text) }

func (c *talk) user(text string) *talk { return c.with(agent.UserText(text)) }

func (c *talk) with(m ...agent.Message) *talk { return &talk{c.state.With(m...), c.calls} }

// tool adds a call with its answer.
func (c *talk) tool(name, arguments, answer string) *talk {
	call := c.next(name, arguments)
	r := agent.NewResult(&agent.Prepared{Original: &call, Call: &call})
	r.Status, r.Content = agent.ToolExecuted, agent.TextContent(answer)
	return c.answered(call, r)
}

// denied adds a denied call.
func (c *talk) denied(name, arguments, why string) *talk {
	call := c.next(name, arguments)
	return c.answered(call, agent.NotExecuted(&call, agent.ReasonDenied, "guard", why))
}

func (c *talk) next(name, arguments string) agent.ToolCall {
	return agent.ToolCall{ID: "c" + string(rune('0'+c.calls%10)), Name: name, Arguments: arguments}
}

func (c *talk) answered(call agent.ToolCall, r *agent.ToolResult) *talk {
	next := c.with(agent.Assistant("", call), agent.ToolAnswer(r))
	next.calls++
	return next
}

// sources is used in most tests.
var sources = provenance.Sources{
	Tools: []provenance.Source{
		{Tools: []string{"get_*", "search_*", "read_*"}, Reads: true},
		{Tools: []string{"get_payments"}, Trusted: []string{"recipient", "id"}, Known: []string{"sender"}},
		{Tools: []string{"get_me"}, Trusted: []string{"."}, Confidential: []string{"passport number", "cards.number"}},
		{Tools: []string{"get_hotels"}, Trusted: []string{"."}},
		{Tools: []string{"search_mail"}, Known: []string{"sender", "recipients"}},
		{Tools: []string{"get_files"}, Trusted: []string{"id"}, Known: []string{"shared_with"}},
		{Tools: []string{"read_channel"}, Known: []string{"body"}},
	},
	Messages: map[string]provenance.Level{"memory/*": provenance.FromTrusted, "colleagues": provenance.FromKnown},
}

func tracker(t testing.TB) *provenance.Tracker {
	t.Helper()
	tr, err := provenance.New(provenance.Options{Sources: sources})
	require.NoError(t, err)
	return tr
}

// trail returns the conversation's trail; examples pass no t.
//
//nolint:thelper // t may be nil
func (c *talk) trail(t testing.TB) provenance.Trail {
	tr, err := provenance.New(provenance.Options{Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	return tr.Of(c.state)
}
