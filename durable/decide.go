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
	"github.com/grapnel-go/grapnel/internal/invisible"
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
		if c.ID == "" {
			return nil, fmt.Errorf("recording the question about call %s: it has no ID: see agent.Intervention.WithID", c.CallID())
		}
		w := Wait{
			Run: n.Run.ID, ID: c.ID, Kind: WaitApproval, Subject: c.CallID(), Tool: c.Call.Name,
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
func gateID(i agent.Intervention, q agent.Question) string { return i.ID + "#" + q.By }

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
	return &Answer{Wait: w.ID, Subject: w.Subject, Ends: a.Verdict == agent.RejectAndEnd, By: by, Data: data}, nil
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
	told.Call.ID, told.At = r.Answer.Subject, r.At
	if len(r.Answer.Data) == 0 {
		return told, nil
	}
	var stored storedApproval
	if err := json.Unmarshal(r.Answer.Data, &stored); err != nil {
		return told, fmt.Errorf("reading audit record %d: %w", r.Seq, err)
	}
	told.Approval = stored.Approval
	told.At = r.At
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

// OpenQuestions returns the questions of an intervention that an answer to its wait can cover.
func OpenQuestions(w Wait, i agent.Intervention) agent.Questions { return questionsOf(w, i).Open() }

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

// NotOpenError is returned for an answer to a wait that is not open: nothing was recorded.
type NotOpenError struct {
	Run  agent.RunID
	Wait string
	// Err is ErrAnswered, ErrChanged or ErrExpired.
	Err error
	// Answers are the answers that the wait has had, in order: authors find their own among them if it was recorded.
	Answers []Answered
	// Asked are the waits for which the run waits now.
	Asked []Wait
}

func (e *NotOpenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "answering %s of run %s: %v", e.Wait, e.Run, e.Err)
	for _, a := range e.Answers {
		fmt.Fprintf(&b, "; %s by %s at %s", a.Verdict, cmp.Or(a.Identity, a.By, "a person"), a.At.UTC().Format(time.RFC3339))
	}
	for i, w := range e.Asked {
		b.WriteString(lo.Ternary(i == 0, "; now it asks ", ", ") + w.ID)
		if w.Tool != "" {
			b.WriteString(" (" + w.Tool + ")")
		}
	}
	return b.String()
}

// Unwrap returns Err.
func (e *NotOpenError) Unwrap() error { return e.Err }

// newNotOpenError returns the error for an answer to a wait that is not open. It has what can still be read.
func newNotOpenError(ctx context.Context, store AnswerStore, id agent.RunID, wait string, err error) error {
	e := &NotOpenError{Run: id, Wait: wait}
	f := AuditFilter{Kind: AuditAnswer, Run: id}
	for {
		records, err := store.AuditRecords(ctx, f)
		for _, r := range records {
			if told, broken := AnsweredOf(r); broken == nil && r.Answer.Wait == wait {
				e.Answers = append(e.Answers, told)
			}
		}
		if err != nil || len(records) < DefaultLimit {
			break
		}
		f.Before = records[len(records)-1].Seq
	}
	slices.Reverse(e.Answers)
	switch {
	case errors.Is(err, ErrAnswered):
		e.Err = ErrAnswered
	case errors.Is(err, ErrExpired):
		e.Err = ErrExpired
	default:
		e.Err = lo.Ternary(len(e.Answers) > 0, ErrAnswered, ErrChanged)
	}
	if all, err := store.Waits(ctx, id); err == nil {
		e.Asked = lo.Filter(all, func(w Wait, _ int) bool {
			return w.Answer == nil && w.ID != wait && w.Kind != WaitChild && w.Kind != WaitTime
		})
	}
	return e
}

// CheckAnswer returns a *NotAdmittedError when an answer to a wait would not count because of who gives it. It records
// nothing.
func CheckAnswer(ctx context.Context, store AnswerStore, w Wait, a agent.Approval) error {
	i, err := InterventionOf(w)
	if err != nil {
		return err
	}
	questions := questionsOf(w, i)
	var submitters []string
	if slices.ContainsFunc(questions, agent.Question.Restricted) { // others do not depend on them
		if submitters, err = submittersOf(ctx, store, w.Run); err != nil {
			return err
		}
	}
	if why := refuses(submitters, questions, a); why != "" {
		err = &NotAdmittedError{w.Run, w.ID, why}
	}
	return err
}

// AnswerStore is the part of a Store with which Decide explains its errors. Decide records an answer with the same value, which is an
// Answerer, as a Store is, or a Decider.
type AnswerStore interface {
	WaitLister
	AuditReader
}

// Decider is a store behind which another process checks and records answers, under the name of whom it knows the caller to be.
type Decider interface {
	Decide(ctx context.Context, w Wait, a agent.Approval) (Wait, error)
}

