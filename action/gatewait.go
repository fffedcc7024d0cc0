package action

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/callback"
	"github.com/grapnel-go/grapnel/internal/runctx"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// storedGate is the format of agent.Gate.Data. It contains secret names, never their values. It is the same each time
// that the gate is asked about, because agent.Gate.Seen holds the file's initial state.
type storedGate struct {
	Gate Gate `json:"gate"`
	// Dir is the command's working directory, Path the file. Both are absolute.
	Dir  string `json:"dir,omitempty"`
	Path string `json:"path,omitempty"`
	// Request is the request to the hook. OnFailure is the verdict when the gate fails.
	Request   json.RawMessage       `json:"request"`
	OnFailure agent.ApprovalVerdict `json:"on_failure"`
}

// ask returns the question with which a gate waits in the run's store.
func (g Gate) ask(h Host, r *Request) (*Answer, error) {
	onTimeout := cmp.Or(r.OnTimeout, agent.RejectAndContinue.String())
	if yes, ok := callback.Approves(g.OnTimeout); ok {
		onTimeout = callback.Answer{Approved: yes}.Verdict().String()
	}
	waiting, err := g.store(h, r, cmp.Or(r.OnFailure, agent.RejectAndContinue.String()))
	if err != nil {
		return nil, err
	}
	return &Answer{Decision: &Decision{
		Decision: hooks.Ask, Reason: g.reason(r), Within: g.maxWait().Seconds(), OnTimeout: onTimeout, Gate: waiting,
	}}, nil
}

// awaitStored returns the answer to a gate at a point around runs. Without an answer, the gate waits in the run's store,
// and the firing ends until it is repeated.
func (g Gate) awaitStored(ctx context.Context, place runctx.Place, h Host, r *Request) (callback.Answer, error) {
	q := agent.Question{By: r.Hook, Reason: g.reason(r), Within: g.maxWait(), Approvers: g.Approvers, Quorum: g.Quorum}
	if g.By != GatePerson {
		var err error
		if q.Gate, err = g.store(h, r, gateFailed.String()); err != nil {
			return callback.Answer{}, err
		}
		q.Kind = agent.QuestionGate
	}
	a, err := place.Park(ctx, r.IdempotencyKey, q)
	switch {
	case errors.Is(err, runctx.ErrExpired):
		return g.afterTimeout()
	case err != nil:
		return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultCancelled, Err: err}
	case a.Author == agent.AuthorEvent && a.Verdict == gateFailed:
		return callback.Answer{}, newFault(g.Type(), FaultExit, "%s", a.Reason)
	}
	what, err := g.person(agent.Approval{Verdict: a.Verdict, Reason: a.Reason, By: a.By})
	if err == nil && a.Author == agent.AuthorEvent && strings.HasPrefix(a.Reason, "{") {
		if full, err := callback.Parse(a.Reason); err == nil && full.Approved == what.Approved {
			return full, nil // the complete answer
		}
	}
	return what, err
}

// gateFailed is the verdict when a gate at a point around runs has failed. No event opens or closes a gate with this
// verdict.
const gateFailed = agent.RejectAndEnd

// WaitingGate is a gate by callback, file or command that waits for its answer. Package durable/gate watches one that
// waits in a durable run's store. Its methods must not be called concurrently.
type WaitingGate struct {
	stored  storedGate
	request *Request
	file    *fileCheck // for a file gate
	sender  *sender    // for a callback gate
}

// newWaiting returns a gate that begins to wait.
func (g Gate) newWaiting(h Host, r *Request) (w *WaitingGate, err error) {
	w = &WaitingGate{stored: storedGate{Gate: g}, request: r}
	switch g.By {
	case GateFile:
		w.stored.Path, err = filepath.Abs(h.directory(g.File))
	case GateCommand:
		w.stored.Dir, err = filepath.Abs(h.Dir)
	case GateCallback, GatePerson:
	}
	if err != nil {
		return nil, &Error{Type: g.Type(), Fault: FaultSetup, Err: err}
	}
	if g.By == GateFile {
		w.file, err = g.newFileCheck(w.stored.Path)
	}
	return w, err
}

// store returns a gate that begins to wait in its stored form. OnFailure is the verdict when it fails.
func (g Gate) store(h Host, r *Request, onFailure string) (*agent.Gate, error) {
	w, err := g.newWaiting(h, r)
	if err != nil {
		return nil, err
	}
	out := &agent.Gate{Kind: string(g.By)}
	err = w.stored.OnFailure.UnmarshalText([]byte(onFailure))
	if err == nil {
		w.stored.Request, err = r.json()
	}
	if err == nil && w.file != nil && w.file.first != nil {
		out.Seen, err = json.Marshal(w.file.first)
	}
	if err == nil && g.By != GateCallback {
		out.Host, err = os.Hostname()
	}
	if err == nil {
		out.Data, err = json.Marshal(w.stored) //nolint:musttag // the form has the names of the fields of a Gate
	}
	if err != nil {
		return nil, &Error{Type: g.Type(), Fault: FaultSetup, Err: fmt.Errorf("encoding the gate: %w", err)}
	}
	return out, nil
}

