package durable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

// Questions of the tests below.
var (
	plain     = agent.Question{By: "plain"}
	twoPeople = agent.Question{By: "two", Quorum: 2}
	finance   = agent.Question{By: "finance", Approvers: []string{"ann", "finance"}}
	gate      = agent.Question{Kind: agent.QuestionGate, By: "gate", Gate: &agent.Gate{Kind: "file", Host: "h"}}
)

// ask makes a run that waits for decisions about calls c, d, …, each with one of the lists of questions.
func ask(t *testing.T, store durable.Store, j durable.Job, asked ...agent.Questions) {
	t.Helper()
	n := durable.Notice{Run: agent.Run{ID: j.ID}}
	for i, questions := range asked {
		call := agent.ToolCall{ID: string(rune('c' + i)), Name: "pay", Arguments: `{"Cents":1}`}
		n.Calls = append(n.Calls, durable.WaitingCall{Intervention: agent.Intervention{
			ID: call.ID, Original: call, Call: call, Questions: questions, Asked: time.Now(), Deadline: time.Now().Add(time.Hour),
		}})
	}
	waits, err := durable.WaitsOf(n)
	require.NoError(t, err)
	l, err := store.Begin(t.Context(), j, "one", time.Hour)
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: waits}}))
	require.NoError(t, store.Release(t.Context(), l, 0))
}

func approval(identity string, roles ...string) agent.Approval {
	return agent.Approval{Verdict: agent.Approve, By: "typed", Identity: identity, Roles: roles}
}

func rejection(identity string) agent.Approval {
	return agent.Approval{Verdict: agent.RejectAndContinue, By: "typed", Identity: identity}
}

// waitsOf returns the waits of a run by their IDs.
func waitsOf(t *testing.T, store durable.Store, id agent.RunID) map[string]durable.Wait {
	t.Helper()
	all, err := store.Waits(t.Context(), id)
	require.NoError(t, err)
	waits := map[string]durable.Wait{}
	for _, w := range all {
		waits[w.ID] = w
	}
	return waits
}

func requireStatus(t *testing.T, store durable.Store, id agent.RunID, want durable.Status) {
	t.Helper()
	r, err := store.Run(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, r.Status)
}

func TestDecideCountsIdentities(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{twoPeople, plain})
	approve := func(a agent.Approval) error { return durabletest.Approve(t.Context(), store, "r", "c", a) }
	refused := new(durable.NotAdmittedError)

	w, err := durable.Decide(t.Context(), store, waitsOf(t, store, "r")["c"], approval("ann"))
	require.NoError(t, err)
	assert.Len(t, w.Partial, 1)
	assert.Nil(t, w.Answer)
	used := new(durable.NotOpenError)
	require.ErrorAs(t, approve(approval("ann")), &used, "the same answer again")
	require.ErrorIs(t, used, durable.ErrAnswered)
	require.Len(t, used.Answers, 1, "its author sees that it was recorded")
	assert.Equal(t, []any{"ann", agent.Approve}, []any{used.Answers[0].Identity, used.Answers[0].Verdict})
	assert.False(t, used.Answers[0].At.IsZero())
	require.ErrorAs(t, approve(approval("")), &refused, "typed names do not count")
	require.EqualError(t, approve(approval("")), refused.Error(), "nothing repeats the wait and the run")
	assert.Contains(t, refused.Why, "it needs 2 approvals, by people whose identity is verified")
	requireStatus(t, store, "r", durable.StatusWaiting)

	require.NoError(t, approve(approval("bob")))
	requireStatus(t, store, "r", durable.StatusReady)
	require.ErrorIs(t, approve(approval("cid")), durable.ErrAnswered)
	i, err := durable.InterventionOf(waitsOf(t, store, "r")["c"])
	require.NoError(t, err)
	require.NotNil(t, i.Answer())
	assert.Equal(t, agent.Approve, i.Answer().Verdict)
	records, err := store.AuditRecords(t.Context(), durable.AuditFilter{Run: "r"})
	require.NoError(t, err)
	require.Len(t, records, 2)
	assert.Equal(t, []any{"bob", false, "ann", true, "pay"}, []any{records[0].By, records[0].Answer.More, records[1].By, records[1].Answer.More, records[1].Subject})
}

