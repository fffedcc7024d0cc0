package agent

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// check returns an error, with its location, when the form is not a valid state.
func (f *stateJSON) check() error {
	switch f.Status {
	case StatusNew, StatusRunning, StatusParked, StatusDone, StatusStopped, StatusFailed, StatusDenied, StatusCancelled, StatusInterrupted:
	default:
		return formError("/status", "unknown status %q", f.Status)
	}
	for i := range f.Messages {
		if err := f.Messages[i].check(); err != nil {
			return errorBelow("/messages/"+strconv.Itoa(i), err)
		}
	}
	behind, index := 0, 0 // number of messages up to this step; index of the next step
	for i := range f.Steps {
		if i == f.First || i < f.First && f.Steps[i].Index == 0 {
			index = 0 // a run begins
		}
		var err error
		if behind, err = f.Steps[i].check(f.Messages, behind, index); err != nil {
			return errorBelow("/steps/"+strconv.Itoa(i), err)
		}
		index++
	}
	return firstError(
		checkRange("/accepted", f.Accepted, behind, len(f.Messages)),
		checkRange("/first", f.First, 0, len(f.Steps)),
		checkRange("/failures", f.Failures, 0, len(f.Steps)-f.First),
		errorBelow("/run", f.Run.check()),
		checkRange("/idle_ns", int(f.Idle), 0, math.MaxInt64),
		errorBelow("/signal", f.Signal.check()),
		errorBelow("/usage_before", f.UsageBefore.check()),
		errorBelow("/run_usage", f.RunUsage.check()),
		errorBelow("/children", f.Children.check()),
		errorBelow("/open_step", f.OpenStep.check(f.Status)),
	)
}

// check compares a step with the messages. The first ones, up to index behind, belong to earlier steps. It returns the
// number of messages that belong to the steps up to this one.
func (f *stepJSON) check(messages []messageJSON, behind, index int) (int, error) {
	switch {
	case f.Index != index:
		return behind, formError("/index", "the index is %d: it must be %d here", f.Index, index)
	case f.Message == nil && f.Failure == nil:
		return behind, formError("", "a step must have a message or a failure")
	case f.Message == nil && len(f.Results) > 0:
		return behind, formError("/results", "results without a message")
	}
	if err := errorBelow("/usage", f.Usage.check()); err != nil {
		return behind, err
	}
	if f.Message == nil {
		return behind, nil
	}
	at := *f.Message
	if err := checkRange("/message", at, behind, len(messages)-1); err != nil {
		return behind, err
	}
	calls, answers := messages[at].Calls, messages[at+1:]
	switch {
	case messages[at].Role != RoleAssistant:
		return behind, formError("/message", "message %d has role %q: it must be %q", at, messages[at].Role, RoleAssistant)
	case len(f.Results) != len(calls):
		return behind, formError("/results", "%d results for %d calls: every call must have one", len(f.Results), len(calls))
	case len(answers) < len(calls):
		return behind, formError("/results", "%d calls and %d messages after them: every call must have an answer", len(calls), len(answers))
	}
	seen := make(map[string]bool, len(calls))
	for i, call := range calls {
		if call.ID == "" || seen[call.ID] {
			return behind, formError("/message", "call %d of message %d has the id %q: every call must have a unique id", i, at, call.ID)
		}
		seen[call.ID] = true
		if err := f.Results[i].check(call, &answers[i]); err != nil {
			return behind, errorBelow("/results/"+strconv.Itoa(i), err)
		}
	}
	return at + 1 + len(calls), nil
}

// check compares a result with its call and the message that answers the call.
func (f *resultJSON) check(call ToolCall, answer *messageJSON) error {
	if f.Call != nil {
		call.Name = f.Call.Name
	}
	switch {
	case answer.Role != RoleTool || answer.CallID != call.ID || answer.Tool != call.Name:
		return formError("", "call %q of tool %q is followed by a message of role %q for call %q of tool %q: every call has its answer",
			call.ID, call.Name, answer.Role, answer.CallID, answer.Tool)
	case answer.Status == "":
		return formError("", "the answer to call %q has no status", call.ID)
	case f.Call != nil && f.Call.ID != call.ID:
		return formError("/call/id", "the id is %q: it must be %q", f.Call.ID, call.ID)
	}
	return firstError(checkCount("/attempts", int64(f.Attempts)), errorBelow("/stop", f.Stop.check()))
}

func (s *Signal) check() error {
	if s == nil || len(s.Details) == 0 {
		return nil
	}
	if _, err := json.Marshal(s.Details); err != nil {
		return formError("/details", "%v", err)
	}
	return nil
}

func (r *Run) check() error {
	return firstError(
		checkCount("/depth", int64(r.Depth)), checkCount("/number", int64(r.Number)), checkCount("/iteration", int64(r.Iteration)),
	)
}

func (u *Usage) check() error {
	if u == nil {
		return nil
	}
	if cost := u.Cost.OrEmpty(); math.IsNaN(cost) || math.IsInf(cost, 0) {
		return formError("/cost", "%v is not an amount", cost)
	}
	return firstError(
		checkCount("/input_tokens", u.InputTokens), checkCount("/output_tokens", u.OutputTokens),
		checkCount("/cache_read_tokens", u.CacheReadTokens), checkCount("/cache_write_tokens", u.CacheWriteTokens),
		checkCount("/reasoning_tokens", u.ReasoningTokens),
	)
}

func checkCount(pointer string, n int64) error {
	if n < 0 {
		return formError(pointer, "%d is negative", n)
	}
	return nil
}

func checkRange(pointer string, n, least, most int) error {
	if n < least || n > most {
		return formError(pointer, "%d is out of range: it must be from %d to %d", n, least, most)
	}
	return nil
}

// errorBelow converts an error in a part of the form to an error in the whole form.
func errorBelow(pointer string, err error) error {
	if part, ok := errors.AsType[*strictjson.Error](err); ok {
		return formError(pointer+part.Pointer, "%s", part.Message)
	}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
