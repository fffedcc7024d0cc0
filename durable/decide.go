package durable

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
	"github.com/grapnel-go/grapnel/toolexec"
)

// Waits returns what the run of the notice waits for: for each call one wait for people, unless only gates ask about
// it, and one for each gate. Engines put them into Update.Waits.
func (n Notice) Waits() ([]Wait, error) {
	var all []Wait
	for _, c := range n.Calls {
		data, err := json.Marshal(c.Intervention)
		if err != nil {
			return nil, fmt.Errorf("recording the question about call %s: %w", c.CallID(), err)
		}
		w := Wait{
			Run: n.Run.ID, ID: c.CallID(), Kind: WaitApproval, Hash: c.Hash(), Tool: c.Call.Name,
			Asked: c.Asked, Deadline: c.Deadline, Data: data,
		}
		if c.Questions.InDoubt() {
			w.Kind = WaitDoubt
		}
		if _, asks := c.Questions.Asked(); asks {
			w.Kind = WaitInput
		}
		if decision := c.Answer(); decision != nil {
			if w.Answer, err = newAnswer(w, c.Intervention, *decision); err != nil {
				return nil, err
			}
			w.Answer.At = c.Asked
		}
		if len(forPeople(c.Questions)) > 0 {
			person := w
			if c.Token != "" {
				person.TokenHash = TokenHash(c.Token)
			}
			all = append(all, person)
		}
		for _, q := range c.Questions {
			if q.Gate == nil || q.Decision() != nil {
				continue
			}
			gate := w
			gate.ID, gate.Kind, gate.Host = gateID(c.Intervention, q), WaitKind(q.Gate.Kind), q.Gate.Host
			all = append(all, gate)
		}
	}
	return all, nil
}

// forPeople returns the questions that people answer.
func forPeople(questions agent.Questions) agent.Questions {
	return lo.Filter(questions, func(q agent.Question, _ int) bool { return q.Kind != agent.QuestionGate })
}

// gateID returns the ID of the wait for the gate of a call.
func gateID(i agent.Intervention, q agent.Question) string { return i.CallID() + "#" + q.By }

// storedApproval is the data of an answer: the approval, and what it is about, for the audit log.
type storedApproval struct {
	agent.Approval

	About *storedCall `json:"about,omitempty"`
}

// storedCall is the call that an answer is about.
type storedCall struct {
	Arguments string   `json:"arguments,omitempty"`
	AskedBy   []string `json:"asked_by,omitempty"`
}

// newAnswer returns an approval in its stored form.
func newAnswer(w Wait, i agent.Intervention, a agent.Approval) (*Answer, error) {
	about := storedCall{i.Call.Arguments, lo.Uniq(lo.Map(questionsOf(w, i), func(q agent.Question, _ int) string { return q.By }))}
	data, err := json.Marshal(storedApproval{a, &about})
	if err != nil {
		return nil, fmt.Errorf("recording the answer to %s of run %s: %w", w.ID, w.Run, err)
	}
	by := a.By
	if a.Identity != "" {
		by = a.Identity
	}
	return &Answer{Wait: w.ID, Hash: w.Hash, Seen: len(w.Answers()), Ends: a.Verdict == agent.RejectAndEnd, By: by, Data: data}, nil
}

// Answered is what an answer in the audit log says.
type Answered struct {
	agent.Approval

	// Call is the call that was shown, and AskedBy names the hooks that asked.
	Call    agent.ToolCall
	AskedBy []string
}

