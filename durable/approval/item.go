package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Item is an open wait in the form shown to people and programs.
type Item struct {
	Run   agent.RunID `json:"run"`
	Agent string      `json:"agent,omitempty"`
	// Parent is the agent of the run, if Agent is a sub-agent of it.
	Parent string `json:"parent,omitempty"`
	// Wait is the ID of the wait, which must be sent with the decision: it names what was seen. Call is the ID of its call.
	Wait string `json:"wait"`
	Kind string `json:"kind"`
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Preview is the beginning of the arguments that would run, on one line.
	Preview   string            `json:"preview"`
	Questions []MessageQuestion `json:"questions"`
	// Needs says in words who may answer.
	Needs string `json:"needs,omitempty"`
	// Gate is what a gate waits for, Host the host whose workers watch for it.
	Gate     *agent.Gate `json:"gate,omitempty"`
	Host     string      `json:"host,omitempty"`
	Asked    time.Time   `json:"asked"`
	Deadline time.Time   `json:"deadline,omitzero"`
	// OnTimeout is the verdict that counts after the deadline. Expired is set when the deadline has passed.
	OnTimeout string `json:"on_timeout,omitempty"`
	Expired   bool   `json:"expired,omitempty"`

	Timeout agent.ApprovalVerdict `json:"-"`
}

// Detail is a wait with everything that a person needs in order to decide.
type Detail struct {
	Item

	// Original are the arguments that the model sent, Arguments the ones that would run, and Diff how they differ.
	Original Arguments `json:"original"`
	// Description is what another party, such as an MCP server, says about its tool.
	Description string    `json:"description,omitempty"`
	Arguments   Arguments `json:"arguments"`
	Diff        string    `json:"diff,omitempty"`
	// Begun is set when the call may already have run, so that its arguments cannot be changed.
	Begun bool `json:"begun,omitempty"`
	// Input is what the call asks for. It comes from outside, such as an MCP server.
	Input *agent.InputRequest `json:"input,omitempty"`
	// State is open, decided or expired.
	State string `json:"state"`
	// Answers are the answers so far, of which more are needed; Decided is the decision.
	Answers []Decision `json:"answers,omitempty"`
	Decided *Decision  `json:"decided,omitempty"`
	// Others are the other waits of the step.
	Others []Other `json:"others"`
	// History are the last decisions about calls of the same tool that one of the same rules has asked about, newest first.
	History []Decision `json:"history,omitempty"`
}

// The states of a wait.
const (
	stateOpen    = "open"
	stateDecided = "decided"
	stateExpired = "expired"
)

