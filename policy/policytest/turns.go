package policytest

import (
	"fmt"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// Turn is one message: one of System, User and Assistant, or only an assistant's Calls.
type Turn struct { //nolint:recvcheck // methods that change a turn need a pointer; expects is called on list elements
	System    string `key:"system"`
	User      string `key:"user"`
	Assistant string `key:"assistant"`
	Calls     []Call `key:"calls"`
	// Expect is the expected result for the input or the reply. It is valid only in transcripts.
	Expect *expectation `key:"expect"`

	node yamlfile.Node
	who  string
}

type turn Turn

// Authors of turns.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
)

// ReadNode reads a turn.
func (t *Turn) ReadNode(n yamlfile.Node) {
	t.node = n
	if !n.Decode((*turn)(t)) {
		return
	}
	said := 0
	for _, who := range []string{assistant, user, system} {
		if n.Find(who).Kind() != yamlfile.AbsentNode {
			t.who = who
			said++
		}
	}
	t.who = lo.CoalesceOrEmpty(t.who, assistant)
	switch {
	case said > 1:
		n.Wrong("a turn has only one of system, user and assistant")
	case said == 0 && len(t.Calls) == 0:
		n.Wrong("the turn is empty: add user, assistant or system with the text")
	case len(t.Calls) > 0 && (t.who != assistant):
		n.Find("calls").Wrong("only the assistant calls tools")
	}
}

// Call is a tool call in a turn, with its result.
type Call struct {
	ID        string      `key:"id"`
	Tool      string      `key:"tool,required"`
	Arguments Arguments   `key:"arguments"`
	Args      Arguments   `key:"args"` // another name for Arguments
	Result    *ToolResult `key:"result"`
	// Denied is the reason why the call was denied, in an event's messages.
	Denied string `key:"denied"`
	// Person is the answer of the person who must approve the call, in transcripts: approve, reject or
	// reject_and_continue. Empty means that no person answers.
	Person string `key:"person"`
	// Expect is the expected result for the call, in transcripts.
	Expect *expectation `key:"expect"`

	node yamlfile.Node
}

type call Call

// ReadNode reads a call.
func (c *Call) ReadNode(n yamlfile.Node) {
	c.node = n
	if n.Decode((*call)(c)) {
		c.Arguments, c.Args = oneOfArguments(n, c.Arguments, c.Args), ""
	}
	if c.Person != "" {
		if _, err := verdictOf(c.Person); err != nil {
			n.Find("person").Wrong("%w", err)
		}
	}
}

// modelStep converts a turn to a model step. Number makes the IDs of its calls unique.
func (t *Turn) modelStep(number int) agent.Step {
	return agent.Step{Message: agent.Assistant(t.Assistant, callsOf(t.Calls, number)...)}
}

func callsOf(calls []Call, number int) []agent.ToolCall {
	return lo.Map(calls, func(c Call, i int) agent.ToolCall {
		return agent.ToolCall{ID: lo.CoalesceOrEmpty(c.ID, fmt.Sprintf("call_%d_%d", number, i+1)), Name: c.Tool, Arguments: c.Arguments.jsonText()}
	})
}

// answer returns the call's result.
func (c *Call) answer() agent.ToolResult {
	if c.Denied != "" {
		return agent.ToolResult{Status: agent.ToolNotExecuted, Reason: agent.ReasonDenied, Content: agent.TextContent(c.Denied)}
	}
	if c.Result == nil {
		return ToolResult{Text: "ok"}.tool()
	}
	return c.Result.tool()
}

// tool converts the result to an agent.ToolResult.
func (r ToolResult) tool() agent.ToolResult {
	out := agent.ToolResult{
		Content: agent.TextContent(r.Text), Status: agent.ToolStatus(r.Status), Reason: agent.ReasonCode(r.Reason),
	}
	switch {
	case out.Status == "" && r.IsError:
		out.Status = agent.ToolFailed
	case out.Status == "":
		out.Status = agent.ToolExecuted
	}
	if out.Status == agent.ToolExecuted || out.Status == agent.ToolFailed {
		out.Attempts = max(r.Attempts, 1)
	}
	if out.Status == agent.ToolFailed {
		out.Err, out.Reason = failure(r.Text), lo.CoalesceOrEmpty(out.Reason, agent.ReasonError)
	}
	return out
}

// past is the history before an event.
type past struct {
	state   agent.State
	steps   []agent.Step
	answers [][]agent.ToolResult
}

// pastOf splits turns into earlier runs and this run's steps, which follow the last input. If the run has not begun,
// all turns belong to earlier runs.
func pastOf(turns []Turn, begun bool) past {
	var p past
	last := -1
	for i := range turns {
		if turns[i].who == user {
			last = i
		}
	}
	for i := range turns {
		t := &turns[i]
		switch step := t.modelStep(i); {
		case t.who == system:
			p.state = p.state.With(agent.System(t.System))
		case t.who == user:
			p.state = p.state.With(agent.UserText(t.User))
		case begun && i > last:
			p.steps = append(p.steps, step)
			p.answers = append(p.answers, lo.Map(t.Calls, func(c Call, _ int) agent.ToolResult { return c.answer() }))
		default:
			p.state = p.state.With(step.Message)
			for k, c := range step.Message.Calls() {
				r := t.Calls[k].answer()
				p.state = p.state.With(agent.ToolAnswer(r.To(&agent.Prepared{Original: &c, Call: &c})))
			}
		}
	}
	return p
}

// verdictOf parses a person's verdict.
func verdictOf(word string) (agent.ApprovalVerdict, error) {
	var v agent.ApprovalVerdict
	if err := v.UnmarshalText([]byte(lo.CoalesceOrEmpty(word, "approve"))); err != nil {
		return v, fmt.Errorf("unknown answer %q from a person: expected approve, reject or reject_and_continue", word)
	}
	return v, nil
}
