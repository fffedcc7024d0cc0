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

// FromRecording returns the moment before a recorded call, with all that was said and called
// before it: an event at PreToolUse. The call is named by its id, or by its place among
// the calls of the run, "3" for the third. Calls of the same turn before it count as
// called before. The error says which calls there are where none is so called.
func FromRecording(r *recorded.Run, callID string) (*Event, error) {
	e := &Event{Point: Point(hooks.PreToolUse), Agent: r.Agent}
	n, found := 0, false
	var turns []Turn
	var batch *Turn // the turn whose calls are being answered
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

// answer sets what was said to a call.
func (t *Turn) answer(m replay.Message) {
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Result == nil && (c.ID == m.ToolCallID || m.ToolCallID == "") {
			c.Result = &ToolResult{Text: m.Content.Text, IsError: m.Error}
			return
		}
	}
}

// unknownCall says which calls there are.
func unknownCall(r *recorded.Run, callID string) error {
	var known []string
	for _, c := range r.Calls() {
		known = append(known, fmt.Sprintf("  %d  %s  %s %s", len(known)+1, c.ID, c.Function.Name, shortenText(c.Function.Arguments, 100)))
	}
	switch {
	case len(known) == 0:
		return errors.New("no tool is called in the recording")
	case callID == "":
		return fmt.Errorf("say which call is meant, by its place or its id:\n%s", strings.Join(known, "\n"))
	}
	return fmt.Errorf("there is no call %q in the recording; there are\n%s", callID, strings.Join(lo.Subset(known, 0, 100), "\n"))
}
