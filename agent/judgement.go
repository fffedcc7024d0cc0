package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// judgement is the hooks' decision about a call. Its Prepared holds it where other code cannot write it. It has strings
// and no pointers to the call, because the call may change.
type judgement struct {
	run             *live // nil outside a run
	step            int
	disposition     Disposition
	id              string      // of the model's call
	tool, arguments string      // of the call to run
	open            atomic.Bool // the loop is executing the call
	used            atomic.Bool // the call has begun and used up its approval
}

// judge returns a copy of p with the judgement that the model's call and p make.
func (s State) judge(call *ToolCall, p *Prepared) *Prepared {
	judged := &struct {
		Prepared

		j judgement
	}{Prepared: *p}
	j := &judged.j
	j.disposition, j.id, j.tool, j.arguments = p.Disposition, call.ID, p.Call.Name, p.Call.Arguments
	if j.run = s.read().live; j.run != nil {
		j.step = s.RunStepCount()
		j.run.judgedStep.Store(int64(j.step) + 1)
	}
	judged.judged = j
	return &judged.Prepared
}

// judgement returns the judgement about a call of the current step, or nil.
func (s State) judgement(p *Prepared) *judgement {
	l, j := s.read().live, p.judged
	if j == nil || j.id != p.Original.ID || j.run != l || l != nil && j.step != s.RunStepCount() {
		return nil
	}
	return j
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
	if l.judgedStep.Load() == 0 {
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
	if !required && l.judgedStep.Load() != int64(s.RunStepCount())+1 {
		return nil
	}
	if run, ok := startedrun.Above(ctx).(*live); ok && run != l {
		return errors.New("its state belongs to another run")
	}
	if c, ok := ctx.Value(executedCallKey{}).(*executedCall); ok && c.run == l && c.index != p.Original.Index {
		return errors.New("the run is executing another call here")
	}
	j := s.judgement(p)
	if err := j.check(p); err != nil {
		return err
	}
	switch {
	case !j.open.Load():
		return errors.New("the run is not executing this call now")
	case j.used.Swap(true) && j.disposition == DisposeAsk:
		return errors.New("its approval was used up when it ran")
	}
	return nil
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