// Decision is an answer of a person or an event.
type Decision struct {
	// Run is the run that the decision is about; set in a history only.
	Run agent.RunID `json:"run,omitempty"`
	// Preview is the beginning of the arguments that were shown; set in a history only.
	Preview string                `json:"preview,omitempty"`
	Verdict agent.ApprovalVerdict `json:"verdict"`
	// Author is the kind of author: empty for a person, "event" for the event of a gate.
	Author agent.Author `json:"author,omitempty"`
	// By is the name that the person gave, Identity who it is if that was verified.
	By       string `json:"by,omitempty"`
	Identity string `json:"identity,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Arguments are the changed arguments.
	Arguments Arguments `json:"arguments,omitempty"`
	At        time.Time `json:"at"`
}

// author returns who gave the answer, for people.
func (d Decision) author() string {
	if d.Author == agent.AuthorEvent {
		return "the event of " + d.By
	}
	return cmp.Or(d.Identity, d.By, "a person")
}

// Other is another wait of the step.
type Other struct {
	Wait      string    `json:"wait"`
	Kind      string    `json:"kind"`
	Tool      string    `json:"tool"`
	Reason    string    `json:"reason,omitempty"`
	Arguments Arguments `json:"arguments"`
	Decided   *Decision `json:"decided,omitempty"`
}

// InboxKinds returns the kinds of waits in an inbox: people answer the first three, and can reject the others.
func InboxKinds() []durable.WaitKind {
	return []durable.WaitKind{durable.WaitApproval, durable.WaitDoubt, durable.WaitInput, durable.WaitCallback, durable.WaitFile, durable.WaitCommand}
}

// Inbox returns open waits of all runs, oldest first: those of InboxKinds that a filter selects. Next is the last of them,
// for WaitFilter.After; nil at the end.
func Inbox(ctx context.Context, store durable.AnswerStore, f durable.WaitFilter) (items []Item, next *durable.Wait, err error) {
	if f.Kinds = lo.Intersect(InboxKinds(), f.Kinds); len(f.Kinds) == 0 {
		f.Kinds = InboxKinds()
	}
	f.Limit = cmp.Or(f.Limit, durable.DefaultLimit)
	waits, err := store.OpenWaits(ctx, f)
	if err != nil {
		return nil, nil, fmt.Errorf("listing what runs wait for: %w", err)
	}
	runs, now := map[agent.RunID]durable.Run{}, time.Now()
	for _, w := range waits {
		about, known := runs[w.Run]
		if !known {
			if about, err = store.Run(ctx, w.Run); err != nil && !errors.Is(err, durable.ErrNotFound) {
				return nil, nil, fmt.Errorf("listing what runs wait for: %w", err)
			}
			runs[w.Run] = about
		}
		i, err := durable.InterventionOf(w)
		item := newItem(w, i, about, now)
		if err != nil { // the others are listed all the same
			item.Tool, item.Preview = w.Tool, err.Error()
		}
		items = append(items, item)
	}
	if len(waits) == f.Limit {
		next = &waits[len(waits)-1]
	}
	return items, next, nil
}

func newItem(w durable.Wait, i agent.Intervention, about durable.Run, now time.Time) Item {
	item := Item{
		Run: w.Run, Agent: cmp.Or(i.Child.Agent, about.Name), Wait: w.ID, Kind: string(w.Kind), Call: i.CallID(), Tool: i.Call.Name,
		Preview:   Arguments(i.Call.Arguments).Preview(),
		Questions: questionsOf(i), Host: w.Host, Asked: w.Asked, Deadline: w.Deadline,
	}
	if i.Child.ID != "" {
		item.Parent = about.Name
	}
	if q, ok := durable.GateOf(w, i); ok {
		item.Gate, item.Questions = q.Gate, questionsOf(agent.Intervention{Questions: agent.Questions{q}})
	} else {
		item.Needs = strings.Join(lo.Uniq(lo.Map(durable.OpenQuestions(w, i), func(q agent.Question, _ int) string { return q.Needs() })), "; ")
	}
	if !w.Deadline.IsZero() {
		item.Timeout = i.Questions.OnTimeout()
		item.OnTimeout = item.Timeout.String()
		item.Expired = w.Answer == nil && !now.Before(w.Deadline)
	}
	return item
}

// AgentText returns the agent that makes the call, and the agent whose sub-agent it is.
func (i Item) AgentText() string {
	if i.Parent == "" {
		return i.Agent
	}
	return i.Agent + ", sub-agent of " + i.Parent
}

// StillNeeds says in words which answers are missing after an answer; it is empty when the wait is decided.
func StillNeeds(w durable.Wait) string {
	i, err := durable.InterventionOf(w)
	if err != nil || w.Answer != nil {
		return ""
	}
	needs := lo.Map(durable.OpenQuestions(w, i), func(q agent.Question, _ int) string {
		missing := max(q.Quorum, 1) - q.Approvals()
		text := fmt.Sprintf("%d more %s", missing, lo.Ternary(missing == 1, "approval", "approvals"))
		if len(q.Approvers) > 0 {
			text += " by " + strings.Join(q.Approvers, ", ")
		}
		return text
	})
	return "It needs " + strings.Join(lo.Uniq(needs), "; ") + "."
}

// historyLength is the maximum number of decisions in Detail.History, historyDepth the number of audit records about the
// tool that they are looked for in.
const (
	historyLength = 5
	historyDepth  = 100
)

// Show returns everything about a wait. With history, it includes the last decisions about the same tool in all runs.
func Show(ctx context.Context, store durable.AnswerStore, w durable.Wait, history bool) (*Detail, error) {
	q, err := newQuestion(ctx, store, w)
	if err != nil {
		return nil, err
	}
	return q.detail(ctx, store, history)
}

func (q *question) detail(ctx context.Context, store durable.AnswerStore, history bool) (*Detail, error) {
	now := time.Now()
	d := &Detail{
		Item:        newItem(q.kept, q.asked, q.about, now),
		Description: q.asked.Description,
		Original:    Arguments(q.asked.Original.Arguments), Arguments: Arguments(q.asked.Call.Arguments), Begun: q.asked.Begun,
		Diff: Diff(Arguments(q.asked.Original.Arguments), Arguments(q.asked.Call.Arguments)), State: stateOpen, Others: []Other{},
	}
	if one, ok := lo.Find(q.asked.Questions, func(one agent.Question) bool { return one.Input != nil }); ok {
		d.Input = one.Input
	}
	for _, answer := range q.kept.Partial {
		if one := decisionOf(answer); one != nil {
			d.Answers = append(d.Answers, *one)
		}
	}
	if q.kept.Answer != nil {
		d.Decided, d.State, d.Needs = decisionOf(*q.kept.Answer), stateDecided, ""
	} else if d.Expired {
		d.State = stateExpired
	}
	for _, sibling := range q.batch {
		if sibling.ID == q.kept.ID || !slices.Contains(InboxKinds(), sibling.Kind) {
			continue
		}
		if i, err := durable.InterventionOf(sibling); err == nil {
			other := Other{
				Wait: sibling.ID, Kind: string(sibling.Kind), Tool: sibling.Tool, Reason: i.Questions.Reason(), Arguments: Arguments(i.Call.Arguments),
			}
			if sibling.Answer != nil {
				other.Decided = decisionOf(*sibling.Answer)
			}
			d.Others = append(d.Others, other)
		}
	}
	if !history || q.kept.Tool == "" {
		return d, nil
	}
	records, err := store.AuditRecords(ctx, durable.AuditFilter{Kind: durable.AuditAnswer, Subject: q.kept.Tool, Limit: historyDepth})
	if err != nil {
		return nil, fmt.Errorf("reading former decisions about %s: %w", q.kept.Tool, err)
	}
	like := lo.Filter(records, func(r durable.AuditRecord, _ int) bool { return q.isLike(r) })
	d.History = DecisionsOf(like[:min(len(like), historyLength)])
	return d, nil
}

// isLike reports whether an audit record is about another call that one of the same hooks has asked about.
func (q *question) isLike(r durable.AuditRecord) bool {
	answered, err := durable.AnsweredOf(r)
	if err != nil || r.Run == q.kept.Run && r.Answer.Wait == q.kept.ID {
		return false
	}
	return lo.SomeBy(q.asked.Questions, func(one agent.Question) bool { return slices.Contains(answered.AskedBy, one.By) })
}

// DecisionsOf returns the decisions of audit records about answers. A record whose run was deleted has no verdict any more,
// and is left out.
func DecisionsOf(records []durable.AuditRecord) []Decision {
	return lo.FilterMap(records, func(r durable.AuditRecord, _ int) (Decision, bool) {
		if r.Answer == nil {
			return Decision{}, false
		}
		d := decisionOf(*r.Answer)
		if d == nil {
			return Decision{}, false
		}
		d.Run, d.At = r.Run, r.At
		if answered, err := durable.AnsweredOf(r); err == nil {
			d.Preview = Arguments(answered.Call.Arguments).Preview()
		}
		return *d, true
	})
}

// decisionOf returns the decision in a stored answer; nil if its data is gone.
func decisionOf(stored durable.Answer) *Decision {
	var a agent.Approval
	if len(stored.Data) == 0 || json.Unmarshal(stored.Data, &a) != nil {
		return nil
	}
	return newDecision(a, stored.At)
}

func newDecision(a agent.Approval, at time.Time) *Decision {
	return &Decision{
		Verdict: a.Verdict, Author: a.Author, By: cmp.Or(a.By, a.Identity), Identity: a.Identity, Reason: a.Reason, Arguments: Arguments(a.Arguments), At: at,
	}
}

// Open reports whether the question can still be answered.
func (d *Detail) Open() bool { return d.State == stateOpen }
