package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// KindCallback is the kind of the runs that tell a session how a run has ended that it has started.
const KindCallback durable.Kind = "run_callback"

// kindSession is the kind of the documents about sessions.
const kindSession = "session"

// sessionQueue is the document about a session: what its next run tells the agent.
type sessionQueue struct {
	// Pending are the runs that the session has started, that have ended, and of which it was not told.
	Pending []agent.RunID `json:"pending"`
}

// queueOf returns the queue of a session and the version of its document: zero if there is none.
func (c *Coordinator) queueOf(ctx context.Context, id agent.SessionID) (q sessionQueue, version int64, err error) {
	d, err := c.store.Document(ctx, kindSession, string(id), 0)
	if errors.Is(err, durable.ErrNotFound) {
		return q, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(d.Data, &q)
	}
	if err != nil {
		return q, 0, fmt.Errorf("reading what session %s waits to be told: %w", id, err)
	}
	return q, d.Version, nil
}

// document returns the document with the queue, which replaces a version.
func (q sessionQueue) document(id agent.SessionID, version int64, by string) *durable.Document {
	q.Pending = append([]agent.RunID{}, q.Pending...)
	data, _ := json.Marshal(q) //nolint:errchkjson // texts can always be written
	return &durable.Document{Kind: kindSession, Name: string(id), Version: version, By: by, Data: data}
}

// Resume submits the next run of a session: its agent continues the conversation. While the last run of the session has not ended, the
// new one waits for that. It returns durable.ErrNotFound for an unknown session, and an *InvalidError that lists everything that is
// wrong with the request.
func (c *Coordinator) Resume(ctx context.Context, id agent.SessionID, r wire.ResumeRequest, by string) (durable.Run, error) {
	var m mistakes
	if r.Prompt == "" {
		m.add("prompt", "missing: say what the agent is told")
	}
	if r.TimeoutSeconds < 0 || r.TimeoutSeconds > maxSeconds {
		m.add("timeout_seconds", "%d: expected a number from 0 to %d", r.TimeoutSeconds, maxSeconds)
	}
	if len(r.IdempotencyKey) > maxKey {
		m.add("idempotency_key", "it has more than %d bytes", maxKey)
	}
	if err := m.err(); err != nil {
		return durable.Run{}, err
	}
	params, err := json.Marshal(resumeParameters{Prompt: r.Prompt})
	if err != nil {
		return durable.Run{}, err
	}
	key := ""
	if r.IdempotencyKey != "" {
		key = hashKey("resume "+string(id), r.IdempotencyKey)
	}
	last, err := c.lastRun(ctx, id)
	if err != nil {
		return durable.Run{}, err
	}
	for {
		// A run with the key that is not listed yet was stored after the last one, so that this one cannot be.
		first, known, err := c.resumedWith(ctx, id, key)
		if err != nil {
			return durable.Run{}, err
		}
		if known {
			return first, c.checkSameResume(ctx, first, r)
		}
		next, stored, err := c.submitAfter(ctx, last, nil, params, durable.Job{By: by, Deadline: deadlineIn(r.TimeoutSeconds)}, key)
		if err != nil || stored {
			return next, err
		}
		last = next
	}
}

// maxKey is the maximum length of an idempotency key, in bytes.
const maxKey = 256

// resumedWith returns the run of a session for the hash of an idempotency key.
func (c *Coordinator) resumedWith(ctx context.Context, id agent.SessionID, key string) (r durable.Run, known bool, err error) {
	if key == "" {
		return durable.Run{}, false, nil
	}
	list, err := c.store.List(ctx, durable.Filter{Session: id, RequestKey: key, Limit: 1})
	if err != nil || len(list) == 0 {
		return durable.Run{}, false, err
	}
	return list[0], true, nil
}

// checkSameResume returns ErrKeyUsed unless a run is that of an equal request.
func (c *Coordinator) checkSameResume(ctx context.Context, first durable.Run, r wire.ResumeRequest) error {
	input, err := c.store.SubmittedInput(ctx, first.ID)
	if err != nil {
		return err
	}
	params, err := parametersOf(first.Kind, input)
	if err != nil {
		return err
	}
	var same resumeParameters
	if err := json.Unmarshal(params, &same); err != nil {
		return err
	}
	if same.Prompt != r.Prompt {
		return ErrKeyUsed
	}
	return nil
}

// resumeParameters are the parameters of a run that continues a session.
type resumeParameters struct {
	Prompt string `json:"prompt,omitempty"`
	// Callbacks are the runs that the session has started and that have ended since its last run.
	Callbacks []wire.Callback `json:"callbacks,omitempty"`
}

