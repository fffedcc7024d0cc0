package policytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/fire"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// performance is the replay of a transcript: an agent whose model and tools answer as in the transcript, under all
// rules.
type performance struct {
	runs []played // one for each input
	run  int      // index of the current run

	mu     sync.Mutex
	events []hooks.Event
}

// played is one run in a performance.
type played struct {
	input  *Turn
	turns  []*Turn
	system []agent.Message
}

// runsOf splits a transcript into runs.
func runsOf(turns []Turn) []played {
	var out []played
	var first []agent.Message
	for i := range turns {
		switch t := &turns[i]; {
		case t.who == system:
			first = append(first, agent.System(t.System))
		case t.who == user:
			out = append(out, played{input: t, system: first})
			first = nil
		case len(out) > 0:
			out[len(out)-1].turns = append(out[len(out)-1].turns, t)
		}
	}
	return out
}

// play replays a case's transcript. It returns the failed expectations of turns and calls.
func (t *Trial) play(ctx context.Context, c *testCase, now Time, d *differences, cover *Coverage) ([]Failure, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.begin(now)
	p := &performance{runs: runsOf(c.Transcript)}
	set, err := hooks.NewSet(t.hooks...).Compile()
	if err != nil {
		return nil, err
	}
	a, err := agent.New(p.config(set)).Get()
	if err != nil {
		return nil, err
	}
	var failures []Failure
	session := a.Session(agent.NewState())
	var state agent.State
	var effects agent.Effects
	for p.run = range p.runs {
		from := len(p.seenEvents())
		run := p.runs[p.run]
		var err error
		state, err = session.Run(ctx, append(slices.Clip(run.system), agent.UserText(run.input.User))...).Get()
		if failed, ok := errors.AsType[*agent.RunError](err); ok {
			state = failed.State
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := a.Drain(ctx); err != nil {
			return nil, err
		}
		here := p.seenEvents()[from:]
		failures = append(failures, run.checkExpectations(t, here, state)...)
		for _, e := range here {
			if !e.Shadow {
				effects = effects.Add(e.Outcome.Effects())
			}
		}
		if state.Status() != agent.StatusDone {
			failures = append(failures, p.unplayedRuns(state)...)
			break
		}
	}
	if err := session.Close(ctx); err != nil {
		return nil, err
	}
	cover.add(t.seenConditions(), p.seenEvents())
	c.Expect.checkEnd(d, state, effects)
	return failures, nil
}

// checkEnd compares the run's end with the expectation.
func (x *expectation) checkEnd(d *differences, s agent.State, effects agent.Effects) {
	got := string(s.Status())
	signal, stopped := s.StopSignal(), s.Stopped()
	if stopped && s.Status() != agent.StatusDone {
		got += fmt.Sprintf(" (%s by %s: %s)", signal.Reason, signal.Source, signal.Message)
	}
	if x.Status != "" && x.Status != string(s.Status()) {
		d.say("status", "expected the run to end as %s, but it ended as %s", x.Status, got)
	}
	d.compareText("stopped", x.Stopped, signal.Message)
	r := Report{Metadata: metadataOf(effects)}
	for _, e := range effects.All() {
		if text, ok := e.Context(); ok {
			r.Context = append(r.Context, text)
		}
	}
	(&expectation{Context: x.Context, Metadata: x.Metadata}).compareReport(d, &r)
}

// unplayedRuns returns failures for the expectations in runs that never began.
func (p *performance) unplayedRuns(s agent.State) []Failure {
	var out []Failure
	for _, run := range p.runs[p.run+1:] {
		for _, t := range append([]*Turn{run.input}, run.turns...) {
			if t.expects() {
				out = append(out, failureAt(t.node, "", fmt.Sprintf("not reached: the previous run ended as %s", s.Status())))
			}
		}
	}
	return out
}

func (p *performance) config(set *hooks.Compiled) agent.Config {
	return agent.Config{
		Driver:       agent.DriverFunc(p.answer),
		WrapDriver:   []func(agent.Driver) agent.Driver{set.WrapDriver},
		Executor:     tools{p},
		WrapExecutor: []func(agent.Executor) agent.Executor{set.WrapExecutor},
		Approver:     agent.ApproverFunc(p.approve),
		WrapApprover: []func(agent.Approver) agent.Approver{set.WrapApprover},
		AroundRun:    []agent.Processor{set.AroundRun()},
		AroundStep:   []agent.Processor{set.AroundStep()},
		Criterion:    set.WrapCriterion(agent.Base, 0),
		Background:   []agent.Background{set.Background()},
		Observer:     p,
		EndConversation: func(ctx context.Context, s agent.State, reason agent.CloseReason) error {
			return set.EndConversation(ctx, s, reason, p)
		},
	}
}

// Observe records hook events.
func (p *performance) Observe(_ context.Context, e agent.Event) {
	if e, ok := e.(hooks.Event); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	}
}

func (p *performance) seenEvents() []hooks.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// answer acts as the driver and returns the assistant's next turn.
func (p *performance) answer(_ context.Context, s agent.State) (agent.Step, error) {
	turns := p.runs[p.run].turns
	taken := s.RunStepCount()
	step := agent.Step{Message: agent.Assistant("done")} // a hook continued the run
	if taken < len(turns) {
		step = turns[taken].modelStep(p.run*1000 + taken)
	}
	step.Model = "script"
	step.FinishReason = lo.Ternary(step.Message.CallCount() > 0, agent.FinishToolCalls, agent.FinishStop)
	return step, nil
}

