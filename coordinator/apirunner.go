package coordinator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// The time that a run stays with no runner after an error, and how often a request for work looks.
const (
	retryAfter   = 30 * time.Second
	pollInterval = time.Second // how often a waiting request looks when the store reports no change
)

// ownerOf returns the name of a runner in leases: the name of its token, and the name that it gives itself.
func ownerOf(ctx context.Context, runner string) string { return identityOf(ctx).Name + "/" + runner }

// runnerRequest is a request of a runner about a run that it has. Huma sets only fields of the struct itself and of exported ones.
type runnerRequest[B any] struct {
	Runner string `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
	ID     string `path:"id"`
	Body   B
}

// place returns what identifies the run and the runner.
func (r *runnerRequest[B]) place() runnerPlace { return runnerPlace{r.Runner, agent.RunID(r.ID)} }

// runnerPlace is a run and the runner that has it.
type runnerPlace struct {
	runner string
	run    agent.RunID
}

// claimInput asks for work.
type claimInput struct {
	Runner       string   `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
	Labels       []string `query:"label,explode" doc:"The labels of the runner, as NAME=VALUE."`
	Types        []string `query:"type,explode" enum:"autonomous,procedural" doc:"The types of blueprints that the runner executes; absent means all."`
	WaitSeconds  int      `query:"wait_seconds" default:"25" minimum:"0" maximum:"60" doc:"How long to wait for work."`
	LeaseSeconds int      `query:"lease_seconds" default:"30" minimum:"2" maximum:"600" doc:"How long a run stays with the runner unless it renews its lease."`
	SignalsTag   string   `query:"signals_tag" maxLength:"64" doc:"The signals_tag of the last response: then this one comes when the signals differ."`
	Limit        int      `query:"limit" default:"1" minimum:"0" maximum:"100" doc:"How many runs to claim at most; zero only receives signals."`
}

