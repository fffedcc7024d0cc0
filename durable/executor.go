package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
)

// WrapExecutor returns an executor that records each call before it runs, and its result. While the store's switch is
// on, it denies every call.
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
	r := x.keeper.runs.Get(s)
	if err != nil || p == nil || r.keeper == nil {
		return result
	}
	if p.Disposition == agent.DisposeRun || p.Disposition == agent.DisposeAsk {
		if denied := x.denyBySwitch(ctx, &r.switchReading, p, c); denied != nil {
			p = denied
		}
	}
	r.recordDecision(p, c)
	return mo.Ok(p)
}

// denyBySwitch returns the denied call while the switch is on, or nil while it is off. If the switch cannot be read, it
// stops the run: the call neither runs nor counts as denied.
func (x *keptExecutor) denyBySwitch(ctx context.Context, reading *switchReading, p *agent.Prepared, c *agent.ToolCall) *agent.Prepared {
	began := time.Now()
	var sw Switch
	err := x.keeper.patiently(ctx, func(ctx context.Context) (err error) {
		sw, err = x.keeper.denyTools(ctx)
		return err
	})
	if err == nil && !sw.On {
		reading.setOff(began)
		return nil
	}
	reading.setOff(time.Time{})
	call := p.Call
	if call == nil {
		call = c
	}
	q := *p
	q.Disposition = agent.DisposeAnswer
	q.SetQuestions(nil)
	switch {
	case err == nil:
		reason := cmp.Or(strings.TrimSpace(sw.Reason), "all tools are currently denied")
		q.Answer = agent.NotExecuted(call, agent.ReasonDenied, switchName, fmt.Sprintf("tool %q: denied by %s: %s", call.Name, switchName, reason))
	case ctx.Err() != nil:
		q.Answer = agent.NotExecuted(call, agent.ReasonCancelled, "", "not executed: the run was cancelled")
	default:
		why := fmt.Sprintf("the switch that denies all tools cannot be read: %v", err)
		q.Stop = &agent.Signal{Reason: agent.StopError, Message: why, Source: switchName}
		q.Answer = agent.NotExecuted(call, agent.ReasonRunStopped, "", fmt.Sprintf("tool %q: not executed: %s", call.Name, why))
	}
	return &q
}

// denyTools reads the store's switch. Concurrent callers share a reading that begins after all of them have asked for
// it.
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
	r := x.keeper.runs.Get(s)
	if r.keeper == nil {
		return x.inner.Execute(ctx, s, p)
	}
	if !r.switchReading.isFresh() {
		if denied := x.denyBySwitch(ctx, &r.switchReading, p, p.Original); denied != nil { // turned on since
			denied.Answer.Stop = denied.Stop // the loop does not see denied itself
			return x.HandleAnswer(ctx, s, denied)
		}
	}
	if err := r.recordBegun(ctx, agent.Checkpoint(s).CallsTogether(p), p); err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	result := x.inner.Execute(ctx, s, p)
	r.switchReading.setOff(time.Time{}) // the tool may have turned the switch on
	return r.recordResult(ctx, p, result)
}

// switchReading is when a run last found the switch that denies every tool off.
type switchReading struct {
	mu  sync.Mutex
	off time.Time // zero when a tool has run since
}

// isFresh reports whether the reading for a prepared call is still new enough to run the call.
func (r *switchReading) isFresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.off) < commitDelay
}

// setOff sets when the switch was off; the zero time says that it must be read.
func (r *switchReading) setOff(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = at
}

// recordBegun records that a call runs. Of calls that begin together, the last one commits all entries.
func (r *recordedRun) recordBegun(ctx context.Context, together int, p *agent.Prepared) error {
	e := Entry{Kind: EntryCall, Key: p.Original.ID}
	top, err := r.journal.stageChange(&e, Update{}, func(s agent.State) agent.State { return agent.Checkpoint(s).WithCallBegun(p) })
	if err != nil {
		return err
	}
	if together > 1 {
		r.batch.await(together, r.keeper.commitDelay)
	}
	return top.commitThrough(ctx, e.Seq)
}

// callBatch lets calls that begin together wait for each other.
type callBatch struct {
	mu    sync.Mutex
	begun int           // calls of the batch that have begun
	full  chan struct{} // closed when all have begun; nil without a batch
}

// await waits until as many calls have begun as the batch has, but no longer than limit.
func (b *callBatch) await(size int, limit time.Duration) {
	b.mu.Lock()
	if b.full == nil {
		b.full, b.begun = make(chan struct{}), 0
	}
	full := b.full
	if b.begun++; b.begun == size {
		close(full)
		b.full = nil
	}
	b.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-full:
	case <-late.C:
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.full == full {
			b.full = nil
		}
	}
}

// HandleAnswer records the result of a call that does not run.
func (x *keptExecutor) HandleAnswer(ctx context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	result := agent.HandleAnswer(ctx, x.inner, s, p)
	if r := x.keeper.runs.Get(s); r.keeper != nil {
		return r.recordResult(ctx, p, result)
	}
	return result
}

// recordResult records a call's result and returns it.
func (r *recordedRun) recordResult(ctx context.Context, p *agent.Prepared, result mo.Result[*agent.ToolResult]) mo.Result[*agent.ToolResult] {
	got, err := result.Get()
	if err != nil {
		return result
	}
	final, err := p.Result(got)
	if err != nil {
		return result // the loop reports the error
	}
	if wasCutOff(ctx) && final.Reason == agent.ReasonCancelled { // the call has no result yet: another process continues it
		return result
	}
	e := Entry{Kind: EntryResult, Key: p.Original.ID}
	if err := r.journal.record(ctx, e, Update{}, func(s agent.State) agent.State { return agent.Checkpoint(s).WithCallAnswered(final) }); err != nil {
		return mo.Err[*agent.ToolResult](err)
	}
	return result
}

// recordDecision stages an entry with the decision on a call. The call's next entry commits it, and returns an error of its own.
func (r *recordedRun) recordDecision(p *agent.Prepared, c *agent.ToolCall) {
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
	_ = r.journal.stageEntry(&Entry{Kind: EntryDecision, Key: c.ID, Data: data})
}
