package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// questionTool is the tool of questions about nothing that would be done.
const questionTool = "question"

// entryParked is the kind of the entry that a simple runner has given a run back until people have answered: its program has ended.
const entryParked durable.EntryKind = "parked"

// Park lets a run wait for the answers of people, and gives it back.
func (r RemoteRunner) Park(ctx context.Context, id agent.RunID, in wire.Parking) error {
	run, err := r.findHeld(ctx, id, in.Epoch)
	if err != nil {
		return err
	}
	c := r.c
	var m mistakes
	notice := durable.Notice{Run: agent.Run{ID: run.ID, Session: run.Session, Agent: run.Name, Parent: run.Parent, Root: run.Root, Started: run.Created}}
	now := time.Now()
	seen := map[string]bool{}
	for i, q := range in.Questions {
		field := fmt.Sprintf("questions.%d.", i)
		if seen[q.ID] || !invisible.IsStorable(q.ID) {
			m.add(field+"id", "%q: it must be a text that no other question of the run has", q.ID)
		}
		seen[q.ID] = true
		if people := lo.Uniq(q.Approvers); len(people) > 0 && q.Quorum > len(people) {
			m.add(field+"quorum", "%d of %d approvers can never agree", q.Quorum, len(people))
		}
		if err := invisible.CheckText("the reason", q.Reason, invisible.MaxReason); err != nil {
			m.add(field+"reason", "%v", err)
		}
		if !lo.EveryBy(q.Approvers, func(name string) bool {
			return strings.TrimSpace(name) != "" && invisible.CheckName("a name", name) == nil
		}) {
			m.add(field+"approvers", "each must be a name of at most %d bytes, without invisible characters", invisible.MaxName)
		}
		if err := invisible.CheckName("the tool", q.Tool); err != nil {
			m.add(field+"tool", "%v", err)
		}
		call := agent.ToolCall{ID: q.ID, Name: cmp.Or(q.Tool, questionTool), Arguments: cmp.Or(string(q.Arguments), "{}")}
		if err := strictjson.CheckObject(call.Arguments); err != nil {
			m.add(field+"arguments", "%v", err)
		}
		asked := agent.Question{Reason: q.Reason, Approvers: q.Approvers, Quorum: q.Quorum, Within: time.Duration(q.WithinSeconds) * time.Second, By: run.Name}
		about := agent.Intervention{Original: call, Call: call, Questions: agent.Questions{asked}, Asked: now, Round: int(in.Epoch)}
		if asked.Within > 0 {
			about.Deadline = now.Add(asked.Within)
		}
		about = about.WithID(run.ID, 0) // the epoch is the round: no answer to an earlier question counts
		notice.Calls = append(notice.Calls, durable.WaitingCall{Intervention: about})
	}
	if err := m.err(); err != nil {
		return err
	}
	waits, err := notice.Waits()
	if err != nil {
		return err
	}
	err = c.store.Commit(ctx, run.Lease(), durable.Commit{
		Entries: []durable.Entry{{Seq: run.Entries + 1, Kind: entryParked, At: now}},
		Update:  durable.Update{Status: durable.StatusWaiting, Waits: waits},
	})
	if err != nil {
		return err
	}
	return c.store.Release(context.WithoutCancel(ctx), run.Lease(), 0)
}

// isParked reports whether a simple runner has given a run back until people have answered: then also what follows is for such runners.
func isParked(entries []durable.Entry) bool {
	return slices.ContainsFunc(entries, func(e durable.Entry) bool { return e.Kind == entryParked })
}

// answersOf returns the answers to the questions with which a simple runner has given a run back.
func (c *Coordinator) answersOf(ctx context.Context, r durable.Run) (all []wire.RunnerAnswer, err error) {
	if r.Attempts <= 1 {
		return nil, nil
	}
	waits, err := c.store.Waits(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	for _, w := range waits {
		if w.Kind != durable.WaitApproval {
			continue
		}
		about, err := durable.InterventionOf(w)
		if err != nil {
			return nil, err
		}
		answer := wire.RunnerAnswer{ID: w.Subject, Reason: "the time for an answer is over"}
		if decided := about.Answer(); decided != nil {
			answer.Approved, answer.Reason, answer.By = decided.Verdict == agent.Approve, decided.Reason, decided.By
			if decided.Arguments != "" {
				answer.Arguments = json.RawMessage(decided.Arguments)
			}
		}
		all = append(all, answer)
	}
	return all, nil
}