// AnsweredOf reads an AuditRecord of kind AuditAnswer. Everything but By, and the tool and id of the call, is missing
// when the run was deleted.
func AnsweredOf(r AuditRecord) (Answered, error) {
	told := Answered{Approval: agent.Approval{By: r.By}, Call: agent.ToolCall{Name: r.Subject}}
	if r.Answer == nil {
		return told, fmt.Errorf("reading audit record %d: it is of kind %s and not an answer", r.Seq, r.Kind)
	}
	told.Call.ID = r.Answer.Wait
	if len(r.Answer.Data) == 0 {
		return told, nil
	}
	var stored storedApproval
	if err := json.Unmarshal(r.Answer.Data, &stored); err != nil {
		return told, fmt.Errorf("reading audit record %d: %w", r.Seq, err)
	}
	told.Approval = stored.Approval
	if stored.About != nil {
		told.Call.Arguments, told.AskedBy = stored.About.Arguments, stored.About.AskedBy
	}
	return told, nil
}

// InterventionOf returns the part of a wait about a call that a person sees, with the answers so far.
func InterventionOf(w Wait) (agent.Intervention, error) {
	var i agent.Intervention
	if err := json.Unmarshal(w.Data, &i); err != nil {
		return i, fmt.Errorf("reading the question about call %s of run %s: %w", w.ID, w.Run, err)
	}
	approvals, err := approvalsOf(w)
	for _, a := range approvals {
		i = i.WithAnswer(a)
	}
	return i, err
}

// GateOf returns the question with the gate that a wait stands for; ok is false when it is not a gate.
func GateOf(w Wait, i agent.Intervention) (q agent.Question, ok bool) {
	return lo.Find(i.Questions, func(q agent.Question) bool { return q.Gate != nil && gateID(i, q) == w.ID })
}

// questionsOf returns the questions of an intervention that a wait stands for.
func questionsOf(w Wait, i agent.Intervention) agent.Questions {
	if q, ok := GateOf(w, i); ok {
		return agent.Questions{q}
	}
	return forPeople(i.Questions)
}