// LH-66, X-14
func TestDecideAdmitsApprovers(t *testing.T) {
	for name, c := range map[string]struct {
		answer agent.Approval
		counts bool
	}{
		"by name": {approval("ann"), true}, "by role": {approval("bob", "staff", "finance"), true}, "another role": {approval("bob", "staff"), false},
		"not verified": {approval("", "finance"), false}, "a rejection": {rejection("ann"), true}, "a rejection of another": {rejection("bob"), false},
		"the approver of another question": {agent.Approval{Verdict: agent.Approve, By: "ann"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			ask(t, store, durable.Job{ID: "r"}, agent.Questions{finance})
			err := durabletest.Approve(t.Context(), store, "r", "c", c.answer)
			if c.counts {
				require.NoError(t, err)
				requireStatus(t, store, "r", durable.StatusReady)
				return
			}
			refused := new(durable.NotAdmittedError)
			require.ErrorAs(t, err, &refused)
			assert.Contains(t, refused.Why, "it needs an approval by ann, finance")
			assert.Empty(t, waitsOf(t, store, "r")["c"].Answers())
		})
	}
}

// An answer counts for the questions that admit it; the others stay open.
func TestDecideWithSeveralQuestions(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{plain, finance, {By: "legal", Approvers: []string{"legal"}}})
	for i, a := range []agent.Approval{{Verdict: agent.Approve, By: "typed"}, approval("bob", "finance"), approval("cid", "legal")} {
		requireStatus(t, store, "r", durable.StatusWaiting)
		w, err := durable.Decide(t.Context(), store, waitsOf(t, store, "r")["c"], a)
		require.NoError(t, err)
		assert.Len(t, w.Answers(), i+1)
	}
	requireStatus(t, store, "r", durable.StatusReady)
}

//
func TestDecideOwnJob(t *testing.T) {
	for name, job := range map[string]durable.Job{
		"submitted": {ID: "r", By: "ann"}, "below a run that was submitted": {ID: "r", Parent: "parent", Root: "root"},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			_, err := store.Submit(t.Context(), durable.Job{ID: "root", By: "ann"})
			require.NoError(t, err)
			ask(t, store, job, agent.Questions{finance}, agent.Questions{twoPeople}, agent.Questions{plain}, agent.Questions{finance})
			for _, call := range []string{"c", "d"} {
				err := durabletest.Approve(t.Context(), store, "r", call, approval("ann", "finance"))
				require.ErrorAs(t, err, new(*durable.NotAdmittedError))
				require.ErrorContains(t, err, "ann has submitted the run and cannot approve it")
			}
			require.NoError(t, durabletest.Approve(t.Context(), store, "r", "e", approval("ann")), "a question without approvers")
			require.NoError(t, durabletest.Approve(t.Context(), store, "r", "f", rejection("ann")))
			require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c", approval("bob", "finance")))
		})
	}
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r", Root: "deleted"}, agent.Questions{finance})
	require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c", approval("ann")))
}

func TestDecideRejectsTheCall(t *testing.T) {
	store := openStore(t)
	other := agent.Question{Kind: agent.QuestionGate, By: "other", Gate: &agent.Gate{Kind: "callback"}}
	for id, by := range map[agent.RunID]struct {
		wait   string
		answer agent.Approval
	}{
		"person": {"c", rejection("ann")}, "person at the gate": {"c#gate", rejection("")},
		"gate": {"c#gate", agent.Approval{Verdict: agent.RejectAndContinue, By: "file", Author: agent.AuthorEvent}},
	} {
		ask(t, store, durable.Job{ID: id}, agent.Questions{twoPeople, gate, other}, agent.Questions{plain, gate})
		require.NoError(t, durabletest.Approve(t.Context(), store, id, by.wait, by.answer), id)
		waits := waitsOf(t, store, id)
		for _, wait := range []string{"c", "c#gate", "c#other"} {
			require.NotNil(t, waits[wait].Answer, "%s: %s", id, wait)
			require.ErrorIs(t, durabletest.Approve(t.Context(), store, id, wait, approval("bob")), durable.ErrAnswered)
		}
		assert.Nil(t, waits["d"].Answer, "another call")
		assert.Nil(t, waits["d#gate"].Answer, "another call")
		requireStatus(t, store, id, durable.StatusWaiting)
		end := agent.Approval{Verdict: agent.RejectAndEnd}
		require.NoError(t, durabletest.Approve(t.Context(), store, id, "d", end))
		requireStatus(t, store, id, durable.StatusReady)
	}
}