// resumeSchema is the schema of resumeParameters.
const resumeSchema = `{"type": "object", "additionalProperties": false,
	"properties": {"prompt": {"type": "string"}, "callbacks": {"type": "array", "items": {"type": "object"}}}}`

// lastRun returns the last run of a session that List knows. Others may follow it: see submitAfter.
func (c *Coordinator) lastRun(ctx context.Context, id agent.SessionID) (durable.Run, error) {
	for _, turn := range []durable.Turn{durable.TurnLater, durable.TurnFirst} { // other runs have the session, too: those that call hooks or tell it something
		list, err := c.store.List(ctx, durable.Filter{Session: id, Turn: turn, Limit: 1})
		if err != nil {
			return durable.Run{}, err
		}
		if len(list) > 0 {
			return list[0], nil
		}
	}
	return durable.Run{}, fmt.Errorf("session %q: %w", id, durable.ErrNotFound)
}

// submitAfter submits the run of a session that follows another one. If that has another follower, it returns this one, and stored is
// false: at any time, a session has one last run. A nil blueprint means its newest version.
func (c *Coordinator) submitAfter(
	ctx context.Context, last durable.Run, b *wire.Stored, params json.RawMessage, j durable.Job, key string,
) (r durable.Run, stored bool, err error) {
	if last.Kind != durable.KindAgent {
		return r, false, &InvalidError{[]FieldError{{
			"session_id", fmt.Sprintf("session %s is one of %q, which is not autonomous: submit a new run", last.Session, last.Name),
		}}}
	}
	if b == nil {
		newest, err := c.Blueprint(ctx, last.Name, 0)
		if errors.Is(err, durable.ErrNotFound) {
			return r, false, &InvalidError{[]FieldError{{"session_id", fmt.Sprintf("the blueprint %q of session %s was deleted", last.Name, last.Session)}}}
		}
		if err != nil {
			return r, false, err
		}
		b = &newest
	}
	j.Traits.Turn, j.Traits.ParentSession, j.Traits.CallsBack = durable.TurnLater, last.Traits.ParentSession, last.Traits.CallsBack
	j.Traits.RequestKey = key
	j.Session, j.After, j.Priority = last.Session, last.ID, last.Priority
	j.IdempotencyKey = hashKey("session", string(last.ID))
	jobs, err := c.jobsOf(ctx, b, params, j, true)
	if err != nil {
		return r, false, err
	}
	jobs[0].Phase = KindHooks // which adds the conversation so far, and what the session waits to be told
	runs, err := c.submitJobs(ctx, jobs)
	if err != nil {
		return r, false, fmt.Errorf("resuming session %s: %w", last.Session, err)
	}
	return runs[0], runs[0].ID == jobs[0].ID, nil
}

// checkSession checks the parent session and the execution mode of a request.
func (c *Coordinator) checkSession(ctx context.Context, m *mistakes, r wire.RunRequest) error {
	switch r.ExecutionMode {
	case "", wire.AsyncPoll:
	case wire.AsyncCallback:
		if r.ParentSessionID == "" {
			m.add("execution_mode", "%s requires parent_session_id", wire.AsyncCallback)
		}
	default:
		m.add("execution_mode", "%q: expected %s or %s", r.ExecutionMode, wire.AsyncPoll, wire.AsyncCallback)
	}
	if r.ParentSessionID == "" {
		return nil
	}
	parent, err := c.lastRun(ctx, r.ParentSessionID)
	switch {
	case errors.Is(err, durable.ErrNotFound):
		m.add("parent_session_id", "no session %q", r.ParentSessionID)
	case err != nil:
		return err
	case r.ExecutionMode == wire.AsyncCallback && parent.Kind != durable.KindAgent:
		m.add("parent_session_id", "session %s is one of %q, which is not autonomous: it cannot be called back", parent.Session, parent.Name)
	}
	return nil
}

// callbackRunner executes runs of KindCallback.
type callbackRunner struct {
	hookRunner
}

