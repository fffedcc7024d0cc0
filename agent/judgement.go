package agent

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// judgement is the hooks' decision about a call, stored where other code cannot write it. It
// holds strings and no pointers to the call, which may be changed.
type judgement struct {
	disposition     Disposition
	id              string // of the call that the model made
	tool, arguments string // of the call that is to run
	used            bool   // the call has begun, which used up its approval
}

// judgements holds the judgements of the current step of a run, by the index of the call.
type judgements struct {
	some    atomic.Bool  // false while no hook has judged a call of the run
	decided atomic.Int64 // the step whose calls are all decided and may run, counted from one

	mu   sync.Mutex
	step int
	list []judgement
}

func (js *judgements) record(step int, call *ToolCall, p *Prepared) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.decided.Load() == int64(step)+1 {
		js.decided.Store(0)
	}
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

// allow records that all calls of the step are decided.
func (js *judgements) allow(step int) {
	if js.some.Load() {
		js.decided.Store(int64(step) + 1)
	}
}

// begin checks a call that begins now, as CheckJudgement does, and uses up its approval. It also
// returns an error when the calls of its step are not all decided, and when the approval was
// used up before.
func (js *judgements) begin(step int, p *Prepared) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	j := js.at(step, p.Original)
	if j == nil {
		return nil
	}
	if err := j.check(p); err != nil {
		return err
	}
	switch {
	case js.decided.Load() != int64(step)+1:
		return errors.New("not all calls of its step are decided yet")
	case j.disposition == DisposeAsk && j.used:
		return errors.New("its approval was used up when it ran")
	}
	j.used = true
	return nil
}

// at returns the judgement about a call of the current step, or nil. The lock is held.
func (js *judgements) at(step int, call *ToolCall) *judgement {
	if js.step != step || call.Index < 0 || call.Index >= len(js.list) || js.list[call.Index].id != call.ID {
		return nil
	}
	return &js.list[call.Index]
}

// check compares a call that is about to run with its judgement.
func (js *judgements) check(step int, p *Prepared) (judged bool, err error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.at(step, p.Original); j != nil {
		return true, j.check(p)
	}
	return false, nil
}

// beginJudged returns an error when a call that begins now differs from its judgement.
func (s State) beginJudged(p *Prepared) error {
	if l := s.read().live; l != nil && p.Original.Index >= 0 {
		if !l.judged.some.Load() {
			return nil
		}
		return l.judged.begin(s.RunStepCount(), p)
	}
	_, err := Checkpoint(s).CheckJudgement(p)
	return err
}

// check returns an error when a call that is about to run differs from the judgement.
func (j *judgement) check(p *Prepared) error {
	switch {
	case j.tool != p.Call.Name:
		return fmt.Errorf("it was changed after the hooks had judged it as a call of tool %q", j.tool)
	case j.arguments != p.Call.Arguments:
		return errors.New("its arguments were changed after the hooks had judged it")
	case j.disposition == DisposeAsk && p.more().granted != p.Original.ID:
		return errors.New("it needs an approval that was not given")
	case j.disposition != DisposeRun && j.disposition != DisposeAsk:
		return errors.New("the hooks decided that it does not run")
	}
	return nil
}

// refusal returns the answer to a call that differs from its judgement.
func refusal(p *Prepared, err error) *ToolResult {
	r := NotExecuted(p.Call, ReasonHookFailed, "hooks", fmt.Sprintf("tool %q: not executed: hooks: %v", p.Call.Name, err))
	r.Err = err
	return r
}
