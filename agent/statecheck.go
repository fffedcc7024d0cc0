package agent

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// check says what of the form no state can hold, and where.
func (f *stateJSON) check() error {
	switch f.Status {
	case StatusNew, StatusRunning, StatusParked, StatusDone, StatusStopped, StatusFailed, StatusDenied, StatusCancelled, StatusInterrupted:
	default:
		return wrong("/status", "status %q is not known", f.Status)
	}
	for i := range f.Messages {
		if err := f.Messages[i].check(); err != nil {
			return below("/messages/"+strconv.Itoa(i), err)
		}
	}
	behind, index := 0, 0 // the messages of the steps so far; the index of the next
	for i := range f.Steps {
		if i == f.First || i < f.First && f.Steps[i].Index == 0 {
			index = 0 // a run begins
		}
		var err error
		if behind, err = f.Steps[i].check(f.Messages, behind, index); err != nil {
			return below("/steps/"+strconv.Itoa(i), err)
		}
		index++
	}
	return first(
		within("/accepted", f.Accepted, behind, len(f.Messages)),
		within("/first", f.First, 0, len(f.Steps)),
		within("/failures", f.Failures, 0, len(f.Steps)-f.First),
		below("/run", f.Run.check()),
		below("/signal", f.Signal.check()),
		below("/usage_before", f.UsageBefore.check()),
		below("/run_usage", f.RunUsage.check()),
		below("/open_step", f.OpenStep.check(f.Status)),
	)
}

// check holds a step against the messages, of which those before behind belong to
// earlier steps; it returns how many do with this one.
func (f *stepJSON) check(messages []messageJSON, behind, index int) (int, error) {
	switch {
	case f.Index != index:
		return behind, wrong("/index", "the index is %d: it must be %d here", f.Index, index)
	case f.Message == nil && f.Failure == nil:
		return behind, wrong("", "a step has a message or a failure")
	case f.Message == nil && len(f.Results) > 0:
		return behind, wrong("/results", "there are results without a message that asked for them")
	}
	if err := below("/usage", f.Usage.check()); err != nil {
		return behind, err
	}
	if f.Message == nil {
		return behind, nil
	}
	at := *f.Message
	if err := within("/message", at, behind, len(messages)-1); err != nil {
		return behind, err
	}
	calls, answers := messages[at].Calls, messages[at+1:]
	switch {
	case messages[at].Role != RoleAssistant:
		return behind, wrong("/message", "message %d has role %q: it must be %q", at, messages[at].Role, RoleAssistant)
	case len(f.Results) != len(calls):
		return behind, wrong("/results", "there are %d results for %d calls: every call has one", len(f.Results), len(calls))
	case len(answers) < len(calls):
		return behind, wrong("/results", "there are %d calls and %d messages behind them: every call has its answer", len(calls), len(answers))
	}
	seen := make(map[string]bool, len(calls))
	for i, call := range calls {
		if call.ID == "" || seen[call.ID] {
			return behind, wrong("/message", "call %d of message %d has the id %q: every call has one of its own", i, at, call.ID)
		}
		seen[call.ID] = true
		if err := f.Results[i].check(call, &answers[i]); err != nil {
			return behind, below("/results/"+strconv.Itoa(i), err)
		}
	}
	return at + 1 + len(calls), nil
}

// check holds a result against the call and the message that answers it.
func (f *resultJSON) check(call ToolCall, answer *messageJSON) error {
	if f.Call != nil {
		call.Name = f.Call.Name
	}
	switch {
	case answer.Role != RoleTool || answer.CallID != call.ID || answer.Tool != call.Name:
		return wrong("", "call %q of tool %q is followed by a message of role %q for call %q of tool %q: every call has its answer",
			call.ID, call.Name, answer.Role, answer.CallID, answer.Tool)
	case answer.Status == "":
		return wrong("", "the answer to call %q has no status", call.ID)
	case f.Call != nil && f.Call.ID != call.ID:
		return wrong("/call/id", "the id is %q: the call is %q", f.Call.ID, call.ID)
	}
	return first(count("/attempts", int64(f.Attempts)), below("/stop", f.Stop.check()))
}

func (s *Signal) check() error {
	if s == nil || len(s.Details) == 0 {
		return nil
	}
	if _, err := json.Marshal(s.Details); err != nil {
		return wrong("/details", "%v", err)
	}
	return nil
}

func (r *Run) check() error {
	return first(
		count("/depth", int64(r.Depth)), count("/number", int64(r.Number)), count("/iteration", int64(r.Iteration)),
	)
}

func (u *Usage) check() error {
	if u == nil {
		return nil
	}
	if cost := u.Cost.OrEmpty(); math.IsNaN(cost) || math.IsInf(cost, 0) {
		return wrong("/cost", "%v is no amount", cost)
	}
	return first(
		count("/input_tokens", u.InputTokens), count("/output_tokens", u.OutputTokens),
		count("/cache_read_tokens", u.CacheReadTokens), count("/cache_write_tokens", u.CacheWriteTokens),
		count("/reasoning_tokens", u.ReasoningTokens),
	)
}

func count(pointer string, n int64) error {
	if n < 0 {
		return wrong(pointer, "%d is negative", n)
	}
	return nil
}

func within(pointer string, n, least, most int) error {
	if n < least || n > most {
		return wrong(pointer, "%d is out of range: it must be from %d to %d", n, least, most)
	}
	return nil
}

// below returns an error of a part of the form as one of the whole.
func below(pointer string, err error) error {
	if part, ok := errors.AsType[*strictjson.Error](err); ok {
		return wrong(pointer+part.Pointer, "%s", part.Message)
	}
	return err
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
