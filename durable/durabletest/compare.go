package durabletest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// compare requires that the store and the model have the same runs.
func (r *random) compare() {
	for time.Now().Truncate(time.Microsecond).Compare(r.model.at) <= 0 {
		time.Sleep(time.Microsecond) // each call of the model has a time of its own
	}
	for _, f := range []durable.Filter{
		{}, {Status: []durable.Status{durable.StatusReady}}, {Name: "x"}, {Label: durable.Label{Name: "team", Value: "red"}}, {Blocked: true},
	} {
		got, err := r.store.List(r.ctx, f)
		require.NoError(r, err)
		want, err := r.model.List(r.ctx, f)
		require.NoError(r, err)
		require.Equal(r, runIDs(want), runIDs(got), "list %+v", f)
	}
	for _, id := range randomIDs {
		if r.model.findRun(id) != nil {
			require.Equal(r, describe(r, r.model, id), describe(r, r.store, id), "run %q", id)
		}
	}
	for _, owner := range randomOwners {
		require.Equal(r, describeSignals(r, r.model, owner), describeSignals(r, r.store, owner), "signals for %q", owner)
	}
	require.ElementsMatch(r, describeOffers(r, r.model), describeOffers(r, r.store), "owed offers")
	require.Equal(r, describeServed(r, r.model), describeServed(r, r.store), "backlog")
	require.Equal(r, describeOpenWaits(r, r.model), describeOpenWaits(r, r.store), "open waits")
	require.Equal(r, describeRecords(r, r.model), describeRecords(r, r.store), "audit records and waivers")
	require.Equal(r, describeDocuments(r, r.model), describeDocuments(r, r.store), "documents")
}

// describe returns what two stores must agree on: not the times of their clocks.
func describe(r *random, s durable.Store, id agent.RunID) []string {
	run, err := s.Run(r.ctx, id)
	require.NoError(r, err)
	input, err := s.Input(r.ctx, id)
	require.NoError(r, err)
	submitted, err := s.SubmittedInput(r.ctx, id)
	require.NoError(r, err)
	result, err := s.Result(r.ctx, id)
	require.NoError(r, err)
	lines := []string{
		fmt.Sprintf("status %s, reason %q, blocked %v, paused %v, cancelled %q by %q", run.Status, run.Reason, run.Blocked, run.Paused, run.CancelReason, run.CancelCause),
		fmt.Sprintf("job %s %q %q %v %v %d %q %q %q",
			run.Kind, run.Name, run.Parent, run.Labels, run.Demands, run.Priority, run.IdempotencyKey, run.Root, input),
		fmt.Sprintf("phase %q, submitted %q", run.Phase, submitted),
		fmt.Sprintf("steps %d, attempts %d, entries %d, events %d, result %q", run.Steps, run.Attempts, run.Entries, run.Events, result),
		fmt.Sprintf("owner %q, epoch %d, ready %v", run.Owner, run.Epoch, !run.Ready.IsZero()),
		fmt.Sprintf("not before %v, start by %v, deadline %v, answer by %v",
			describeTime(run.NotBefore), describeTime(run.StartBy), describeTime(run.Deadline), describeTime(run.AnswerBy)),
	}
	waits, err := s.Waits(r.ctx, id)
	require.NoError(r, err)
	for _, w := range waits {
		lines = append(lines,
			fmt.Sprintf("%s wait %q by %v, child %q, host %q, token %d", w.Kind, w.ID, describeTime(w.Deadline), w.Child, w.Host, w.TokenHash[0]))
		for i, a := range w.Answers() {
			lines = append(lines, fmt.Sprintf("answer %d to wait %q: %q by %q, more %v, ends %v", i, w.ID, a.Data, a.By, a.More, a.Ends))
		}
	}
	entries, err := s.Entries(r.ctx, id, 0)
	require.NoError(r, err)
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("entry %d %q", e.Seq, e.Data))
	}
	events, err := s.Events(r.ctx, id, 0, 1000)
	require.NoError(r, err)
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("event %d %q", e.Seq, e.Name))
	}
	return lines
}

// describeTime returns a time to the day: those that a store sets are an hour from now.
func describeTime(t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case t.Equal(longAgo()):
		return "long ago"
	case t.Equal(later()):
		return "later"
	}
	return "soon"
}

func describeSignals(r *random, s durable.Store, owner string) map[agent.RunID][]string {
	signals, err := s.Signals(r.ctx, owner)
	require.NoError(r, err)
	all := map[agent.RunID][]string{}
	for _, g := range signals {
		line := fmt.Sprintf("%d %s %q", g.Seq, g.Kind, g.Text)
		all[g.Run] = append(all[g.Run], line)
	}
	return all
}

func describeOffers(r *random, s durable.Store) []string {
	offers, err := s.Owed(r.ctx, hour, 100)
	require.NoError(r, err)
	lines := []string{}
	for _, o := range offers {
		lines = append(lines, fmt.Sprintf("%s %d %x %d", o.Run, o.Seq, o.Key, o.Priority))
	}
	return lines
}

func describeServed(r *random, s durable.Store) map[string]int {
	backlog := map[string]int{}
	for _, name := range randomNames {
		all, err := s.QueueServices(r.ctx, keyOf(durable.Job{Name: name}))
		require.NoError(r, err)
		for _, service := range all {
			if service.Backlog > 0 { // a store may forget a queue that no run has any more
				backlog[name] = service.Backlog
			}
		}
	}
	return backlog
}

func describeOpenWaits(r *random, s durable.Store) [][]string {
	var lists [][]string
	after := newWait("2")
	after.Run = "b"
	for _, f := range []durable.WaitFilter{
		{}, {Kinds: []durable.WaitKind{durable.WaitFile, durable.WaitApproval}}, {Run: "a"}, {Expired: true}, {Limit: 2}, {After: &after},
	} {
		all, err := s.OpenWaits(r.ctx, f)
		require.NoError(r, err)
		lists = append(lists, waitNames(all))
	}
	return lists
}

func describeRecords(r *random, s durable.Store) (lines []string) {
	records, err := s.AuditRecords(r.ctx, durable.AuditFilter{})
	require.NoError(r, err)
	for _, record := range records {
		line := fmt.Sprintf("%s of run %q, %q by %q", record.Kind, record.Run, record.Subject, record.By)
		if a := record.Answer; a != nil {
			line += fmt.Sprintf(": %q %q %q more %v, ends %v", a.Wait, a.Subject, a.Data, a.More, a.Ends)
		}
		lines = append(lines, line)
	}
	for _, all := range []bool{true, false} {
		waivers, err := s.Waivers(r.ctx, all)
		require.NoError(r, err)
		for _, w := range waivers {
			lines = append(lines, fmt.Sprintf("waiver %q by %q, revoked %v by %q, %q", w.ID, w.By, !w.Revoked.IsZero(), w.RevokedBy, w.Data))
		}
	}
	return lines
}

func describeDocuments(r *random, s durable.Store) (lines []string) {
	all, err := s.ListDocuments(r.ctx, "blueprint", "", 10)
	require.NoError(r, err)
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("document %q %d by %q: %q", d.Name, d.Version, d.By, d.Data))
		for version := range d.Version {
			old, err := s.Document(r.ctx, d.Kind, d.Name, version+1)
			require.NoError(r, err)
			lines = append(lines, fmt.Sprintf("version %d: %q", old.Version, old.Data))
		}
	}
	return lines
}
