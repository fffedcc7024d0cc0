package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/agent"
)

// Result is a run's result, stored as JSON: see Update.Result and ResultOf.
type Result struct {
	// Text is the final answer of an agent, or the output of a command.
	Text string `json:"text,omitempty"`
	// Data is the output of a command when it is a JSON value; then Text is empty.
	Data json.RawMessage `json:"data,omitempty"`
	// Error is why the run failed, was stopped or was cancelled.
	Error string `json:"error,omitempty"`
	// ExitCode is the command's exit code; nil if it has not exited.
	ExitCode *int `json:"exit_code,omitempty"`
	// Cut says that the command has written more than is stored.
	Cut bool `json:"cut,omitempty"`
}

// ResultOf returns a run's result, or the zero Result if the run has not ended.
func ResultOf(ctx context.Context, store Lister, id agent.RunID) (result Result, err error) {
	data, err := store.Result(ctx, id)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &result)
	}
	if err != nil {
		return Result{}, fmt.Errorf("reading the result of run %s: %w", id, err)
	}
	return result, nil
}

// agentResult returns the result of an agent run.
func agentResult(final agent.State, err error) []byte {
	result := Result{}
	if final.Status() == agent.StatusDone {
		result.Text = final.Answer()
	}
	if run, ok := errors.AsType[*agent.RunError](err); ok {
		err = run.Err
	}
	signal := final.StopSignal()
	switch {
	case err != nil:
		result.Error = err.Error()
	case final.Status() != agent.StatusDone && signal.Message != "":
		result.Error = signal.Message
		if by := signal.StoppedBy(); by != "" {
			result.Error += ", by " + by
		}
	}
	return result.encode()
}

func (r Result) encode() []byte {
	data, err := json.Marshal(r)
	if err != nil { // Data is not JSON
		r.Data = nil
		data, _ = json.Marshal(r) //nolint:errchkjson // it has no Data any more
	}
	return data
}
