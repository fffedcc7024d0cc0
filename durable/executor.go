package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// WrapExecutor returns an executor that records each call before it runs, and its result. While
// the switch of the store is on, it denies every call.
func (k *Keeper) WrapExecutor(inner agent.Executor) agent.Executor { return &keptExecutor{inner, k} }

var _ agent.AnswerHandler = (*keptExecutor)(nil)

type keptExecutor struct {
	inner  agent.Executor
	keeper *Keeper
}

// switchName is the name given for denials by the switch.
const switchName = "deny-tools"

// decision is the data of an EntryDecision.
type decision struct {
	Call        agent.ToolCall `json:"call"`
	Disposition string         `json:"disposition"`
	By          string         `json:"by,omitempty"`
	Reason      string         `json:"reason,omitempty"`
}

var dispositions = [...]string{"run", "answer", "ask", "stop"}

// Prepare calls the inner executor and notes its decision.
func (x *keptExecutor) Prepare(ctx context.Context, s agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	result := x.inner.Prepare(ctx, s, c)
	p, err := result.Get()
	h := x.keeper.runs.Get(s)
	if err != nil || p == nil || h.keeper == nil {
		return result
	}
	if p.Disposition == agent.DisposeRun || p.Disposition == agent.DisposeAsk {
		if denied := x.denyBySwitch(ctx, h, p, c); denied != nil {
			p = denied
		}
	}
	h.recordDecision(p, c)
	return mo.Ok(p)
}

// denyBySwitch returns the denied call while the switch is on, else nil. If the switch stays unknown, no call runs, nothing counts as
// denied, and the run fails.
func (x *keptExecutor) denyBySwitch(ctx context.Context, h *recordedRun, p *agent.Prepared, c *agent.ToolCall) *agent.Prepared {
	began := time.Now()
	var sw Switch
	err := x.keeper.patiently(ctx, func(ctx context.Context) (err error) {
		sw, err = x.keeper.denyTools(ctx)
		return err
	})
	if err == nil && !sw.On {
		h.setToolsAllowed(began)
		return nil
	}
	h.setToolsAllowed(time.Time{})
	if ctx.Err() != nil { // the loop handles a cancelled run
		return nil
	}
	call := p.Call
	if call == nil {
		call = c
	}
	if err != nil {
		why := fmt.Sprintf("the switch that denies all tools cannot be read: %v", err)
		q := *p
		q.Disposition, q.Stop = agent.DisposeAnswer, &agent.Signal{Reason: agent.StopError, Message: why, Source: switchName}
		q.SetQuestions(nil)
		q.Answer = agent.NotExecuted(call, agent.ReasonRunStopped, "", fmt.Sprintf("tool %q: not executed: %s", call.Name, why))
		return &q
	}
	reason := strings.TrimSpace(sw.Reason)
	if reason == "" {
		reason = "all tools are currently denied"
	}
	q := *p
	q.Disposition = agent.DisposeAnswer
	q.SetQuestions(nil)
	q.Answer = agent.NotExecuted(call, agent.ReasonDenied, switchName, fmt.Sprintf("tool %q: denied by %s: %s", call.Name, switchName, reason))
	return &q
}

// denyTools reads the switch of the store. Calls of several runs that begin at the same time share a reading, which begins
// after all of them have asked for it.
func (k *Keeper) denyTools(ctx context.Context) (Switch, error) {
	return k.switches.Do(ctx, switchName, func() (sw Switch, share bool, err error) {
		sw, err = k.store.DenyTools(ctx)
		return sw, true, err
	})
}

// Execute records that the call runs, and its result.
func (x *keptExecutor) Execute(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition == agent.DisposeAnswer {
		return x.HandleAnswer(ctx, s, p)
	}
	h := x.keeper.runs.Get(s)
	if h.keeper == nil {
		return x.inner.Execute(ctx, s, p)
	}
	if !h.areToolsAllowed() {
		if denied := x.denyBySwitch(ctx, h, p, p.Original); denied != nil { // turned on since
			return x.HandleAnswer(ctx, s, denied)
		}
	}
	if err := h.noteBegun(ctx, agent.Checkpoint(s).CallsTogether(p), p); err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	result := x.inner.Execute(ctx, s, p)
	h.setToolsAllowed(time.Time{}) // the tool may have turned the switch on
	return h.noteResult(ctx, p, result)
}

// areToolsAllowed reports whether the switch that denies every tool was off so shortly ago that it need not be read again before
// a call runs: it was read when the call was prepared, and no tool of the run has run since.
func (h *recordedRun) areToolsAllowed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.allowed) < settleTime
}

// setToolsAllowed sets when the switch was off; the zero time says that it must be read.
func (h *recordedRun) setToolsAllowed(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.allowed = at
}

// HandleAnswer records the result of a call that does not run.
func (x *keptExecutor) HandleAnswer(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	result := agent.HandleAnswer(ctx, x.inner, s, p)
	if h := x.keeper.runs.Get(s); h.keeper != nil {
		return h.noteResult(ctx, p, result)
	}
	return result
}

// noteResult records the result of a call and returns it.
func (h *recordedRun) noteResult(ctx context.Context, p *agent.Prepared, result mo.Result[*agent.ToolResult]) mo.Result[*agent.ToolResult] {
	r, err := result.Get()
	if err != nil {
		return result
	}
	final, err := p.Result(r)
	if err != nil {
		return result // the loop reports the error
	}
	if cut(ctx) && final.Reason == agent.ReasonCancelled { // the call has no result yet: another process continues it
		return result
	}
	if err := h.noteCall(ctx, EntryResult, p.Original.ID, func(s agent.State) agent.State { return agent.Checkpoint(s).WithCallAnswered(final) }); err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	return result
}

// recordDecision notes a decision, to be written with the next entry.
func (h *recordedRun) recordDecision(p *agent.Prepared, c *agent.ToolCall) {
	d := decision{Call: *c}
	if p.Call != nil {
		d.Call = *p.Call
	}
	if int(p.Disposition) < len(dispositions) {
		d.Disposition = dispositions[p.Disposition]
	}
	switch {
	case p.Answer != nil:
		d.By, d.Reason = p.Answer.DecidedBy, string(p.Answer.Reason)
	case len(p.Questions()) > 0:
		d.By, d.Reason = p.Questions().AskedBy(), p.Questions().Reason()
	}
	// The results, after the filters, say what stopped the run and why.
	data, err := json.Marshal(d)
	if err != nil {
		data = nil // cannot happen: strings only
	}
	e := Entry{Kind: EntryDecision, Key: c.ID, Data: data}
	for ; h.up != nil; h = h.up {
		e.Kind, e.Key = ofChild(e.Kind, h.call, e.Key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.stage(&e, Update{}) // the entry of the call, which follows, returns the error
}