// ReadWaitingGate returns the gate that an agent.Gate describes. The host needs the secrets that a webhook names.
func ReadWaitingGate(asked *agent.Gate, h Host) (*WaitingGate, error) {
	w := &WaitingGate{}
	in := json.NewDecoder(bytes.NewReader(asked.Data))
	in.UseNumber() // the body of a webhook keeps its digits

	err := in.Decode(&w.stored) //nolint:musttag // see store
	if err == nil {
		w.request, err = restoreRequest(w.stored.Request)
	}
	if err == nil {
		err = w.stored.Gate.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("reading a waiting gate: %w", err)
	}
	g := w.stored.Gate
	switch g.By {
	case GateFile:
		w.file = &fileCheck{gate: g, path: w.stored.Path}
		if len(asked.Seen) > 0 {
			if err := json.Unmarshal(asked.Seen, &w.file.first); err != nil {
				return nil, fmt.Errorf("reading a waiting gate: %w", err)
			}
		}
	case GateCallback:
		if w.sender, err = g.Webhook.sender(g.Type(), h); err != nil {
			return nil, fmt.Errorf("reading a waiting gate: %w", err)
		}
	case GatePerson:
		return nil, errors.New("reading a waiting gate: a gate by person is a question")
	}
	return w, nil
}

// By returns the gate's kind.
func (w *WaitingGate) By() GateBy { return w.stored.Gate.By }

// Agent returns the name of the waiting run's agent.
func (w *WaitingGate) Agent() string { return w.request.Run.Agent }

// Every returns the interval between two checks.
func (w *WaitingGate) Every() time.Duration { return cmp.Or(w.stored.Gate.Every, defaultGateEvery) }

// Check checks once whether a gate by file or command has an answer. It returns nil if there is none.
func (w *WaitingGate) Check(ctx context.Context) (*agent.Approval, error) {
	what, err := w.poll(ctx)
	if err != nil || what == nil {
		return nil, err
	}
	return &agent.Approval{Verdict: what.Verdict(), Reason: what.Reason()}, nil
}

func (w *WaitingGate) poll(ctx context.Context) (*callback.Answer, error) {
	switch g := w.stored.Gate; g.By {
	case GateFile:
		return w.file.checkFile()
	case GateCommand:
		return g.checkCommand(ctx, g.program(w.stored.Dir), w.request)
	case GateCallback, GatePerson:
	}
	return nil, fmt.Errorf("a gate by %s cannot be checked", w.By())
}

// await waits for the answer in this process.
func (w *WaitingGate) await(ctx context.Context, callbacks *Callbacks) (callback.Answer, error) {
	if w.By() == GateCallback {
		return w.awaitCallback(ctx, callbacks)
	}
	for {
		switch what, err := w.poll(ctx); {
		case err != nil:
			return callback.Answer{}, err
		case what != nil:
			return *what, nil
		}
		if !sleepFor(ctx, w.Every()) {
			return callback.Answer{}, contextError(ctx, w.stored.Gate.Type())
		}
	}
}

// awaitCallback listens, sends the URL with the webhook, and waits for the answer.
func (w *WaitingGate) awaitCallback(ctx context.Context, callbacks *Callbacks) (callback.Answer, error) {
	g := w.stored.Gate
	t, url, err := callbacks.open(g.Port, callback.About{Hook: w.request.Hook, Agent: w.Agent(), Reason: g.reason(w.request)})
	if err != nil {
		return callback.Answer{}, &Error{Type: g.Type(), Fault: FaultStart, Err: err}
	}
	defer callbacks.shut(g.Port, t)
	deadline, _ := ctx.Deadline()
	if err := w.Announce(ctx, url, deadline); err != nil {
		return callback.Answer{}, err
	}
	select {
	case what := <-t.said:
		return what, nil
	case <-ctx.Done():
		return callback.Answer{}, contextError(ctx, g.Type())
	}
}

// Announce sends a callback gate's webhook, with the URL that accepts the answer until the deadline.
func (w *WaitingGate) Announce(ctx context.Context, url string, deadline time.Time) error {
	told := w.request.until(deadline)
	told.Variables.CallbackURL, told.Question, told.Decides = url, cmp.Or(w.stored.Gate.reason(told), told.Question), false
	_, _, err := w.sender.send(ctx, told)
	return err
}

// FailureAnswer returns the answer for a gate that has failed.
func (w *WaitingGate) FailureAnswer(err error) agent.Approval {
	return agent.Approval{Verdict: w.stored.OnFailure, Reason: fmt.Sprintf("the gate failed: %v", err)}
}

// restoreRequest returns a request from its stored JSON form.
func restoreRequest(text []byte) (*Request, error) {
	var form struct {
		Hook           string          `json:"hook"`
		Point          hooks.PointName `json:"point"`
		Question       string          `json:"question"`
		IdempotencyKey string          `json:"idempotency_key"`
		Run            agent.Run       `json:"run"`
		Variables      Variables       `json:"variables"`
	}
	if err := strictjson.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("reading a stored request: %w", err)
	}
	return &Request{
		Version: requestVersion, Hook: form.Hook, Point: form.Point, Question: form.Question, IdempotencyKey: form.IdempotencyKey,
		Run: form.Run, Variables: form.Variables, Decides: true, stored: text,
	}, nil
}

// storedJSON returns a restored request's JSON form with the current values of members that may have changed.
func (r *Request) storedJSON() ([]byte, error) {
	var form map[string]json.RawMessage
	if err := strictjson.Unmarshal(r.stored, &form); err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	set := func(name string, value any, omit bool) error {
		text, err := strictjson.Marshal(value)
		if form[name] = json.RawMessage(text); omit {
			delete(form, name)
		}
		return err
	}
	err := errors.Join(
		set("deadline", r.Deadline, r.Deadline.IsZero()), set("question", r.Question, r.Question == ""),
		set("decides", r.Decides, false), set("variables", r.Variables, false),
	)
	if !r.Decides {
		delete(form, "decisions")
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	text, err := strictjson.Marshal(form)
	return []byte(text), err
}
