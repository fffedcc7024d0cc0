package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// judgement is the hooks' decision about a call, stored where other code cannot write it. It holds strings and no
// pointers to the call, because the call may change.
type judgement struct {
	disposition     Disposition
	id              string // of the model's call
	tool, arguments string // of the call to run
	open            bool   // the loop is executing the call
	used            bool   // the call has begun and used up its approval
}

// judgements holds the judgements in the run's current step, by call index.
type judgements struct {
	some atomic.Bool // false until a hook has judged a call in this run

	mu   sync.Mutex
	step int
	list []judgement
}

func (js *judgements) record(step int, call *ToolCall, p *Prepared) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.step != step {
		js.step, js.list = step, js.list[:0]
	}
	for call.Index >= len(js.list) {
		js.list = append(js.list, judgement{})
	}
	js.list[call.Index] = judgementOf(call, p)
	if !js.some.Load() {
		js.some.Store(true)
	}
}

func judgementOf(call *ToolCall, p *Prepared) judgement {
	return judgement{disposition: p.Disposition, id: call.ID, tool: p.Call.Name, arguments: p.Call.Arguments}
}

// setOpen records whether the loop is executing a call. Only an open call can begin.
func (js *judgements) setOpen(step int, call *ToolCall, open bool) {
	if !js.some.Load() {
		return
	}
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.find(step, call); j != nil {
		j.open = open
	}
}

// begin returns an error when a call must not begin now, and otherwise uses up its approval.
func (js *judgements) begin(step int, p *Prepared) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	j := js.find(step, p.Original)
	if err := j.check(p); err != nil {
		return err
	}
	switch {
	case !j.open:
		return errors.New("the run is not executing this call now")
	case j.disposition == DisposeAsk && j.used:
		return errors.New("its approval was used up when it ran")
	}
	j.used = true
	return nil
}

// find returns the judgement about a call of the current step, or nil. The caller holds the lock.
func (js *judgements) find(step int, call *ToolCall) *judgement {
	if js.step != step || call.Index < 0 || call.Index >= len(js.list) || js.list[call.Index].id != call.ID {
		return nil
	}
	return &js.list[call.Index]
}

// check compares the call to run with its judgement.
func (js *judgements) check(step int, p *Prepared) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.find(step, p.Original).check(p)
}

// judgedStep reports whether hooks have judged a call of the step.
func (js *judgements) judgedStep(step int) bool {
	if !js.some.Load() {
		return false
	}
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.step == step && len(js.list) > 0
}

// executedCall is the call that a context belongs to when calls run at the same time.
type executedCall struct {
	run   *live
	index int
}

type executedCallKey struct{}

// contextFor returns the context for executing call i at the same time as others. In runs without judgements, it is ctx
// itself.
func (l *live) contextFor(ctx context.Context, i int) context.Context {
	if !l.judged.some.Load() {
		return ctx
	}
	return context.WithValue(ctx, executedCallKey{}, &executedCall{l, i})
}

// beginJudged returns an error when the call has no judgement or differs from it. Required reports whether the agent
// has hooks that judge calls.
func (s State) beginJudged(ctx context.Context, p *Prepared, required bool) error {
	l := s.read().live
	if l == nil {
		if required {
			return errors.New("its state belongs to no run")
		}
		return nil
	}
	if !required && !l.judged.judgedStep(s.RunStepCount()) {
		return nil
	}
	if run, ok := startedrun.Above(ctx).(*live); ok && run != l {
		return errors.New("its state belongs to another run")
	}
	if c, ok := ctx.Value(executedCallKey{}).(*executedCall); ok && c.run == l && c.index != p.Original.Index {
		return errors.New("the run is executing another call here")
	}
	return l.judged.begin(s.RunStepCount(), p)
}

// errNotJudged is returned when no control has judged the call.
var errNotJudged = errors.New("no hook has judged it")

// check returns an error when j is nil, or when the call to run differs from the judgement.
func (j *judgement) check(p *Prepared) error {
	switch {
	case j == nil:
		return errNotJudged
	case j.tool != p.Call.Name:
		return fmt.Errorf("it was changed after the hooks had judged it as a call of tool %q", j.tool)
	case j.arguments != p.Call.Arguments:
		return errors.New("its arguments were changed after the hooks had judged it")
	case j.disposition == DisposeAsk && p.approvalData().granted != p.Original.ID:
		return errors.New("it needs an approval that was not given")
	case j.disposition != DisposeRun && j.disposition != DisposeAsk:
		return errors.New("the hooks decided that it does not run")
	}
	return nil
}

// refusal answers the call when it differs from its judgement.
func refusal(p *Prepared, err error) *ToolResult {
	r := NotExecuted(p.Call, ReasonHookFailed, "hooks", fmt.Sprintf("tool %q: not executed: hooks: %v", p.Call.Name, err))
	r.Err = err
	return r
}