func TestDecideGate(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{plain, gate})
	waits := waitsOf(t, store, "r")
	require.Len(t, waits, 2)
	assert.Equal(t, []any{durable.WaitFile, "h", durable.WaitApproval, ""}, []any{waits["c#gate"].Kind, waits["c#gate"].Host, waits["c"].Kind, waits["c"].Host})
	opens := agent.Approval{Verdict: agent.Approve, By: "file", Author: agent.AuthorEvent}
	for name, err := range map[string]error{
		"a person":            durabletest.Approve(t.Context(), store, "r", "c#gate", approval("ann")),
		"a gate for a person": durabletest.Approve(t.Context(), store, "r", "c", opens),
	} {
		require.ErrorAs(t, err, new(*durable.NotAdmittedError), name)
	}
	other := opens
	other.Covers = []string{plain.ID()}
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, "r", "c#gate", other), durable.ErrChanged, "another question")
	require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c", approval("")))
	requireStatus(t, store, "r", durable.StatusWaiting)
	require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c#gate", opens))
	requireStatus(t, store, "r", durable.StatusReady)

	ask(t, store, durable.Job{ID: "only a gate"}, agent.Questions{gate})
	require.Len(t, waitsOf(t, store, "only a gate"), 1)
	require.NoError(t, durabletest.Approve(t.Context(), store, "only a gate", "c#gate", opens))
	requireStatus(t, store, "only a gate", durable.StatusReady)
}

// Of many who answer at once what they saw without any answer, as many count as must, and no answer is lost.
func TestDecideAtOnce(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{{By: "three", Quorum: 3}})
	seen := waitsOf(t, store, "r")["c"]
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { _, errs[i] = durable.Decide(t.Context(), store, seen, approval(fmt.Sprint("person ", i))) })
	}
	group.Wait()
	counted := 0
	for _, err := range errs {
		if err == nil {
			counted++
			continue
		}
		require.ErrorIs(t, err, durable.ErrAnswered)
	}
	assert.Equal(t, 3, counted)
	w := waitsOf(t, store, "r")["c"]
	assert.Len(t, w.Partial, 2)
	assert.NotNil(t, w.Answer)
}

// between calls something before an answer is recorded.
type between struct {
	durable.Store

	do func()
}

func (b *between) Answer(ctx context.Context, id agent.RunID, form durable.AnswerFunc) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Store.Answer(ctx, id, form)
}

// A rejection stands even when another wait about the call is decided at the same time.
func TestDecideRejectionAndGateAtOnce(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{plain, gate})
	w := waitsOf(t, store, "r")["c"]
	slow := &between{store, func() {
		require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c#gate", agent.Approval{Verdict: agent.Approve, Author: agent.AuthorEvent}))
	}}
	_, err := durable.Decide(t.Context(), slow, w, rejection("ann"))
	require.NoError(t, err)
	requireStatus(t, store, "r", durable.StatusReady)
	i, err := durable.InterventionOf(waitsOf(t, store, "r")["c"])
	require.NoError(t, err)
	require.NotNil(t, i.Answer())
	assert.Equal(t, agent.RejectAndContinue, i.Answer().Verdict)

	ask(t, store, durable.Job{ID: "s"}, agent.Questions{plain, gate})
	w = waitsOf(t, store, "s")["c"]
	slow.do = func() { require.NoError(t, durabletest.Approve(t.Context(), store, "s", "c", approval("bob"))) }
	_, err = durable.Decide(t.Context(), slow, w, rejection("ann"))
	require.ErrorIs(t, err, durable.ErrAnswered, "the same wait was decided first")
}

