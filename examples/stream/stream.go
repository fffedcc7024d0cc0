package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/grapnel-go/grapnel/agent"
)

// streamRun runs the agent and sends each thing that happens as one event.
func streamRun(w http.ResponseWriter, r *http.Request, a *agent.Agent) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for progress, err := range a.Stream(r.Context(), agent.NewState(), agent.UserText(r.FormValue("ask"))) {
		name, text := describeEvent(progress, err)
		if name == "" {
			continue
		}
		data, err := json.Marshal(text) // a JSON string has no line ends, which would end the event
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data); err != nil {
			return // the browser has disconnected; leaving the loop cancels the run
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}

// describeEvent returns an event's name and text for the browser. The name is empty if the browser does not get the
// event.
func describeEvent(progress agent.Progress, err error) (name, text string) {
	if progress.Delta != nil && progress.Delta.Text != "" {
		return "text", progress.Delta.Text
	}
	switch e := progress.Event.(type) {
	case agent.ToolCallStarted:
		return "call", e.Call.Name + " " + e.Call.Arguments
	case agent.ToolCallCompleted:
		return "result", fmt.Sprint(e.Result.Status, ": ", e.Result.Text())
	case agent.RunCompleted:
		if err != nil {
			return "end", "the run failed" // the error may quote what the browser must not see: log it instead
		}
		return "end", string(progress.State.Status())
	}
	return "", ""
}
