package upgrade_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// facts is what a version knew of what it stored, in plain values. A later version may know more; what is here stays true.
type facts map[string]any

// stateFacts returns what a state says.
func stateFacts(s agent.State) facts {
	f := facts{
		"session": s.Session(), "run": s.Run().ID, "agent": s.Run().Agent, "parent": s.Run().Parent, "root": s.Run().Root,
		"depth": s.Run().Depth, "number": s.Run().Number, "stage": s.Run().Stage, "iteration": s.Run().Iteration,
		"status": s.Status(), "answer": s.Answer(), "waiting": s.Waiting(), "usage": usageFacts(s.Usage()), "run_usage": usageFacts(s.RunUsage()),
		"run_steps": s.RunStepCount(), "failures": s.RunFailures(), "step_open": agent.Checkpoint(s).StepOpen(),
		"in_doubt": agent.Checkpoint(s).CallsInDoubt(), "started": s.Run().Started.UTC(),
	}
	if signal, ok := s.StopSignal().Get(); ok {
		f["signal"] = facts{"reason": signal.Reason, "message": signal.Message, "source": signal.Source}
	}
	if m, ok := memoKey.From(s); ok {
		f["memo"] = m
	}
	if n, ok := countKey.From(s); ok {
		f["count"] = n
	}
	var messages, steps, asked []facts
	for _, m := range s.Messages() {
		messages = append(messages, messageFacts(m))
	}
	for _, r := range s.Steps() {
		steps = append(steps, stepFacts(r))
	}
	for _, i := range s.Interventions() {
		asked = append(asked, facts{
			"call": i.CallID(), "tool": i.Call.Name, "arguments": i.Call.Arguments, "original": i.Original.Arguments, "begun": i.Begun,
			"child": i.Child.ID, "answer": i.Answer(), "on_timeout": i.Questions.OnTimeout(), "question": fmt.Sprint(i.Questions[0].By, ": ", i.Questions[0].Reason, " (", i.Questions[0].Rule, ")"),
		})
	}
	f["messages"], f["steps"], f["interventions"] = messages, steps, asked
	if child, _, ok := agent.Checkpoint(s).Child("t"); ok {
		f["child"] = stateFacts(child)
	}
	return f
}

func messageFacts(m agent.Message) facts {
	var parts, calls []string
	for _, p := range m.Content().Parts() {
		parts = append(parts, fmt.Sprintf("%s %q %q %q %q %x %q", p.Kind, p.Text, p.URL, p.MediaType, p.Name, p.Data, p.Opaque))
	}
	for _, c := range m.Calls() {
		calls = append(calls, fmt.Sprint(c.ID, " ", c.Name, " ", c.Arguments))
	}
	return facts{
		"role": m.Role(), "parts": parts, "calls": calls, "source": m.Source(), "call": m.CallID(), "tool": m.Tool(), "status": m.Status(),
		"reason": m.Reason(),
	}
}

func stepFacts(r agent.StepRecord) facts {
	reply := r.Reply()
	f := facts{
		"index": r.Index(), "kind": r.Kind(), "message": messageFacts(r.Message()), "usage": usageFacts(r.Usage()), "model": reply.Model, "id": reply.ID,
		"finish": reply.FinishReason,
	}
	if failure := r.Failure(); failure != nil {
		f["failure"] = fmt.Sprint(failure.Kind, ": ", failure.Text)
	}
	var results []facts
	for _, result := range r.Results() {
		results = append(results, facts{
			"call": result.CallID(), "arguments": result.Call().Arguments, "original": result.Original().Arguments, "status": result.Status,
			"reason": result.Reason, "text": result.Text(), "by": result.DecidedBy, "attempts": result.Attempts,
		})
	}
	f["results"] = results
	return f
}

func usageFacts(u agent.Usage) facts {
	return facts{
		"in": u.InputTokens, "out": u.OutputTokens, "read": u.CacheReadTokens, "written": u.CacheWriteTokens, "reasoning": u.ReasoningTokens,
		"cost": u.Cost.ToPointer(),
	}
}

// storeFacts returns what a store says of its runs, by their ids.
func storeFacts(t *testing.T, s durable.Store) facts {
	t.Helper()
	all := facts{}
	runs, err := s.List(t.Context(), durable.Filter{})
	require.NoError(t, err)
	var ready []string
	for _, r := range runs {
		if r.Status == durable.StatusReady && r.ID != runCut { // ready when its lease has expired
			ready = append(ready, string(r.ID))
		}
		entries, err := s.Entries(t.Context(), r.ID, 0)
		require.NoError(t, err)
		var journal []string
		for _, e := range entries {
			journal = append(journal, fmt.Sprint(e.Seq, " ", e.Kind, " ", e.Key))
		}
		questions, err := s.Waits(t.Context(), r.ID)
		require.NoError(t, err)
		var asked []facts
		for _, q := range questions {
			i, err := durable.InterventionOf(q)
			require.NoError(t, err)
			asked = append(asked, facts{
				"call": q.ID, "hash": q.Subject, "tool": q.Tool, "child": q.Child, "token": fmt.Sprintf("%x", q.TokenHash), "answer": i.Answer(),
				"arguments": i.Call.Arguments, "reason": i.Questions[0].Reason,
			})
		}
		f := facts{
			"session": r.Session, "kind": r.Kind, "name": r.Name, "parent": r.Parent, "root": r.Root, "status": r.Status, "reason": r.Reason, "steps": r.Steps,
			"entries": r.Entries, "cancel": r.CancelReason, "owner": r.Owner, "epoch": r.Epoch, "journal": journal, "questions": asked,
			"created": r.Created.UTC(), "updated": r.Updated.UTC(), "expires": r.Expires.UTC(),
		}
		state, err := durable.Load(t.Context(), s, r.ID)
		if err == nil {
			f["state"] = stateFacts(state)
		} else {
			require.ErrorIs(t, err, durable.ErrNotBegun)
			f["state"] = "not begun"
		}
		all[string(r.ID)] = f
	}
	deny, err := s.DenyTools(t.Context())
	require.NoError(t, err)
	slices.Sort(ready)
	all["deny tools"] = facts{"on": deny.On, "reason": deny.Reason, "by": deny.By}
	all["due"] = ready
	return all
}

// renamed returns the facts of builds before version 0.1.0 about a store with the names of this version.
func renamed(all map[string]any) map[string]any {
	if _, ok := all["due"]; !ok { // not a store
		return all
	}
	due, _ := all["due"].([]any)
	for id, f := range all {
		run, _ := f.(map[string]any)
		name, old := run["agent"]
		if !old {
			continue
		}
		delete(run, "agent")
		run["kind"], run["name"] = string(durable.KindAgent), name
		switch run["status"] {
		case "done":
			run["status"] = string(durable.StatusCompleted)
		case "parked":
			run["status"] = string(durable.StatusWaiting)
		}
		if slices.Contains(due, any(id)) {
			run["status"] = string(durable.StatusReady)
		}
	}
	return all
}

// plain returns facts as they come back from JSON.
func plain(t *testing.T, f any) any {
	t.Helper()
	text, err := json.Marshal(f)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}
