package coordinator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

const (
	// retryAfter is how long a run that cannot be read stays with no runner.
	retryAfter = 30 * time.Second
	// pollInterval is how often a runner that waits for work looks when the store reports no change.
	pollInterval = time.Second
)

// RemoteRunner is a runner on another machine. It sees only runs that it holds: for others, its methods return durable.ErrStale.
type RemoteRunner struct {
	c     *Coordinator
	owner string
}

// RemoteRunner returns the runner with a name in leases.
func (c *Coordinator) RemoteRunner(owner string) RemoteRunner { return RemoteRunner{c, owner} }

// Claim waits for signals and runs.
func (r RemoteRunner) Claim(ctx context.Context, in wire.ClaimRequest) (wire.Claim, error) {
	c := r.c
	out := wire.Claim{Protocol: wire.RunnerProtocol, Runs: []wire.ClaimedRun{}, Signals: []durable.Signal{}}
	labels := map[string]string{labelRunner: runnerLabel}
	for _, text := range in.Labels {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return out, &InvalidError{[]FieldError{{"label", fmt.Sprintf("%q: expected NAME=VALUE", text)}}}
		}
		labels[name] = value
	}
	if err := r.recordWorker(ctx, labels, in); err != nil {
		return out, err
	}
	wait, cancel := context.WithTimeout(ctx, time.Duration(in.WaitSeconds)*time.Second)
	defer cancel()
	changes := c.store.Changes(wait)
	for {
		signals, err := c.store.Signals(ctx, r.owner)
		if err != nil {
			return out, err
		}
		out.Signals, out.SignalsTag = append([]durable.Signal{}, signals...), tagOf(signals)
		if out.SignalsTag != in.SignalsTag {
			return out, nil
		}
		if in.Limit > 0 {
			err := r.claimNow(ctx, &out, labels, in)
			if ctx.Err() != nil { // the runner has gone, and the runs are for others
				for _, claimed := range out.Runs {
					err = errors.Join(err, c.store.Release(context.WithoutCancel(ctx), claimed.Stored.Lease(), 0))
				}
			}
			if err != nil || len(out.Runs) > 0 {
				return out, err
			}
		}
		timer := time.NewTimer(pollInterval)
		select {
		case <-wait.Done():
			timer.Stop()
			return out, nil
		case <-timer.C:
		case _, open := <-changes:
			if timer.Stop(); !open {
				return out, nil
			}
		}
	}
}