// approvalsOf returns the recorded answers to a wait.
func approvalsOf(w Wait) ([]agent.Approval, error) {
	var all []agent.Approval
	for _, answer := range w.Answers() {
		var a agent.Approval
		if err := json.Unmarshal(answer.Data, &a); err != nil {
			return nil, fmt.Errorf("reading an answer to %s of run %s: %w", w.ID, w.Run, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// NotAdmittedError is returned for an answer of a person who may not answer.
type NotAdmittedError struct {
	Run  agent.RunID
	Wait string
	// Why says what is required.
	Why string
}

func (e *NotAdmittedError) Error() string {
	return fmt.Sprintf("answering %s of run %s: this answer does not count: %s", e.Wait, e.Run, e.Why)
}

// CheckAnswer returns a *NotAdmittedError when an answer to a wait would not count because of who gives it. It records
// nothing.
func CheckAnswer(ctx context.Context, store Store, w Wait, a agent.Approval) error {
	i, err := InterventionOf(w)
	if err != nil {
		return err
	}
	why, err := refuses(ctx, store, w, questionsOf(w, i), a)
	if err == nil && why != "" {
		err = &NotAdmittedError{w.Run, w.ID, why}
	}
	return err
}

// Decider is a Store behind which another process checks and records answers, under the name of whom it knows the caller to be.
type Decider interface {
	Decide(ctx context.Context, w Wait, a agent.Approval) (Wait, error)
}

// Decide records an answer to a wait about a call, as the author saw it: with its hash. It returns the wait with the
// answer, which decides unless more people must answer. The errors are ErrAnswered when another answer
// decided first, ErrNotFound when the run no longer waits for it, ErrExpired when the deadline has passed, so that its default
// answer counts, a *NotAdmittedError, and an *agent.ArgumentsError when changed arguments do not fit the tool, or the
// input does not fit what is asked for.
//
// A rejection answers all waits about the call. An approval by who submitted the job does not count for a question
// with approvers or a quorum.
func Decide(ctx context.Context, store Store, w Wait, a agent.Approval) (Wait, error) {
	if elsewhere, ok := store.(Decider); ok {
		return elsewhere.Decide(ctx, w, a)
	}
	for {
		decided, answers, err := formAnswers(ctx, store, w, a)
		if err != nil {
			return w, err
		}
		if err = store.Answer(ctx, w.Run, answers...); err == nil {
			return decided, nil
		}
		// Another answer came meanwhile, perhaps to another wait that a rejection answers, too: look again.
		if !errors.Is(err, ErrMoreAnswers) && (!errors.Is(err, ErrAnswered) || len(answers) == 1) {
			return w, fmt.Errorf("answering %s of run %s: %w", w.ID, w.Run, err)
		}
		hash := w.Hash
		if w, err = FindWait(ctx, store, w.Run, w.ID); err == nil && w.Hash != hash {
			err = fmt.Errorf("answering %s of run %s: %w", w.ID, w.Run, ErrNotFound)
		}
		if err != nil {
			return w, err
		}
	}
}

// formAnswers returns the wait with the answer, and the answers to store.
func formAnswers(ctx context.Context, store Store, w Wait, a agent.Approval) (Wait, []Answer, error) {
	i, err := InterventionOf(w)
	if err != nil {
		return w, nil, err
	}
	fail := func(err error) (Wait, []Answer, error) {
		return w, nil, fmt.Errorf("answering about call %s of run %s: %w", w.ID, w.Run, err)
	}
	switch {
	case w.Answer != nil:
		return fail(ErrAnswered)
	case !w.Deadline.IsZero() && time.Now().After(w.Deadline):
		return fail(fmt.Errorf("%w, at %s", ErrExpired, w.Deadline.UTC().Format(time.RFC3339)))
	case a.Verdict > agent.Approve:
		return fail(fmt.Errorf("the verdict %q decides nothing: approve or reject the call", a.Verdict))
	case a.TimedOut():
		return fail(fmt.Errorf("the name %q stands for a passed deadline: give another name", a.By))
	case i.CheckInput(a) != nil:
		return fail(i.CheckInput(a))
	case !i.Takes(a):
		return fail(errors.New("its arguments cannot be changed: approve it unchanged, or reject it"))
	}
	if err := checkArguments(i, a); err != nil {
		return fail(err)
	}
	if why, err := refuses(ctx, store, w, questionsOf(w, i), a); err != nil || why != "" {
		if err == nil {
			err = &NotAdmittedError{w.Run, w.ID, why}
		}
		return w, nil, err
	}
	answer, err := newAnswer(w, i, a)
	if err != nil {
		return w, nil, err
	}
	if answer.More = questionsOf(w, i.WithAnswer(a)).Decision() == nil; answer.More {
		w.Partial = append(slices.Clip(w.Partial), *answer)
	} else {
		w.Answer = answer
	}
	answers := []Answer{*answer}
	if a.Verdict == agent.Approve {
		return w, answers, nil
	}
	all, err := store.Waits(ctx, w.Run)
	if err != nil {
		return fail(err)
	}
	for _, other := range all {
		if other.ID == w.ID || other.Answer != nil || !sameCall(other, i) {
			continue
		}
		also, err := newAnswer(other, i, a)
		if err != nil {
			return w, nil, err
		}
		answers = append(answers, *also)
	}
	return w, answers, nil
}

// checkArguments returns what is wrong with the arguments of an answer: they must be one JSON object that fits the schema
// of the tool, if that is known. A schema that cannot be compiled is left to the tool.
func checkArguments(i agent.Intervention, a agent.Approval) error {
	if a.Arguments == "" || a.Arguments == i.Call.Arguments {
		return nil
	}
	schema, err := toolexec.CompileSchema(cmp.Or(i.Schema, anyObject))
	if err != nil {
		schema, err = toolexec.CompileSchema(anyObject)
	}
	if err != nil {
		return err
	}
	return schema.Validate(a.Arguments)
}

// anyObject is the schema of the arguments of an unknown tool.
const anyObject = `{"type":"object"}`

// sameCall reports whether a wait is about the call of an intervention.
func sameCall(w Wait, i agent.Intervention) bool {
	_, gate := GateOf(w, i)
	return gate || w.ID == i.CallID()
}

// refuses returns why an answer counts for none of the questions; empty when it counts.
func refuses(ctx context.Context, store Store, w Wait, questions agent.Questions, a agent.Approval) (string, error) {
	open := questions.Open()
	restricted := slices.ContainsFunc(open, agent.Question.Restricted)
	if restricted && a.Verdict == agent.Approve && a.Identity != "" {
		if submitted, err := hasSubmitted(ctx, store, w.Run, a.Identity); err != nil || submitted {
			return a.Identity + " has submitted the run and cannot approve it", err
		}
	}
	if after := questions.WithAnswer(a); len(open) == 0 || !sameAnswers(questions, after) {
		return "", nil
	}
	if a.Identity != "" && slices.ContainsFunc(open, func(q agent.Question) bool {
		return slices.ContainsFunc(q.Answers, func(known agent.Approval) bool { return known.Identity == a.Identity })
	}) {
		return a.Identity + " has approved it already", nil
	}
	needs := lo.Uniq(lo.Map(open, func(q agent.Question, _ int) string {
		if q.Gate != nil {
			return fmt.Sprintf("%s (gate %s): people can only reject it", q.Needs(), q.By)
		}
		return q.Needs()
	}))
	return strings.Join(needs, "; "), nil
}

// hasSubmitted reports whether an identity has submitted a run, or the topmost run above it.
func hasSubmitted(ctx context.Context, store Store, id agent.RunID, identity string) (bool, error) {
	about, err := store.Run(ctx, id)
	if err != nil {
		return false, fmt.Errorf("looking for who submitted run %s: %w", id, err)
	}
	if about.By == identity || about.Root == "" || about.Root == id {
		return about.By == identity, nil
	}
	root, err := store.Run(ctx, about.Root)
	if err != nil && !errors.Is(err, ErrNotFound) { // the run above may be deleted, or in no store
		return false, fmt.Errorf("looking for who submitted run %s: %w", about.Root, err)
	}
	return err == nil && root.By == identity, nil
}

// sameAnswers reports whether no question has got an answer.
func sameAnswers(before, after agent.Questions) bool {
	for n := range before {
		if len(before[n].Answers) != len(after[n].Answers) {
			return false
		}
	}
	return true
}

// Approve records an answer about a call of a run that waits, or about one of its waits: see FindWait and Decide. It returns
// ErrNotFound when there is no such wait.
func Approve(ctx context.Context, store Store, id agent.RunID, wait string, a agent.Approval) error {
	w, err := FindWait(ctx, store, id, wait)
	if err != nil {
		return err
	}
	_, err = Decide(ctx, store, w, a)
	return err
}

// FindWait returns the wait of a run with an ID. The ID of a call about which only gates ask stands for the first of their waits
// that is open: rejecting one rejects all of them. It returns ErrNotFound when there is none.
func FindWait(ctx context.Context, store Store, id agent.RunID, wait string) (Wait, error) {
	all, err := store.Waits(ctx, id)
	if err != nil {
		return Wait{}, fmt.Errorf("answering for run %s: %w", id, err)
	}
	if w, ok := lo.Find(all, func(w Wait) bool { return w.ID == wait }); ok {
		return w, nil
	}
	gates := lo.Filter(all, func(w Wait, _ int) bool {
		i, err := InterventionOf(w)
		_, isGate := GateOf(w, i)
		return err == nil && isGate && i.CallID() == wait
	})
	if len(gates) == 0 {
		return Wait{}, fmt.Errorf("answering %q of run %s: %w", wait, id, ErrNotFound)
	}
	open, _ := lo.Find(gates, func(w Wait) bool { return w.Answer == nil })
	return lo.Ternary(open.ID != "", open, gates[0]), nil
}