// Decide records an answer to a wait about a call, as the author saw it. The answer covers the questions that it names, or else those
// that were open in w. Everything is checked against the wait as it is stored. It returns
// the wait with the answer, which decides unless more people must answer. The errors are a *NotOpenError when the wait
// is answered, by this author or another, when the run does not ask that, or when its deadline has passed, so that its default
// answer counts; a *NotAdmittedError; and an *agent.ArgumentsError when changed arguments do not fit the tool, or the input
// does not fit what is asked for. Names and reasons of people that hide characters or are longer than 200 bytes and 8 KiB are refused too.
//
// A rejection answers all waits about the call. An approval by who submitted the job does not count for a question
// with approvers or a quorum.
func Decide(ctx context.Context, store AnswerStore, w Wait, a agent.Approval) (Wait, error) {
	fail := func(err error) (Wait, error) {
		return w, fmt.Errorf("answering %s of run %s: %w", w.ID, w.Run, err)
	}
	if len(a.Covers) == 0 {
		if len(w.Data) == 0 {
			return fail(errors.New("it names no questions: set Approval.Covers, or pass the wait as it was read"))
		}
		seen, err := InterventionOf(w)
		if err != nil {
			return w, err
		}
		if a.Covers = lo.Map(OpenQuestions(w, seen), questionID); len(a.Covers) == 0 {
			return w, newNotOpenError(ctx, store, w.Run, w.ID, ErrAnswered)
		}
	}
	local, ok := store.(Answerer)
	if elsewhere, isDecider := store.(Decider); isDecider {
		decided, err := elsewhere.Decide(ctx, w, a)
		if refused, ok := errors.AsType[*NotOpenError](err); ok {
			return w, newNotOpenError(ctx, store, w.Run, w.ID, refused.Err)
		}
		return decided, err
	}
	switch {
	case !ok:
		return fail(fmt.Errorf("a %T takes no answers", store))
	case a.Verdict > agent.Approve:
		return fail(fmt.Errorf("the verdict %q decides nothing: approve or reject the call", a.Verdict))
	case a.Author != agent.AuthorPerson && a.Author != agent.AuthorEvent:
		return fail(fmt.Errorf("its author is a %s: only people and events answer", a.Author))
	case a.Author == agent.AuthorPerson && a.Identity == "" && isReserved(a.By):
		return w, &NotAdmittedError{w.Run, w.ID, fmt.Sprintf("the name %q stands for a passed deadline: give another name", a.By)}
	}
	if a.Author == agent.AuthorPerson {
		err := cmp.Or(invisible.CheckName("the author's name", a.By+a.Identity), invisible.CheckText("the reason", a.Reason, invisible.MaxReason))
		if err != nil {
			return fail(err)
		}
	}
	submitters, err := submittersOf(ctx, store, w.Run)
	if err != nil {
		return w, err
	}
	var decided Wait
	err = local.Answer(ctx, w.Run, func(waits []Wait, now time.Time) (answers []Answer, err error) {
		decided, answers, err = formAnswers(waits, w.ID, a, submitters, now)
		return answers, err
	})
	_, isRefused := errors.AsType[*NotAdmittedError](err)
	switch {
	case errors.Is(err, ErrAnswered), errors.Is(err, ErrChanged), errors.Is(err, ErrExpired), errors.Is(err, ErrNotFound):
		return w, newNotOpenError(ctx, store, w.Run, w.ID, err)
	case isRefused: // it names the wait and the run
		return w, err
	case err != nil:
		return fail(err)
	}
	return decided, nil
}

// isReserved reports whether people read a name as the author of answers that a passed deadline gave.
func isReserved(name string) bool {
	shown := strings.Map(func(r rune) rune { return lo.Ternary(invisible.IsShown(r), r, -1) }, name)
	return strings.EqualFold(strings.TrimSpace(shown), "timeout")
}

// formAnswers returns the stored wait with that ID and an answer, and the answers to store.
func formAnswers(waits []Wait, id string, a agent.Approval, submitters []string, now time.Time) (w Wait, answers []Answer, err error) {
	w, ok := lo.Find(waits, func(w Wait) bool { return w.ID == id })
	switch {
	case !ok:
		return w, nil, ErrChanged
	case w.Answer != nil:
		return w, nil, ErrAnswered
	case !w.Deadline.IsZero() && !now.Before(w.Deadline):
		return w, nil, fmt.Errorf("%w, at %s", ErrExpired, w.Deadline.UTC().Format(time.RFC3339))
	}
	i, err := InterventionOf(w)
	if err != nil {
		return w, nil, err
	}
	questions := questionsOf(w, i)
	if a.Covers, err = coveredBy(questions, a.Covers); err != nil {
		return w, nil, err
	}
	if a.Verdict == agent.Approve && a.Arguments != "" && a.Arguments != i.Call.Arguments && lo.Every(a.Covers, lo.Map(questions.Open(), questionID)) {
		a.Covers = lo.Map(questions, questionID) // it voids earlier answers
	}
	switch {
	case i.CheckInput(a) != nil:
		return w, nil, i.CheckInput(a)
	case !i.Takes(a):
		return w, nil, errors.New("its arguments cannot be changed: approve it unchanged, or reject it")
	}
	if err := checkArguments(i, a); err != nil {
		return w, nil, err
	}
	if why := refuses(submitters, questions, a); why != "" {
		if hasAnswered(questions, a) {
			return w, nil, ErrAnswered
		}
		return w, nil, &NotAdmittedError{w.Run, w.ID, why}
	}
	answer, err := newAnswer(w, i, a)
	if err != nil {
		return w, nil, err
	}
	answers = []Answer{*answer}
	if a.Verdict != agent.Approve {
		for _, other := range waits {
			if other.ID == w.ID || other.Answer != nil || !sameCall(other, i) {
				continue
			}
			also, err := newAnswer(other, i, a)
			if err != nil {
				return w, nil, err
			}
			answers = append(answers, *also)
		}
	}
	if answer.More = questionsOf(w, i.WithAnswer(a)).Decision() == nil; answer.More {
		answers[0].More = true
		w.Partial = append(slices.Clip(w.Partial), *answer)
	} else {
		w.Answer = answer
	}
	return w, answers, nil
}