// Execute adds the run that has ended to the queue of the parent session, and makes sure that a run of that session follows.
func (r *callbackRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx, span := startSpan(ctx, about)
	defer span.End()
	ctx, x := r.keeper.Open(ctx, about)
	defer x.Close()
	anyway := context.WithoutCancel(ctx)
	if cancelled, ok := errors.AsType[*durable.CancelledError](context.Cause(ctx)); ok {
		return x.End(anyway, durable.StatusCancelled, agent.StopUser, durable.Result{Error: cancelled.Error()})
	}
	for ctx.Err() == nil {
		q, version, err := r.c.queueOf(ctx, about.Session)
		if err != nil {
			return err
		}
		err = r.c.ensureResume(ctx, about)
		if invalid, ok := errors.AsType[*InvalidError](err); ok || errors.Is(err, durable.ErrNotFound) { // it cannot be told any more
			failure := err.Error()
			if ok {
				failure = invalid.Error()
			}
			return x.End(anyway, durable.StatusFailed, agent.StopError, durable.Result{Error: failure})
		}
		if err != nil {
			return err
		}
		if !slices.Contains(q.Pending, about.Parent) {
			q.Pending = append(q.Pending, about.Parent)
		}
		result, err := json.Marshal(durable.Result{})
		if err != nil {
			return err
		}
		err = x.Commit(anyway, durable.Commit{
			Update:   durable.Update{Status: durable.StatusCompleted, Reason: agent.StopCompleted, Steps: 1, Result: result},
			Document: q.document(about.Session, version, about.By),
		})
		if !errors.Is(err, durable.ErrConflict) {
			return err
		}
	}
	return nil // another process continues
}

// ensureResume makes sure that the last run of a session has not taken what the session is told, and will. Each run that does
// stores a new version of the document, so that the caller, who has read it before, notices if it was too late.
func (c *Coordinator) ensureResume(ctx context.Context, callback durable.Run) error {
	last, err := c.lastRun(ctx, callback.Session)
	for err == nil {
		if last.Traits.Turn == durable.TurnLater && last.Phase == KindHooks && last.Attempts == 0 && !last.Status.Ended() {
			next, known, err := c.follower(ctx, last)
			if err != nil || !known {
				return err
			}
			last = next
			continue
		}
		var stored bool
		if last, stored, err = c.submitAfter(ctx, last, nil, json.RawMessage(`{}`), durable.Job{By: callback.By}, ""); stored {
			return nil
		}
	}
	return err
}

// follower returns the run of a session that follows another one.
func (c *Coordinator) follower(ctx context.Context, r durable.Run) (next durable.Run, known bool, err error) {
	list, err := c.store.List(ctx, durable.Filter{Session: r.Session, After: r.ID, Turn: durable.TurnLater, Limit: 1})
	if err != nil || len(list) == 0 {
		return durable.Run{}, false, err
	}
	return list[0], true, nil
}

// entryResume is the kind of the journal entry with the parameters with which a session is resumed.
const entryResume durable.EntryKind = "resume_session"

// takeCallbacks adds what the session waits to be told to the parameters, once. It returns false if there is nothing to tell the
// agent: the callbacks for which the run was submitted were delivered with another run of the session.
func (o *hookedRun) takeCallbacks(ctx context.Context, entries []durable.Entry) (ok bool, err error) {
	for _, e := range entries {
		if e.Kind == entryResume {
			o.params = e.Data
			return true, nil
		}
	}
	var params resumeParameters
	if err := json.Unmarshal(o.params, &params); err != nil {
		return false, fmt.Errorf("run %s: reading its parameters: %w", o.own.ID, err)
	}
	told := slices.Clip(params.Callbacks) // of the run that this one retries
	for {
		q, version, err := o.c.queueOf(ctx, o.own.Session)
		if err != nil {
			return false, err
		}
		params.Callbacks = told
		for _, id := range q.Pending {
			back, err := o.c.callbackOf(ctx, id)
			if err != nil {
				return false, err
			}
			params.Callbacks = append(params.Callbacks, back)
		}
		if params.Prompt == "" && len(params.Callbacks) == 0 {
			return false, nil
		}
		text, err := json.Marshal(params)
		if err != nil {
			return false, err
		}
		err = o.journal.Commit(ctx, durable.Commit{
			Entries: []durable.Entry{{Kind: entryResume, Data: text}}, Document: sessionQueue{}.document(o.own.Session, version, o.own.By),
		}, nil)
		if errors.Is(err, durable.ErrConflict) {
			continue
		}
		o.params = text
		return err == nil, err
	}
}

// callbackOf returns how a run has ended.
func (c *Coordinator) callbackOf(ctx context.Context, id agent.RunID) (wire.Callback, error) {
	d, err := c.Run(ctx, id)
	if errors.Is(err, durable.ErrNotFound) {
		return wire.Callback{RunID: id, Status: wire.Stopped, Error: new("the run was deleted before this session was told how it has ended")}, nil
	}
	if err != nil {
		return wire.Callback{}, err
	}
	return wire.Callback{
		RunID: id, SessionID: d.SessionID, AgentName: d.AgentName, Status: d.Status, Blocked: d.Blocked, ResultText: d.ResultText,
		ResultData: d.ResultData, Error: d.Error,
	}, nil
}