// tagOf returns a text that is equal for equal signals; empty for none.
func tagOf(signals []durable.Signal) string {
	if len(signals) == 0 {
		return ""
	}
	text, _ := json.Marshal(signals) //nolint:errchkjson // texts, numbers and times can always be written
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// claimNow claims runs that are ready.
func (r RemoteRunner) claimNow(ctx context.Context, out *wire.Claim, labels map[string]string, in wire.ClaimRequest) error {
	c := r.c
	queues, err := c.store.Queues(ctx)
	if err != nil {
		return err
	}
	var keys []durable.Key
	for _, n := range queues {
		if servesNeeds(n, labels, in.Types) {
			keys = append(keys, n.Key())
		}
	}
	if err := c.store.RecordPoll(ctx, keys...); err != nil {
		return err
	}
	runs, err := c.store.Claim(ctx, r.owner, time.Duration(in.LeaseSeconds)*time.Second, in.Limit, keys...)
	if err != nil {
		return err
	}
	var wrong []error
	for _, run := range runs { // one that cannot be read does not keep the runner from the others
		claimed, err := c.claimedRun(ctx, run)
		if err != nil {
			wrong = append(wrong, err, c.store.Release(context.WithoutCancel(ctx), run.Lease(), retryAfter))
			continue
		}
		claimed.LeaseSeconds = in.LeaseSeconds
		out.Runs = append(out.Runs, claimed)
	}
	if len(out.Runs) > 0 {
		return nil
	}
	return errors.Join(wrong...)
}

// servesNeeds reports whether a runner with labels executes runs with the given needs.
func servesNeeds(n durable.Needs, labels map[string]string, types []string) bool {
	kind := map[durable.Kind]wire.Type{durable.KindAgent: wire.Autonomous, durable.KindCommand: wire.Procedural}[n.Kind]
	if kind == "" || n.Demands[labelRunner] != runnerLabel || len(types) > 0 && !slices.Contains(types, string(kind)) {
		return false
	}
	for name, value := range n.Demands {
		if own, ok := labels[name]; !ok || own != value {
			return false
		}
	}
	return true
}

// claimedRun returns a run as runners get it.
func (c *Coordinator) claimedRun(ctx context.Context, r durable.Run) (wire.ClaimedRun, error) {
	b, err := c.blueprintOf(ctx, r)
	if err != nil {
		return wire.ClaimedRun{}, err
	}
	input, err := c.store.Input(ctx, r.ID)
	if err != nil {
		return wire.ClaimedRun{}, err
	}
	params, err := parametersOf(r.Kind, input)
	if err != nil {
		return wire.ClaimedRun{}, err
	}
	begun, err := c.hasBegun(ctx, r)
	if err != nil {
		return wire.ClaimedRun{}, err
	}
	answers, err := c.answersOf(ctx, r)
	return wire.ClaimedRun{
		RunID: r.ID, SessionID: r.Session, AgentName: r.Name, Type: b.Type, Attempt: r.Attempts, Begun: begun, Epoch: r.Epoch, Parameters: params,
		Blueprint: b, Stored: r, Answers: answers,
	}, err
}

// hasBegun reports whether a runner has begun to execute a run.
func (c *Coordinator) hasBegun(ctx context.Context, r durable.Run) (bool, error) {
	if r.Attempts <= 1 {
		return false, nil
	}
	entries, err := c.store.Entries(ctx, r.ID, 0)
	begun := false
	for _, e := range entries {
		switch e.Kind {
		case durable.EntryBegin, durable.EntryCall, entryStarted:
			begun = true
		case entryParked: // its program had ended
			begun = false
		}
	}
	return begun, err
}

// Run returns a run. Of one that the runner does not hold it has only how it has ended.
func (r RemoteRunner) Run(ctx context.Context, id agent.RunID) (wire.ClaimedRun, error) {
	run, err := r.c.FindRun(ctx, id)
	switch {
	case err != nil:
		return wire.ClaimedRun{}, err
	case run.Owner == r.owner:
		return r.c.claimedRun(ctx, run)
	}
	return wire.ClaimedRun{RunID: id, Stored: durable.Run{ID: id, Kind: run.Kind, Name: run.Name, Status: run.Status, Epoch: run.Epoch}}, nil
}

// Blueprint returns a blueprint version if the runner holds a run of it. Otherwise it returns durable.ErrNotFound: a blueprint may hold secrets.
func (r RemoteRunner) Blueprint(ctx context.Context, name string, version int64) (wire.Stored, error) {
	f := durable.Filter{Status: []durable.Status{durable.StatusRunning}, Name: name, Limit: maxRuns}
	for {
		list, err := r.c.store.List(ctx, f)
		if err != nil {
			return wire.Stored{}, err
		}
		if slices.ContainsFunc(list, func(run durable.Run) bool { return run.Owner == r.owner && run.Version == versionText(version) }) {
			return r.c.Blueprint(ctx, name, version)
		}
		if len(list) < maxRuns {
			return wire.Stored{}, durable.ErrNotFound
		}
		f.Before = list[len(list)-1].ID
	}
}

// maxRuns is the number of runs that are read at a time.
const maxRuns = 1000

// find returns a run that the runner holds.
func (r RemoteRunner) find(ctx context.Context, id agent.RunID) (durable.Run, error) {
	run, err := r.c.FindRun(ctx, id)
	if err == nil && run.Owner != r.owner {
		err = durable.ErrStale
	}
	return run, err
}

// findHeld returns a run that the runner holds under the lease of an epoch.
func (r RemoteRunner) findHeld(ctx context.Context, id agent.RunID, epoch int64) (durable.Run, error) {
	run, err := r.find(ctx, id)
	if err == nil && run.Epoch != epoch {
		err = durable.ErrStale
	}
	return run, err
}

// Renew keeps a run with the runner.
func (r RemoteRunner) Renew(ctx context.Context, id agent.RunID, in wire.Renewal) (out wire.Renewed, err error) {
	run, err := r.findHeld(ctx, id, in.Epoch)
	if err != nil {
		return out, err
	}
	l, err := r.c.store.Renew(ctx, run.Lease(), time.Duration(in.LeaseSeconds)*time.Second)
	if err != nil {
		return out, err
	}
	all, err := r.c.store.Signals(ctx, r.owner)
	signals := slices.DeleteFunc(all, func(s durable.Signal) bool { return s.Run != id })
	return wire.Renewed{Expires: l.Expires, Signals: append([]durable.Signal{}, signals...)}, err
}

// Release gives a run back.
func (r RemoteRunner) Release(ctx context.Context, id agent.RunID, in wire.Release) error {
	run, err := r.findHeld(ctx, id, in.Epoch)
	if err != nil {
		return err
	}
	return r.c.store.Release(ctx, run.Lease(), time.Duration(in.DelaySeconds)*time.Second)
}

// Journal returns the journal of a run after an entry.
func (r RemoteRunner) Journal(ctx context.Context, id agent.RunID, after int64) (j wire.Journal, err error) {
	if _, err = r.find(ctx, id); err == nil {
		j.Input, err = r.c.store.Input(ctx, id)
	}
	if err == nil {
		j.Entries, err = r.c.store.Entries(ctx, id, after)
	}
	if err == nil {
		j.Waits, err = r.c.store.Waits(ctx, id)
	}
	j.Entries, j.Waits = append([]durable.Entry{}, j.Entries...), append([]durable.Wait{}, j.Waits...)
	return j, err
}

// mayCommit reports whether a runner has a run, or may have had it: the end of a run may be reported again, also while on_result hooks
// decide about it.
func mayCommit(r durable.Run, l durable.Lease) bool {
	return r.Status.Ended() || r.Owner == l.Owner || r.Phase == KindHooks && r.Epoch >= l.Epoch && r.Traits.HoldsResult
}

// WriteJournal writes to the journal of a run. A repetition of the last commit succeeds and changes nothing.
func (r RemoteRunner) WriteJournal(ctx context.Context, id agent.RunID, j wire.JournalCommit) error {
	l := durable.Lease{Run: id, Owner: r.owner, Epoch: j.Epoch}
	run, err := r.c.FindRun(ctx, id)
	if err != nil {
		return err
	}
	if !mayCommit(run, l) {
		return durable.ErrStale
	}
	if j.ID != "" && r.c.commits.is(l, j.ID) {
		return nil
	}
	c := j.Commit()
	if run.Owner == l.Owner { // otherwise it can only be a repetition
		if err := checkCommit(run, c); err != nil {
			return err
		}
	}
	err = resultStore{r.c.store}.commitTo(ctx, run, l, c)
	if wrong, ok := errors.AsType[*durable.SeqError](err); ok && len(j.Entries) > 0 && wrong.Want > wrong.Got {
		err = r.c.checkRepeated(ctx, id, j.Entries, wrong)
	}
	if err == nil && j.ID != "" {
		r.c.commits.note(l, j.ID)
	}
	return err
}

// checkRepeated returns an error unless the journal has these entries already.
func (c *Coordinator) checkRepeated(ctx context.Context, id agent.RunID, entries []durable.Entry, otherwise error) error {
	written, err := c.store.Entries(ctx, id, entries[0].Seq-1)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(written, entries, func(w, e durable.Entry) bool {
		return w.Seq == e.Seq && w.Kind == e.Kind && w.Key == e.Key && bytes.Equal(w.Data, e.Data)
	}) {
		return otherwise
	}
	return nil
}

// entryStarted is the kind of the entry that a simple runner has started the program of a run of an agent.
const entryStarted durable.EntryKind = "started"

// Start records that the program of a run starts: once for each lease, however often it is reported. For a command, the entry is the
// one that the runner of package command writes, so that neither repeats what the other one has begun.
func (r RemoteRunner) Start(ctx context.Context, id agent.RunID, epoch int64) error {
	run, err := r.findHeld(ctx, id, epoch)
	if err != nil {
		return err
	}
	started := durable.Entry{Kind: entryStarted, Key: strconv.FormatInt(epoch, 10), At: time.Now()}
	if run.Kind == durable.KindCommand {
		started.Kind = durable.EntryCall
	}
	var entries []durable.Entry
	if run.Entries > 0 {
		if entries, err = r.c.store.Entries(ctx, id, 0); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if e.Kind == started.Kind && e.Key == started.Key {
			return nil
		}
		started.Seq = e.Seq
	}
	started.Seq++
	return r.c.store.Commit(ctx, run.Lease(), durable.Commit{
		Entries: []durable.Entry{started}, Events: []durable.Event{{At: started.At, Name: wire.EventRunStart}},
	})
}

// Report ends a run as completed, failed or stopped.
func (r RemoteRunner) Report(ctx context.Context, id agent.RunID, status wire.Status, in wire.Report) error {
	run, err := r.c.FindRun(ctx, id)
	if err != nil {
		return err
	}
	b, err := r.c.blueprintOf(ctx, run)
	if err != nil {
		return err
	}
	l := durable.Lease{Run: id, Owner: r.owner, Epoch: in.Epoch}
	if !mayCommit(run, l) {
		return durable.ErrStale
	}
	u, result := durable.Update{Status: durable.StatusFailed, Reason: agent.StopError, Steps: 1}, durable.Result{Error: in.Error}
	switch status {
	case wire.Completed:
		if wrong := checkOutput(&b.Blueprint, in.ResultData); wrong != nil {
			result = durable.Result{Error: fmt.Sprintf("the result is invalid: %v", wrong)}
			break
		}
		u.Status, u.Reason, result = durable.StatusCompleted, agent.StopCompleted, durable.Result{Text: in.ResultText, Data: in.ResultData}
	case wire.Stopped:
		u.Status, u.Reason, result = durable.StatusStopped, agent.StopRequested, durable.Result{Error: in.Reason}
	}
	if u.Result, err = json.Marshal(result); err != nil {
		return err
	}
	return resultStore{r.c.store}.commitTo(ctx, run, l, durable.Commit{Update: u})
}

// AddEvents adds events to a run.
func (r RemoteRunner) AddEvents(ctx context.Context, id agent.RunID, in wire.EventReport) error {
	run, err := r.findHeld(ctx, id, in.Epoch)
	if err != nil {
		return err
	}
	var c durable.Commit
	for _, e := range in.Events {
		c.Events = append(c.Events, durable.Event{At: e.Time, Name: e.Type, Data: e.Data})
	}
	if err := checkCommit(run, c); err != nil {
		return err
	}
	return r.c.store.Commit(ctx, run.Lease(), c)
}