// callAt returns a call in the transcript, or nil.
func (p *performance) callAt(step, index int) *Call {
	if turns := p.runs[p.run].turns; step < len(turns) && index < len(turns[step].Calls) {
		return &turns[step].Calls[index]
	}
	return nil
}

// approve acts as the approver and returns the person's answer in the transcript.
func (p *performance) approve(_ context.Context, s agent.State, call *agent.Prepared) (agent.Approval, error) {
	c := p.callAt(s.RunStepCount(), call.Original.Index)
	if c == nil || c.Person == "" {
		return agent.Approval{Verdict: agent.RejectAndContinue, Reason: "no person can answer: add person: approve to the call"}, nil
	}
	verdict, err := verdictOf(c.Person)
	return agent.Approval{Verdict: verdict, By: "a person"}, err
}

// tools is an executor that answers calls as in the transcript.
type tools struct{ p *performance }

// Prepare accepts every call.
func (x tools) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c})
}

// Execute returns the result from the transcript.
func (x tools) Execute(_ context.Context, s agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	if p.Disposition == agent.DisposeAnswer {
		return mo.Ok(p.Answer)
	}
	answer := ToolResult{Text: "ok"}.tool()
	if c := x.p.callAt(s.RunStepCount(), p.Original.Index); c != nil {
		answer = c.answer()
	}
	return mo.Ok(answer.To(p))
}

// checkExpectations compares the rules' results in a run with the expectations.
func (r played) checkExpectations(t *Trial, events []hooks.Event, s agent.State) []Failure {
	out := t.checkMoment(r.input.Expect, r.input.node, eventsOf(events, hooks.InputSubmitted, 0, ""), nil)
	var taken []agent.StepRecord
	for _, step := range s.RunSteps() {
		taken = append(taken, step)
	}
	for i, turn := range r.turns {
		if i >= len(taken) {
			if turn.expects() {
				out = append(out, failureAt(turn.node, "", fmt.Sprintf("not reached: the run ended as %s after %d steps", s.Status(), len(taken))))
			}
			continue
		}
		out = append(out, t.checkMoment(turn.Expect, turn.node, eventsOf(events, hooks.PostInference, i, ""), nil)...)
		for _, result := range taken[i].Results() {
			if k := result.Original().Index; k < len(turn.Calls) {
				c := turn.Calls[k]
				here := eventsOf(events, hooks.PreToolUse, i, result.Original().ID)
				out = append(out, t.checkMoment(c.Expect, c.node, here, &result)...)
			}
		}
	}
	return out
}

// eventsOf returns the events at a point in a step, for one call if it is given.
func eventsOf(events []hooks.Event, at hooks.PointName, step int, call string) []hooks.Event {
	return lo.Filter(events, func(e hooks.Event, _ int) bool {
		return e.Point == at && e.Step == step && (call == "" || e.Call.ID == call)
	})
}

// checkMoment compares the rules' results at one moment with an expectation.
func (t *Trial) checkMoment(x *expectation, at yamlfile.Node, events []hooks.Event, result *agent.ToolResult) []Failure {
	if x == nil {
		return nil
	}
	r := t.reportEvents(events)
	if result != nil {
		r.Tool, r.Arguments, r.Ran = result.Tool(), asJSON(result.Call().Arguments), new(result.Executed())
		r.Told = result.Text()
	}
	var d differences
	x.compareReport(&d, r)
	return failuresOf(x.node, at, d)
}

// weights rank decisions by strength, in the order documented at hooks.Decision.
var weights = map[hooks.Decision]int{
	hooks.Allow: 1, hooks.Rewrite: 2, hooks.Replace: 2, hooks.Mock: 3, hooks.Ask: 4, hooks.Deny: 5, hooks.Withhold: 5, hooks.StopRun: 6,
}

// reportEvents returns a report on the events at one moment.
func (t *Trial) reportEvents(events []hooks.Event) *Report {
	r := &Report{Decision: hooks.Pass, fired: fire.Fired{Events: events}}
	var effects agent.Effects
	for _, e := range events {
		r.Point = e.Point
		failed := e.Kind == hooks.HookFailed || e.Kind == hooks.HookTimeout
		if e.Shadow || !failed && e.Kind != hooks.HookComplete && e.Kind != hooks.HookBlocked {
			continue
		}
		decision := e.Decision
		if failed {
			r.Error, r.OnFailure = e.Err.Error(), e.Policy
			if e.Policy != "closed" {
				continue
			}
			decision = hooks.Deny
		}
		effects = effects.Add(e.Outcome.Effects())
		if weights[decision] > weights[r.Decision] {
			r.Decision, r.Reason, r.Rule, r.Failed, r.Facts = decision, e.Reason, e.Hook, failed, e.Outcome.Facts()
		}
	}
	r.Metadata = metadataOf(effects)
	for _, e := range effects.All() {
		if text, ok := e.Context(); ok {
			r.Context = append(r.Context, text)
		}
	}
	turns := map[string]*matched{}
	for _, e := range events {
		turns[e.Hook] = &matched{turn: true}
	}
	decided := false
	for _, rule := range t.policy.Rules() {
		if rule.Point != r.Point {
			continue
		}
		s := t.ruleAnswer(rule, r.fired, turns)
		if s.Holds, s.Facts, s.Origins = nil, nil, nil; s.Said == SaidNotAsked && !decided {
			s.Said = SaidSkip
		}
		decided = decided || s.Rule == r.Rule && weights[r.Decision] >= weights[hooks.Deny]
		r.Rules = append(r.Rules, s)
	}
	return r
}