// callbackSource is the source of messages with callbacks: they are neither from the user nor from the model.
const callbackSource = "callback"

// resumedInput returns the input of a run that continues a session: the conversation so far, with the prompt and the callbacks.
func (o *hookedRun) resumedInput(ctx context.Context, params json.RawMessage) ([]byte, error) {
	var p resumeParameters
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("run %s: reading its parameters: %w", o.own.ID, err)
	}
	var messages []agent.Message
	if len(p.Callbacks) > 0 {
		text, err := json.Marshal(p.Callbacks)
		if err != nil {
			return nil, err
		}
		messages = append(messages, agent.UserText("Runs that you have started have ended:\n"+string(text)).WithSource(callbackSource))
	}
	if p.Prompt != "" {
		messages = append(messages, agent.UserText(p.Prompt))
	}
	before, err := o.c.conversation(ctx, o.own)
	if err != nil {
		return nil, err
	}
	j, err := durable.AgentJob(o.own.Name, parametersKey.In(before, params), messages...)
	return j.Input, err
}

// conversation returns the state in which the last run of a session before another one has ended that has begun and that no later
// run has retried.
func (c *Coordinator) conversation(ctx context.Context, r durable.Run) (agent.State, error) {
	for id, retried := r.After, r.Traits.RetryOf; id != ""; {
		if id != retried {
			s, err := durable.Load(ctx, c.store, id)
			if err == nil {
				return s, nil
			}
			if !errors.Is(err, durable.ErrNotBegun) && !errors.Is(err, durable.ErrNotFound) {
				return agent.State{}, err
			}
		}
		before, err := c.store.Run(ctx, id)
		if errors.Is(err, durable.ErrNotFound) {
			break // it was deleted, and with it how it is connected to those before
		}
		if err != nil {
			return agent.State{}, err
		}
		id, retried = before.After, before.Traits.RetryOf
	}
	return agent.NewState(), nil
}

// Session returns a session. It returns durable.ErrNotFound for an unknown one.
func (c *Coordinator) Session(ctx context.Context, id agent.SessionID) (wire.Session, error) {
	s := wire.Session{SessionID: id, Runs: []wire.Run{}, Children: []wire.Run{}}
	own, err := c.ListRuns(ctx, wire.RunFilter{SessionID: string(id), Limit: durable.DefaultLimit})
	if err == nil && len(own.Runs) == 0 {
		err = fmt.Errorf("session %q: %w", id, durable.ErrNotFound)
	}
	if err != nil {
		return s, err
	}
	s.Runs = own.Runs
	s.AgentName, s.Status, s.ParentSessionID = own.Runs[0].AgentName, own.Runs[0].Status, own.Runs[0].ParentSessionID
	children, err := c.ListRuns(ctx, wire.RunFilter{ParentSession: string(id), Limit: durable.DefaultLimit})
	s.Children = children.Runs
	return s, err
}

// ListSessions returns a page of sessions, those with the newest runs first.
func (c *Coordinator) ListSessions(ctx context.Context, f wire.SessionFilter) (wire.SessionList, error) {
	p, err := c.list(ctx, wire.RunFilter{
		Status: f.Status, AgentName: f.AgentName, ParentSession: f.ParentSession, Since: f.Since, Until: f.Until, Before: f.Before, Limit: f.Limit,
		HookRuns: true,
	}, durable.Filter{LastTurn: true})
	out := wire.SessionList{Sessions: []wire.SessionSummary{}, Next: string(p.end.ID)}
	if err != nil {
		return out, err
	}
	later := lo.FilterMap(p.runs, func(r durable.Run, _ int) (agent.SessionID, bool) {
		return r.Session, r.Traits.Turn == durable.TurnLater
	})
	var firsts []durable.Run
	if len(later) > 0 {
		if firsts, err = c.store.List(ctx, durable.Filter{Sessions: later, Turn: durable.TurnFirst, Limit: len(later)}); err != nil {
			return out, err
		}
	}
	first := lo.KeyBy(firsts, func(r durable.Run) agent.SessionID { return r.Session })
	for _, last := range p.runs {
		began := last.Created
		if r, ok := first[last.Session]; ok { // otherwise it has one run, or the first was deleted
			began = r.Created
		}
		v := viewOf(last)
		out.Sessions = append(out.Sessions, wire.SessionSummary{
			SessionID: v.SessionID, AgentName: v.AgentName, Type: v.Type, ParentSessionID: v.ParentSessionID, Status: v.Status,
			LastRunID: v.RunID, CreatedAt: began.UTC(), UpdatedAt: v.UpdatedAt,
		})
	}
	return out, nil
}
