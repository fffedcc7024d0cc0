package storedruns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/policy/backtest"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// Format is the format of the runs of a store.
const Format recorded.Format = "store"

// lacks names what stores do not keep.
const lacks = "the system prompt, the tools, and the calls of sub-agents"

// Record returns a run of an agent as a recorded run. A run is good, as backtest counts it, if it was completed.
func Record(ctx context.Context, store durable.Reader, r durable.Run) (*recorded.Run, error) {
	s, err := durable.Load(ctx, store, r.ID)
	if err != nil {
		return nil, err
	}
	out := &recorded.Run{
		Format: Format, File: "run " + string(r.ID), Line: 1, Agent: r.Name, Lacks: lacks,
		Record: replay.Record{
			ID: string(r.ID), Source: "grapnel", Kind: replay.Clean, Task: r.Summary, Messages: []replay.Message{},
			Utility: new(r.Status == durable.StatusCompleted && !r.Blocked),
		},
	}
	for _, step := range s.Steps() {
		out.Model = cmp.Or(step.Reply().Model, out.Model)
	}
	for _, m := range s.Messages() {
		out.Messages = append(out.Messages, messageOf(m))
	}
	if open := openCalls(s); len(open) > 0 {
		out.Messages = append(out.Messages, messageOf(agent.Assistant("", open...)))
	}
	return out, nil
}

// openCalls returns the calls that a waiting run asks people about.
func openCalls(s agent.State) (calls []agent.ToolCall) {
	if !s.Waiting() {
		return nil
	}
	for _, i := range s.Interventions() {
		if i.Child.ID == "" && i.Answer() == nil {
			calls = append(calls, i.Original)
		}
	}
	return calls
}

// memberDenied marks the answers to denied calls.
const memberDenied = "x_denied"

// DeniedCalls returns the IDs of the calls that hooks or people denied when the run was recorded, in order.
func DeniedCalls(r *recorded.Run) []string {
	return lo.FilterMap(r.Messages, func(m replay.Message, _ int) (string, bool) { return m.ToolCallID, m.Other[memberDenied] != nil })
}

// messageOf converts a message. The calls have the model's own arguments.
func messageOf(m agent.Message) replay.Message {
	out := replay.Message{Role: replay.Role(m.Role()), Content: replay.Text(m.Text())}
	if m.Role() == agent.RoleTool {
		out.ToolCallID, out.Name, out.Content = m.CallID(), m.Tool(), replay.Text(m.ToolText())
		out.Error = m.IsError() || m.Status() != agent.ToolExecuted && m.Status() != agent.ToolMocked
		switch m.Reason() {
		case agent.ReasonDenied, agent.ReasonNobodyToAsk, agent.ReasonRejected, agent.ReasonHookFailed:
			out.Other = map[string]json.RawMessage{memberDenied: json.RawMessage("true")}
		}
	}
	for _, c := range m.Calls() {
		out.ToolCalls = append(out.ToolCalls, replay.ToolCall{
			ID: c.ID, Type: "function", Function: replay.FunctionCall{Name: c.Name, Arguments: c.Arguments},
		})
	}
	return out
}

// ErrKind is returned for a run of another kind than durable.KindAgent.
var ErrKind = errors.New("only runs of agents can be replayed")

// Filter selects runs of agents. The zero Filter selects all.
type Filter struct {
	// Run, unless empty, is the only run.
	Run agent.RunID
	// Agent, unless empty, is the name of their agent or blueprint.
	Agent string
	// Since and Until, unless zero, limit when they were created.
	Since, Until time.Time
	// Selects, unless nil, reports whether a run is selected.
	Selects func(r durable.Run) bool
	// Most, unless zero, is how many runs to select at most: the newest ones.
	Most int
}

// pageSize is how many runs a list of the store has, and perRecording how many runs are read one after the other.
const (
	pageSize     = 500
	perRecording = 100
)

// Find returns the runs that a filter selects, for a backtest. A run that a later one continues is part of that one. Cut says that
// Filter.Most has left runs out.
func Find(ctx context.Context, store durable.Lister, f Filter) (all []backtest.Recording, runs int, cut bool, err error) {
	list, cut, err := listRuns(ctx, store, f)
	for _, part := range lo.Chunk(list, perRecording) {
		all = append(all, backtest.Recording{
			Name: fmt.Sprintf("runs from %s to %s", part[len(part)-1].ID, part[0].ID), Size: int64(len(part)), Format: Format,
			Runs: func(ctx context.Context) iter.Seq2[*recorded.Run, error] { return records(ctx, store, part) },
		})
	}
	return all, len(list), cut, err
}

// records reads runs one after the other.
func records(ctx context.Context, store durable.Reader, part []durable.Run) iter.Seq2[*recorded.Run, error] {
	return func(yield func(*recorded.Run, error) bool) {
		for _, r := range part {
			if run, err := Record(ctx, store, r); !yield(run, err) {
				return
			}
		}
	}
}

// listRuns returns the selected runs, the newest first.
func listRuns(ctx context.Context, store durable.Lister, f Filter) (all []durable.Run, cut bool, err error) {
	if f.Run != "" {
		r, err := store.Run(ctx, f.Run)
		if err == nil && f.Selects != nil && !f.Selects(r) {
			err = durable.ErrNotFound
		}
		if err == nil && r.Kind != durable.KindAgent {
			err = fmt.Errorf("run %s is of kind %s: %w", r.ID, r.Kind, ErrKind)
		}
		return []durable.Run{r}, false, err
	}
	continued := map[agent.SessionID]bool{}
	for page := (durable.Filter{Name: f.Agent, Since: f.Since, Until: f.Until, Limit: pageSize}); ; {
		runs, err := store.List(ctx, page)
		if err != nil {
			return nil, false, err
		}
		for _, r := range runs {
			page.Before = r.ID
			if r.Kind != durable.KindAgent || r.Entries == 0 || continued[r.Session] || f.Selects != nil && !f.Selects(r) {
				continue
			}
			if f.Most > 0 && len(all) == f.Most {
				return all, true, nil
			}
			all = append(all, durable.Run{ID: r.ID, Name: r.Name, Summary: r.Summary, Status: r.Status, Blocked: r.Blocked})
			continued[r.Session] = r.Session != "" && r.Traits.Turn == durable.TurnLater && r.Traits.RetryOf == ""
		}
		if len(runs) < pageSize {
			return all, false, nil
		}
	}
}
