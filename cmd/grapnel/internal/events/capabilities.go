package events

import (
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/capability/kit"
	"github.com/grapnel-go/grapnel/durable"
)

type (
	compacted struct {
		inStep

		Compaction     string                       `json:"compaction"`
		Trigger        capability.CompactionTrigger `json:"trigger"`
		MessagesBefore int                          `json:"messages_before"`
		MessagesAfter  int                          `json:"messages_after"`
		TokensBefore   int64                        `json:"tokens_before"`
		TokensAfter    int64                        `json:"tokens_after"`
		Summary        string                       `json:"summary"`
		Usage          *durable.Usage               `json:"usage,omitempty"`
		DurationMS     int64                        `json:"duration_ms"`
	}
	compactFailed struct {
		inStep

		Compaction string                       `json:"compaction"`
		Trigger    capability.CompactionTrigger `json:"trigger"`
		Messages   int                          `json:"messages"`
		Tokens     int64                        `json:"tokens"`
		Denied     bool                         `json:"denied,omitempty"`
		Error      *failure                     `json:"error"`
		Usage      *durable.Usage               `json:"usage,omitempty"`
		DurationMS int64                        `json:"duration_ms"`
	}
	subagent struct {
		ofRun

		CallID   string         `json:"call_id"`
		Subagent agent.RunID    `json:"subagent"`
		Agent    string         `json:"agent,omitempty"`
		Depth    int            `json:"depth,omitempty"`
		MaxDepth int            `json:"max_depth,omitempty"`
		Status   agent.Status   `json:"status,omitempty"`
		Usage    *durable.Usage `json:"usage,omitempty"`
		Error    *failure       `json:"error,omitempty"`
	}
	fellBack struct {
		inStep

		From      int      `json:"from"`
		To        int      `json:"to"`
		FromModel string   `json:"from_model,omitempty"`
		ToModel   string   `json:"to_model,omitempty"`
		Error     *failure `json:"error"`
	}
	contextEdited struct {
		inStep

		Results      int   `json:"results"`
		TokensBefore int64 `json:"tokens_before"`
		TokensAfter  int64 `json:"tokens_after"`
	}
	toolsSelected struct {
		inStep

		Tools  []string `json:"tools"`
		Hidden int      `json:"hidden"`
		Error  *failure `json:"error,omitempty"`
	}
)

// ofCapability returns the JSON form of an event of a capability.
func ofCapability(e agent.Event) any {
	switch e := e.(type) {
	case capability.CompactionCompleted:
		return compacted{
			in(e.Run, e.Step), e.ID, e.Trigger, e.MessagesBefore, e.MessagesAfter, e.TokensBefore, e.TokensAfter, e.Summary,
			usageOf(e.Usage), e.Took.Milliseconds(),
		}
	case capability.CompactionFailed:
		return compactFailed{
			in(e.Run, e.Step), e.ID, e.Trigger, e.Messages, e.Tokens, e.Denied, &failure{e.Failure.Kind, e.Failure.Text},
			usageOf(e.Usage), e.Took.Milliseconds(),
		}
	case capability.SubagentStarted:
		out := subagentOf(e.Run, e.CallID, e.Subagent)
		out.MaxDepth = e.MaxDepth
		return out
	case capability.SubagentParked:
		return subagentOf(e.Run, e.CallID, e.Subagent)
	case capability.SubagentResumed:
		return subagentOf(e.Run, e.CallID, e.Subagent)
	case capability.SubagentCompleted:
		out := subagentOf(e.Run, e.CallID, e.Subagent)
		out.Status, out.Usage, out.Error = e.Status, usageOf(e.Usage), failureOf(e.Err)
		return out
	case kit.FellBack:
		return fellBack{in(e.Run, e.Step), e.From, e.To, e.FromModel, e.ToModel, failureOf(e.Err)}
	case kit.ContextEdited:
		return contextEdited{in(e.Run, e.Step), e.Results, e.Before, e.After}
	case kit.Selected:
		return toolsSelected{in(e.Run, e.Step), append([]string{}, e.Tools...), e.Hidden, failureOf(e.Err)}
	}
	return struct{}{} // an event of unknown middleware
}

func subagentOf(by agent.Run, callID string, child agent.Run) subagent {
	return subagent{ofRun: of(by), CallID: callID, Subagent: child.ID, Agent: child.Agent, Depth: child.Depth}
}