func TestDecideRefuses(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{plain}, agent.Questions{twoPeople}, agent.Questions{plain, gate})
	waits := waitsOf(t, store, "r")
	changed, unreadable := waits["c"], waits["c"]
	changed.ID = "c in another round"
	unreadable.Data = []byte("?")
	another := approval("ann")
	another.Covers = []string{twoPeople.ID()}
	forged := agent.Approval{Verdict: agent.Approve, Author: agent.AuthorDeadline}
	edited := approval("ann")
	edited.Arguments = `{"Cents":2}`
	for name, c := range map[string]struct {
		wait   durable.Wait
		answer agent.Approval
		is     error
		says   string
	}{
		"the name of a passed deadline": {waits["c"], agent.Approval{Verdict: agent.Approve, By: "timeout"}, nil, `the name "timeout" stands for a passed deadline`},
		"that name spelled otherwise":   {waits["c"], agent.Approval{Verdict: agent.Approve, By: " Time\u00adOut\n"}, nil, "stands for a passed deadline"},
		"a name that hides characters":  {waits["c"], approval("ann\u202etxt"), nil, "the author's name must be UTF-8"},
		"a reason with a tag character": {waits["c"], agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "no\U000e0041"}, nil, "the reason must be"},
		"a reason for the terminal":     {waits["c"], agent.Approval{Verdict: agent.RejectAndEnd, By: "ann", Reason: "no\x1b[2J"}, nil, "the reason must be"},
		"as a deadline":                 {waits["d"], forged, nil, "only people and events answer"},
		"a call that has changed":       {changed, approval("ann"), durable.ErrChanged, "now it asks c (pay), d (pay)"},
		"a question that is not asked":  {waits["c"], another, durable.ErrChanged, ""},
		"a question that is damaged":    {unreadable, approval("ann"), nil, "reading the question about call c of run r"},
		"other arguments for a quorum":  {waits["d"], edited, nil, "its arguments cannot be changed"},
		"other arguments at a gate":     {waits["e"], edited, nil, "its arguments cannot be changed"},
		"an answer for later":           {waits["e"], agent.Approval{Verdict: agent.Park}, nil, "decides nothing"},
		"no person to ask":              {waits["e"], agent.Approval{Verdict: agent.NobodyToAsk}, nil, "decides nothing"},
		"an undefined verdict":          {waits["e"], agent.Approval{Verdict: 99}, nil, "decides nothing"},
	} {
		_, err := durable.Decide(t.Context(), store, c.wait, c.answer)
		require.ErrorContains(t, err, c.says, name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is, name)
		}
	}
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, "r", "unknown", approval("ann")), durable.ErrChanged)
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, "unknown", "c", approval("ann")), durable.ErrNotFound)
	for id, w := range waitsOf(t, store, "r") {
		assert.Empty(t, w.Answers(), id)
	}
	require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c", edited), "one person may edit")
	away := &half{Store: store, runs: 0}
	require.ErrorIs(t, durabletest.Approve(t.Context(), away, "r", "d", approval("ann")), errAway, "who submitted it is not known")
}

// What is stored counts, not what the caller has of it: its deadline, its answers, and that the run waits.
func TestDecideChecksWhatIsStored(t *testing.T) {
	store := openStore(t)
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{plain}, agent.Questions{plain})
	seen := waitsOf(t, store, "r")
	l, err := store.Acquire(t.Context(), "r", "two", time.Hour, durable.TakeFree)
	require.NoError(t, err)
	late := seen["c"]
	late.Deadline = time.Now().Add(-time.Second)
	late.ID = "late"
	require.NoError(t, store.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{late, seen["d"]}}}))
	late.Deadline = time.Time{}
	_, err = durable.Decide(t.Context(), store, late, approval("ann"))
	require.ErrorIs(t, err, durable.ErrExpired)
	_, err = durable.Decide(t.Context(), store, seen["c"], approval("ann"))
	require.ErrorIs(t, err, durable.ErrChanged, "the run asks something else about that call")
	_, err = durable.Decide(t.Context(), store, durable.Wait{Run: "r", ID: "d"}, approval("ann"))
	require.ErrorContains(t, err, "names no questions")
	named := approval("ann")
	named.Covers = []string{plain.ID()}
	_, err = durable.Decide(t.Context(), store, durable.Wait{Run: "r", ID: "d"}, named)
	require.NoError(t, err, "the IDs suffice")
	_, err = durable.Decide(t.Context(), store, seen["d"], approval("ann"))
	require.ErrorIs(t, err, durable.ErrAnswered)
	assert.Empty(t, waitsOf(t, store, "r")["late"].Answers())
}

// An answer covers the questions that it names.
func TestDecideCovers(t *testing.T) {
	store := openStore(t)
	other := agent.Question{By: "other", Reason: "and that?"}
	ask(t, store, durable.Job{ID: "r"}, agent.Questions{plain, other})
	some := approval("ann")
	some.Covers = []string{plain.ID()}
	w, err := durable.Decide(t.Context(), store, waitsOf(t, store, "r")["c"], some)
	require.NoError(t, err)
	assert.Nil(t, w.Answer, "the other question is open")
	require.ErrorIs(t, durabletest.Approve(t.Context(), store, "r", "c", some), durable.ErrAnswered, "again")
	requireStatus(t, store, "r", durable.StatusWaiting)
	some.Covers = []string{other.ID()}
	require.NoError(t, durabletest.Approve(t.Context(), store, "r", "c", some))
	requireStatus(t, store, "r", durable.StatusReady)
}