func (a *api) addRunner() {
	type claimOutput struct{ Body wire.Claim }
	huma.Register(a.huma, route(http.MethodGet, "/runner/runs", "claim-runs", "Wait for signals and for runs to execute", wire.RunnerRole),
		func(ctx context.Context, in *claimInput) (*claimOutput, error) {
			claim, err := a.c.claim(ctx, *in)
			if err == nil {
				err = a.recordClaim(ctx, claim.Runs)
			}
			return &claimOutput{claim}, a.problem("claiming runs", err)
		})

	type claimedOutput struct{ Body wire.ClaimedRun }
	huma.Register(a.huma, route(http.MethodGet, "/runner/runs/{id}", "get-claimed-run", "Read a run that the runner has", wire.RunnerRole),
		func(ctx context.Context, in *struct {
			Runner string `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
			ID     string `path:"id"`
		},
		) (*claimedOutput, error) {
			r, err := a.c.findRun(ctx, agent.RunID(in.ID))
			var claimed wire.ClaimedRun
			switch {
			case err != nil:
			case r.Owner == ownerOf(ctx, in.Runner):
				claimed, err = a.c.claimedRun(ctx, r)
			default: // a runner learns how its run has ended, and no more
				claimed.RunID, claimed.Stored = r.ID, durable.Run{ID: r.ID, Kind: r.Kind, Name: r.Name, Status: r.Status, Epoch: r.Epoch}
			}
			return &claimedOutput{claimed}, a.problem("reading a run", err)
		})

	type blueprintInput struct {
		Runner  string `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
		Name    string `path:"name"`
		Version int64  `query:"version" minimum:"1" required:"true"`
	}
	huma.Register(a.huma, route(http.MethodGet, "/runner/blueprints/{name}", "get-claimed-blueprint", "Read the blueprint of a run", wire.RunnerRole),
		func(ctx context.Context, in *blueprintInput) (*blueprintOutput, error) {
			err := a.c.checkHolds(ctx, ownerOf(ctx, in.Runner), in.Name, in.Version)
			var s wire.Stored
			if err == nil {
				s, err = a.c.Blueprint(ctx, in.Name, in.Version)
			}
			return &blueprintOutput{s}, a.problem("reading a blueprint", err)
		})

	type denyOutput struct{ Body durable.Switch }
	huma.Register(a.huma, route(http.MethodGet, "/runner/deny-tools", "get-deny-tools", "Read the switch that denies every tool", wire.RunnerRole),
		func(ctx context.Context, _ *struct{}) (*denyOutput, error) {
			s, err := a.c.store.DenyTools(ctx)
			return &denyOutput{s}, a.problem("reading the switch that denies tools", err)
		})

	type journalInput struct {
		Runner string `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
		ID     string `path:"id"`
		After  int64  `query:"after" minimum:"0"`
	}
	type journalOutput struct {
		Body struct {
			// Input is what the run begins with: for durable agents.
			Input   []byte          `json:"input,omitempty"`
			Entries []durable.Entry `json:"entries"`
			Waits   []durable.Wait  `json:"waits"`
		}
	}
	huma.Register(a.huma, route(http.MethodGet, "/runner/runs/{id}/journal", "read-journal", "Read the journal, the input and the waits of a run", wire.RunnerRole),
		func(ctx context.Context, in *journalInput) (*journalOutput, error) {
			out := &journalOutput{}
			r, err := a.findOwn(ctx, runnerPlace{in.Runner, agent.RunID(in.ID)})
			if err == nil {
				out.Body.Input, err = a.c.store.Input(ctx, r.ID)
			}
			if err == nil {
				out.Body.Entries, err = a.c.store.Entries(ctx, r.ID, in.After)
			}
			if err == nil {
				out.Body.Waits, err = a.c.store.Waits(ctx, r.ID)
			}
			out.Body.Entries, out.Body.Waits = append([]durable.Entry{}, out.Body.Entries...), append([]durable.Wait{}, out.Body.Waits...)
			return out, a.problem("reading a journal", err)
		})

	huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/journal", "write-journal",
		"Write to the journal of a run", wire.RunnerRole, withLargeBody, withOwnAudit),
		func(ctx context.Context, in *runnerRequest[wire.JournalCommit]) (*struct{}, error) {
			err := a.recordUpdate(ctx, in.Body.Update)
			if err == nil {
				err = a.writeJournal(ctx, in.place(), in.Body)
			}
			return nil, a.problem("writing to a journal", err)
		})

	type renewBody struct {
		Epoch        int64 `json:"epoch"`
		LeaseSeconds int   `json:"lease_seconds,omitempty" default:"30" minimum:"2" maximum:"600"`
	}
	type renewOutput struct {
		Body struct {
			Expires time.Time        `json:"expires"`
			Signals []durable.Signal `json:"signals"`
		}
	}
	huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/renew", "renew-lease", "Keep a run, and receive its signals", wire.RunnerRole, withoutAudit),
		func(ctx context.Context, in *runnerRequest[renewBody]) (*renewOutput, error) {
			out := &renewOutput{}
			r, err := a.findHeld(ctx, in.place(), in.Body.Epoch)
			if err == nil {
				var l durable.Lease
				l, err = a.c.store.Renew(ctx, r.Lease(), seconds(int64(in.Body.LeaseSeconds)))
				out.Body.Expires = l.Expires
			}
			if err == nil {
				out.Body.Signals, err = a.c.signalsOf(ctx, r.Owner, r.ID)
			}
			return out, a.problem("renewing a lease", err)
		})

	type releaseBody struct {
		Epoch        int64 `json:"epoch"`
		DelaySeconds int   `json:"delay_seconds,omitempty" minimum:"0" maximum:"3600" doc:"How long no runner gets the run."`
	}
	huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/release", "release-run", "Give a run back", wire.RunnerRole),
		func(ctx context.Context, in *runnerRequest[releaseBody]) (*struct{}, error) {
			r, err := a.findHeld(ctx, in.place(), in.Body.Epoch)
			if err == nil {
				err = a.c.store.Release(ctx, r.Lease(), seconds(int64(in.Body.DelaySeconds)))
			}
			return nil, a.problem("releasing a run", err)
		})
	a.addReports()
}

// recordClaim records which runs a runner has claimed, and releases them if that fails.
func (a *api) recordClaim(ctx context.Context, claimed []wire.ClaimedRun) error {
	if len(claimed) == 0 {
		return nil
	}
	ids := lo.Map(claimed, func(r wire.ClaimedRun, _ int) string { return string(r.RunID) })
	err := a.record(ctx, "", strings.Join(ids, " "))
	if err != nil {
		for _, r := range claimed {
			err = errors.Join(err, a.c.store.Release(context.WithoutCancel(ctx), r.Stored.Lease(), 0))
		}
	}
	return err
}

// recordUpdate records that a runner parks or ends a run.
func (a *api) recordUpdate(ctx context.Context, u *wire.RunUpdate) error {
	if u == nil || u.Status == "" || u.Status == durable.StatusRunning {
		return nil
	}
	return a.record(ctx, "", string(u.Status))
}

// addReports adds what simple runners report: those that keep no journal.
func (a *api) addReports() {
	type report struct {
		Epoch int64 `json:"epoch"`
		// ResultText and ResultData are the result of a completed run.
		ResultText string          `json:"result_text,omitempty"`
		ResultData json.RawMessage `json:"result_data,omitempty"`
		// Error is why a run has failed, Reason why it has stopped.
		Error  string `json:"error,omitempty"`
		Reason string `json:"reason,omitempty"`
	}
	add := func(path, summary string, commit func(b *wire.Blueprint, in report) durable.Commit) {
		huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/"+path, "report-"+path, summary, wire.RunnerRole),
			func(ctx context.Context, in *runnerRequest[report]) (*struct{}, error) {
				return nil, a.problem("reporting that a run has "+path, a.report(ctx, in.place(), in.Body.Epoch, func(b *wire.Blueprint) durable.Commit {
					return commit(b, in.Body)
				}))
			})
	}
	huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/started", "report-started", "Report that the program of a run starts", wire.RunnerRole),
		func(ctx context.Context, in *runnerRequest[report]) (*struct{}, error) {
			return nil, a.problem("reporting that a run has started", a.start(ctx, in.place(), in.Body.Epoch))
		})
	add("completed", "Report the result of a run", func(b *wire.Blueprint, in report) durable.Commit {
		result := durable.Result{Text: in.ResultText, Data: in.ResultData}
		if err := checkOutput(b, in.ResultData); err != nil {
			return endCommit(durable.StatusFailed, agent.StopError, durable.Result{Error: fmt.Sprintf("the result is invalid: %v", err)})
		}
		return endCommit(durable.StatusCompleted, agent.StopCompleted, result)
	})
	type parkBody struct {
		Epoch     int64                 `json:"epoch"`
		Questions []wire.RunnerQuestion `json:"questions" minItems:"1" maxItems:"20" doc:"What people decide before the run goes on."`
	}
	huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/park", "park-run", "Give a run back until people have answered", wire.RunnerRole),
		func(ctx context.Context, in *runnerRequest[parkBody]) (*struct{}, error) {
			return nil, a.problem("parking a run", a.park(ctx, in.place(), in.Body.Epoch, in.Body.Questions))
		})
	add("failed", "Report that a run has failed", func(_ *wire.Blueprint, in report) durable.Commit {
		return endCommit(durable.StatusFailed, agent.StopError, durable.Result{Error: in.Error})
	})
	add("stopped", "Report that a run was stopped", func(_ *wire.Blueprint, in report) durable.Commit {
		return endCommit(durable.StatusStopped, agent.StopRequested, durable.Result{Error: in.Reason})
	})

	type reportedEvent struct {
		Type string          `json:"event_type" minLength:"1" maxLength:"100"`
		Time time.Time       `json:"time"`
		Data json.RawMessage `json:"data,omitempty"`
	}
	type eventsBody struct {
		Epoch  int64           `json:"epoch"`
		Events []reportedEvent `json:"events" maxItems:"1000"`
	}
	huma.Register(a.huma, route(http.MethodPost, "/runner/runs/{id}/events", "report-events", "Report events of a run", wire.RunnerRole, withoutAudit),
		func(ctx context.Context, in *runnerRequest[eventsBody]) (*struct{}, error) {
			var c durable.Commit
			for _, e := range in.Body.Events {
				c.Events = append(c.Events, durable.Event{At: e.Time, Name: e.Type, Data: e.Data})
			}
			r, err := a.findHeld(ctx, in.place(), in.Body.Epoch)
			if err == nil {
				err = checkCommit(r, c)
			}
			if err == nil {
				err = a.c.store.Commit(ctx, r.Lease(), c)
			}
			return nil, a.problem("reporting events", err)
		})
}

func endCommit(status durable.Status, reason agent.StopReason, r durable.Result) durable.Commit {
	data, _ := json.Marshal(r) //nolint:errchkjson // its Data was parsed from JSON
	return durable.Commit{Update: durable.Update{Status: status, Reason: reason, Steps: 1, Result: data}}
}

// entryStarted is the kind of the entry that a simple runner has started the program of a run of an agent.
const entryStarted durable.EntryKind = "started"

// startedEntry returns the entry that a runner has started the program of a run: for a command the one that the runner of
// package command writes, so that neither repeats what the other one has begun.
func startedEntry(r durable.Run) durable.Entry {
	kind := entryStarted
	if r.Kind == durable.KindCommand {
		kind = durable.EntryCall
	}
	return durable.Entry{Kind: kind, Key: strconv.FormatInt(r.Epoch, 10), At: time.Now()}
}

// start records that the program of a run starts: once for each lease, however often it is reported.
func (a *api) start(ctx context.Context, in runnerPlace, epoch int64) error {
	r, err := a.findHeld(ctx, in, epoch)
	if err != nil {
		return err
	}
	started := startedEntry(r)
	entries, err := a.c.store.Entries(ctx, r.ID, 0)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Kind == started.Kind && e.Key == started.Key {
			return nil
		}
		started.Seq = e.Seq
	}
	started.Seq++
	return a.c.store.Commit(ctx, r.Lease(), durable.Commit{
		Entries: []durable.Entry{started}, Events: []durable.Event{{At: started.At, Name: wire.EventRunStart}},
	})
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

// report writes what a simple runner reports.
func (a *api) report(ctx context.Context, in runnerPlace, epoch int64, commit func(b *wire.Blueprint) durable.Commit) error {
	r, err := a.c.store.Run(ctx, in.run)
	if err != nil {
		return err
	}
	version, err := versionOf(r)
	if err != nil {
		return durable.ErrNotFound
	}
	b, err := a.c.Blueprint(ctx, r.Name, version)
	if err != nil {
		return err
	}
	l := durable.Lease{Run: r.ID, Owner: ownerOf(ctx, in.runner), Epoch: epoch}
	if !mayCommit(r, l) {
		return durable.ErrStale
	}
	return a.c.RunnerStore().Commit(ctx, l, commit(&b.Blueprint))
}

// mayCommit reports whether a runner has a run, or may have had it: the end of a run may be reported again, also while on_result hooks
// decide about it.
func mayCommit(r durable.Run, l durable.Lease) bool {
	return r.Status.Ended() || r.Owner == l.Owner || r.Phase == KindHooks && r.Epoch >= l.Epoch && r.Labels[labelResult] != ""
}

// findOwn returns a run that the runner has.
func (a *api) findOwn(ctx context.Context, in runnerPlace) (durable.Run, error) {
	r, err := a.c.findRun(ctx, in.run)
	if err == nil && r.Owner != ownerOf(ctx, in.runner) {
		err = durable.ErrStale
	}
	return r, err
}

// findHeld returns a run that the runner has under the lease of an epoch.
func (a *api) findHeld(ctx context.Context, in runnerPlace, epoch int64) (durable.Run, error) {
	r, err := a.findOwn(ctx, in)
	if err == nil && r.Epoch != epoch {
		err = durable.ErrStale
	}
	return r, err
}

// checkHolds returns durable.ErrNotFound unless a runner has a run of a version of a blueprint: others may hold secrets.
func (c *Coordinator) checkHolds(ctx context.Context, owner, name string, version int64) error {
	f := durable.Filter{Status: []durable.Status{durable.StatusRunning}, Name: name, Limit: maxRuns}
	for {
		list, err := c.store.List(ctx, f)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(r durable.Run) bool { return r.Owner == owner && r.Version == versionText(version) }) {
			return nil
		}
		if len(list) < maxRuns {
			return durable.ErrNotFound
		}
		f.Before = list[len(list)-1].ID
	}
}

// maxRuns is the number of runs that are read at a time.
const maxRuns = 1000

// writeJournal writes to the journal of a run. A repetition of the last commit succeeds and changes nothing.
func (a *api) writeJournal(ctx context.Context, in runnerPlace, j wire.JournalCommit) error {
	l := durable.Lease{Run: in.run, Owner: ownerOf(ctx, in.runner), Epoch: j.Epoch}
	r, err := a.c.findRun(ctx, l.Run)
	if err != nil {
		return err
	}
	if !mayCommit(r, l) {
		return durable.ErrStale
	}
	if j.ID != "" && a.c.commits.is(l, j.ID) {
		return nil
	}
	c := j.Commit()
	if r.Owner == l.Owner { // otherwise it can only be a repetition
		if err := checkCommit(r, c); err != nil {
			return err
		}
	}
	err = a.c.RunnerStore().Commit(ctx, l, c)
	if wrong, ok := errors.AsType[*durable.SeqError](err); ok && len(j.Entries) > 0 && wrong.Want > wrong.Got {
		err = a.c.checkRepeated(ctx, l.Run, j.Entries, wrong)
	}
	if err == nil && j.ID != "" {
		a.c.commits.note(l, j.ID)
	}
	return err
}

// checkRepeated returns an error unless the journal has these entries already.
func (c *Coordinator) checkRepeated(ctx context.Context, id agent.RunID, entries []durable.Entry, otherwise error) error {
	written, err := c.store.Entries(ctx, id, entries[0].Seq-1)
	if err != nil {
		return err
	}
	if len(written) != len(entries) {
		return otherwise
	}
	for i, e := range entries {
		w := written[i]
		if w.Seq != e.Seq || w.Kind != e.Kind || w.Key != e.Key || !bytes.Equal(w.Data, e.Data) {
			return otherwise
		}
	}
	return nil
}

// claim waits for signals and runs for a runner.
func (c *Coordinator) claim(ctx context.Context, in claimInput) (wire.Claim, error) {
	out := wire.Claim{Protocol: wire.RunnerProtocol, Runs: []wire.ClaimedRun{}, Signals: []durable.Signal{}}
	labels := map[string]string{labelRunner: runnerLabel}
	for _, text := range in.Labels {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return out, &InvalidError{[]FieldError{{"label", fmt.Sprintf("%q: expected NAME=VALUE", text)}}}
		}
		labels[name] = value
	}
	owner := ownerOf(ctx, in.Runner)
	wait, cancel := context.WithTimeout(ctx, seconds(int64(in.WaitSeconds)))
	defer cancel()
	changes := c.store.Changes(wait)
	for {
		signals, err := c.store.Signals(ctx, owner)
		if err != nil {
			return out, err
		}
		out.Signals, out.SignalsTag = append([]durable.Signal{}, signals...), tagOf(signals)
		if out.SignalsTag != in.SignalsTag {
			return out, nil
		}
		if in.Limit > 0 {
			err := c.claimNow(ctx, &out, owner, labels, in)
			if ctx.Err() != nil { // the runner has gone, and the runs are for others
				for _, r := range out.Runs {
					err = errors.Join(err, c.store.Release(context.WithoutCancel(ctx), r.Stored.Lease(), 0))
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
func (c *Coordinator) claimNow(ctx context.Context, out *wire.Claim, owner string, labels map[string]string, in claimInput) error {
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
	runs, err := c.store.Claim(ctx, owner, seconds(int64(in.LeaseSeconds)), in.Limit, keys...)
	if err != nil {
		return err
	}
	var wrong []error
	for _, r := range runs { // one that cannot be read does not keep the runner from the others
		claimed, err := c.claimedRun(ctx, r)
		if err != nil {
			wrong = append(wrong, err, c.store.Release(context.WithoutCancel(ctx), r.Lease(), retryAfter))
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
	version, err := versionOf(r)
	if err != nil {
		return wire.ClaimedRun{}, err
	}
	b, err := c.Blueprint(ctx, r.Name, version)
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

// signalsOf returns the signals for one run of a runner.
func (c *Coordinator) signalsOf(ctx context.Context, owner string, id agent.RunID) ([]durable.Signal, error) {
	all, err := c.store.Signals(ctx, owner)
	return append([]durable.Signal{}, slices.DeleteFunc(all, func(s durable.Signal) bool { return s.Run != id })...), err
}
