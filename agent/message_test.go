package agent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
)

func TestTheZeroValuesAreEmpty(t *testing.T) {
	var m agent.Message
	assert.Empty(t, m.Role())
	assert.Empty(t, m.Text())
	assert.Zero(t, m.CallCount())
	assert.Panics(t, func() { m.Call(0) })
	assert.False(t, m.IsError())
	assert.True(t, m.Equal(agent.Message{}))

	var c agent.Content
	assert.Zero(t, c.Len())
	assert.True(t, c.IsText())
	assert.True(t, c.Equal(agent.TextContent("")))

	var r agent.StepRecord
	assert.Empty(t, r.Kind())
	assert.Zero(t, r.ResultCount())
	assert.Nil(t, r.Failure())
	assert.Panics(t, func() { r.Result(0) })

	var s agent.State
	assert.Equal(t, agent.StatusNew, s.Status())
	assert.False(t, s.Status().Terminal())
	assert.Empty(t, s.Answer())
	assert.Zero(t, s.LastMessage())
	assert.Zero(t, s.LastStep())
	assert.False(t, s.Stopped())
	assert.Equal(t, agent.Usage{Cost: s.Usage().Cost}, s.Usage())
}

func TestContentIsTextOrParts(t *testing.T) {
	text := agent.ContentOf(agent.Text("a"))
	assert.True(t, text.IsText(), "one part of plain text is text")
	assert.True(t, text.Equal(agent.TextContent("a")))
	assert.Equal(t, 1, text.Len())

	signed := agent.ContentOf(agent.Part{Kind: agent.PartText, Text: "a", Opaque: "sig"})
	assert.False(t, signed.IsText(), "what a service wants back is kept")
	assert.False(t, signed.Equal(text))

	mixed := agent.ContentOf(agent.Reasoning("hm", ""), agent.Text("a"), agent.Image("image/png", []byte{1}), agent.Text("b"))
	assert.Equal(t, "ab", mixed.Text(), "reasoning is no part of the text")
	assert.Equal(t, 4, mixed.Len())
	assert.True(t, mixed.Equal(agent.ContentOf(agent.Reasoning("hm", ""), agent.Text("a"), agent.Image("image/png", []byte{1}), agent.Text("b"))))
	assert.False(t, mixed.Equal(agent.ContentOf(agent.Text("ab"))))
	var kinds []agent.PartKind
	for i, p := range mixed.Parts() {
		if i == 3 {
			break
		}
		kinds = append(kinds, p.Kind)
	}
	assert.Equal(t, []agent.PartKind{agent.PartReasoning, agent.PartText, agent.PartImage}, kinds)
}

// A message does not change when the values that it was created from, or that it
// returns, are changed.
func TestMessagesDoNotChange(t *testing.T) {
	data, parts := []byte("picture"), []agent.Part{agent.Text("a"), agent.Text("b")}
	wishes := []agent.ToolCall{{ID: "1", Name: "ls"}}
	image, m := agent.Image("image/png", data), agent.AssistantContent(agent.ContentOf(parts...), wishes...)
	data[0], parts[0], wishes[0].Name = 'X', agent.Text("X"), "rm"
	assert.Equal(t, agent.Bytes("picture"), image.Data)
	assert.Equal(t, "ab", m.Text())
	assert.Equal(t, "ls", m.Call(0).Name)

	other := m.WithSource("hook").WithContent(agent.TextContent("c")).WithCalls(agent.ToolCall{ID: "2", Name: "cat"}, agent.ToolCall{ID: "3"})
	assert.Equal(t, []any{"hook", "c", 2, "cat"}, []any{other.Source(), other.Text(), other.CallCount(), other.Call(0).Name})
	assert.Equal(t, []any{"", "ab", 1, "ls"}, []any{m.Source(), m.Text(), m.CallCount(), m.Call(0).Name})
	assert.Equal(t, agent.RoleAssistant, other.Role())
	assert.Equal(t, []int{0, 1}, []int{other.Call(0).Index, other.Call(1).Index})
}

func TestMessagesAreEqualWhenTheySayTheSame(t *testing.T) {
	call := agent.ToolCall{ID: "1", Name: "ls", Arguments: `{}`}
	answer := agent.ToolAnswer(agent.NotExecuted(&call, agent.ReasonDenied, "guard", "no"))
	otherStatus := *agent.NotExecuted(&call, agent.ReasonDenied, "guard", "no")
	otherStatus.Status = ""
	for name, m := range map[string]agent.Message{
		"content": answer.WithContent(agent.TextContent("yes")),
		"source":  answer.WithSource("another"),
		"status":  agent.ToolAnswer(&otherStatus),
		"id":      agent.ToolAnswer(agent.NotExecuted(&agent.ToolCall{ID: "2", Name: "ls"}, agent.ReasonDenied, "guard", "no")),
	} {
		assert.False(t, answer.Equal(m), name)
		assert.True(t, m.Equal(m.WithSource(m.Source())), name)
	}
	assert.True(t, answer.Equal(answer.WithCalls(call)), "who answers a call makes none")
	asking := agent.Assistant("", call)
	assert.False(t, asking.Equal(asking.WithCalls()), "calls")
	assert.Equal(t, []any{"1", "ls", agent.ToolNotExecuted, agent.ReasonDenied, true}, []any{
		answer.CallID(), answer.Tool(), answer.Status(), answer.Reason(), answer.IsError(),
	})
}

func TestBytesAreBase64InText(t *testing.T) {
	text, err := agent.Bytes("\x00\xff").MarshalText()
	assert.NoError(t, err)
	assert.Equal(t, "AP8=", string(text))
	var b agent.Bytes
	assert.NoError(t, b.UnmarshalText(text))
	assert.Equal(t, agent.Bytes("\x00\xff"), b)
	for _, bad := range []string{"AP8", "AP9=", "A P8=", "AP8=\n", "!!!!"} {
		assert.ErrorContains(t, b.UnmarshalText([]byte(bad)), "reading base64: ", bad)
	}
}

func TestToolsAndOptionsDoNotChange(t *testing.T) {
	specs := []agent.ToolSpec{{Name: "a"}, {Name: "b"}}
	tools := agent.ToolsOf(specs...)
	specs[0].Name = "x"
	kept := tools.Keep(func(s agent.ToolSpec) bool { return s.Name == "b" })
	assert.Equal(t, 2, tools.Len())
	a, ok := tools.ByName("a")
	assert.True(t, ok)
	assert.Equal(t, "a", a.Name)
	_, ok = kept.ByName("a")
	assert.False(t, ok)
	assert.Equal(t, 1, kept.Len())

	var none agent.Options
	one := none.With("seed", 7)
	two := one.With("logprobs", true).With("seed", 8)
	_, ok = none.Option("seed")
	assert.False(t, ok)
	seed, _ := one.Option("seed")
	assert.Equal(t, 7, seed)
	var names []string
	for name, value := range two.All() {
		names = append(names, name)
		if name == "seed" {
			assert.Equal(t, 8, value)
		}
	}
	assert.Equal(t, []string{"logprobs", "seed"}, names)
}
