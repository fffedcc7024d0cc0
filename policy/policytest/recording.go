package policytest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// FromRecording returns the event at PreToolUse for a recorded call, with all earlier messages and calls. callID is
// the call's ID, or its number among the run's calls, such as "3" for the third. Earlier calls in the same turn count
// as called. If no call matches, the error lists the calls.
func FromRecording(r *recorded.Run, callID string) (*Event, error) {
	e := &Event{Point: Point(hooks.PreToolUse), Agent: r.Agent}
	n, found := 0, false
	var turns []Turn
	var batch *Turn // the turn whose calls await answers
	for _, m := range r.Messages {
		switch m.Role {
		case replay.RoleTool:
			if batch != nil {
				batch.answer(m)
			}
			continue
		case replay.RoleSystem:
			turns = append(turns, Turn{System: m.Content.Text, who: system})
			continue
		case replay.RoleUser:
			turns = append(turns, Turn{User: m.Content.Text, who: user})
			continue
		}
		turn := Turn{Assistant: m.Content.Text, who: assistant}
		for _, c := range m.ToolCalls {
			n++
			if c.ID == callID || callID == strconv.Itoa(n) {
				e.Tool, e.CallID, e.Arguments = c.Function.Name, c.ID, Arguments(c.Function.Arguments)
				found = true
				break
			}
			turn.Calls = append(turn.Calls, Call{ID: c.ID, Tool: c.Function.Name, Arguments: Arguments(c.Function.Arguments)})
		}
		if found {
			if len(turn.Calls) > 0 {
				turns = append(turns, turn)
			}
			break
		}
		turns = append(turns, turn)
		batch = &turns[len(turns)-1]
	}
	if !found {
		return nil, unknownCall(r, callID)
	}
	e.Messages = turns
	return e, nil
}

// answer sets a call's answer.
func (t *Turn) answer(m replay.Message) {
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Result == nil && (c.ID == m.ToolCallID || m.ToolCallID == "") {
			c.Result = &ToolResult{Text: m.Content.Text, IsError: m.Error}
			return
		}
	}
}

// unknownCall returns an error that lists the calls.
func unknownCall(r *recorded.Run, callID string) error {
	var known []string
	for _, c := range r.Calls() {
		known = append(known, fmt.Sprintf("  %d  %s  %s %s", len(known)+1, c.ID, c.Function.Name, shortenText(c.Function.Arguments, 100)))
	}
	switch {
	case len(known) == 0:
		return errors.New("the recording has no tool calls")
	case callID == "":
		return fmt.Errorf("name a call by its number or ID:\n%s", strings.Join(known, "\n"))
	}
	return fmt.Errorf("unknown call %q; the recording has\n%s", callID, strings.Join(lo.Subset(known, 0, 100), "\n"))
}