func questionID(q agent.Question, _ int) string { return q.ID() }

// coveredBy returns the IDs of the open questions among those that an answer names. It returns ErrChanged when the answer names another
// question, and ErrAnswered when none of the named ones is open.
func coveredBy(questions agent.Questions, named []string) ([]string, error) {
	open := lo.Intersect(lo.Map(questions.Open(), questionID), named)
	switch {
	case !lo.Every(lo.Map(questions, questionID), named):
		return nil, ErrChanged
	case len(open) == 0:
		return nil, ErrAnswered
	}
	return open, nil
}

// hasAnswered reports whether the author of an approval has approved before: the same answer counts once.
func hasAnswered(questions agent.Questions, a agent.Approval) bool {
	return a.Identity != "" && a.Verdict == agent.Approve && slices.ContainsFunc(questions.Answers(), func(known agent.Approval) bool {
		return known.Identity == a.Identity && known.Verdict == agent.Approve
	})
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

// sameCall reports whether a wait is about the question of an intervention: it stands for people, or for a gate.
func sameCall(w Wait, i agent.Intervention) bool {
	_, gate := GateOf(w, i)
	return gate || w.ID == i.ID
}

// refuses returns why an answer counts for none of the questions; empty when it counts.
func refuses(submitters []string, questions agent.Questions, a agent.Approval) string {
	open := questions.Open()
	restricted := slices.ContainsFunc(open, agent.Question.Restricted)
	if restricted && a.Verdict == agent.Approve && a.Identity != "" && slices.Contains(submitters, a.Identity) {
		return a.Identity + " has submitted the run and cannot approve it"
	}
	if after := questions.WithAnswer(a); len(open) == 0 || !sameAnswers(questions, after) {
		return ""
	}
	if hasAnswered(open, a) {
		return a.Identity + " has approved it already"
	}
	needs := lo.Uniq(lo.Map(open, func(q agent.Question, _ int) string {
		if q.Gate != nil {
			return fmt.Sprintf("%s (gate %s): people can only reject it", q.Needs(), q.By)
		}
		return q.Needs()
	}))
	return strings.Join(needs, "; ")
}

// submittersOf returns who submitted a run, and the topmost run above it.
func submittersOf(ctx context.Context, store AnswerStore, id agent.RunID) ([]string, error) {
	about, err := store.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("looking for who submitted run %s: %w", id, err)
	}
	by := []string{about.By}
	if about.Root != "" && about.Root != id {
		root, err := store.Run(ctx, about.Root)
		if err != nil && !errors.Is(err, ErrNotFound) { // the run above may be deleted, or in no store
			return nil, fmt.Errorf("looking for who submitted run %s: %w", about.Root, err)
		}
		by = append(by, root.By)
	}
	return lo.Compact(by), nil
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

// Approve records an answer to one of the waits of a run, by its ID: see FindWait and Decide.
func Approve(ctx context.Context, store AnswerStore, id agent.RunID, wait string, a agent.Approval) error {
	w, err := FindWait(ctx, store, id, wait)
	if err != nil {
		return err
	}
	_, err = Decide(ctx, store, w, a)
	return err
}

// FindWait returns the wait of a run with an ID. The agent.Intervention.ID of a call about which only gates ask stands for the
// first of their waits that is open: rejecting one rejects all of them. It returns a *NotOpenError when the run does not ask that.
func FindWait(ctx context.Context, store AnswerStore, id agent.RunID, wait string) (Wait, error) {
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
		return err == nil && isGate && i.ID == wait
	})
	if len(gates) == 0 {
		return Wait{}, newNotOpenError(ctx, store, id, wait, ErrChanged)
	}
	open, _ := lo.Find(gates, func(w Wait) bool { return w.Answer == nil })
	return lo.Ternary(open.ID != "", open, gates[0]), nil
}
