package backtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// Verdict is a policy's effect on one recorded run.
type Verdict struct {
	Policy string `json:"policy"`
	Score  Score  `json:"score"`
	// Decisions are in the order of the recording.
	Decisions []Decision `json:"decisions"`
}

// playRun replays a run under one policy.
func playRun(ctx context.Context, run *recorded.Run, policy string, a *agent.Agent) (Verdict, error) {
	session, err := replay.NewSession(&run.Record)
	if err != nil {
		return Verdict{}, err
	}
	p := &playing{record: &run.Record, labels: labelsOf(&run.Record), judged: map[string]int{}}
	for i, m := range run.Messages {
		if m.Role == replay.RoleAssistant {
			p.turns = append(p.turns, i)
		}
	}
	state := session.Start()
	for i := range session.Runs() {
		heard := &heard{judged: p.judged}
		final, departures, err := session.PlayRun(context.WithValue(ctx, heardKey{}, heard), a, i, state)
		if err != nil {
			return Verdict{}, fmt.Errorf("run %q, part %d: %w", run.ID, i+1, err)
		}
		p.left = append(p.left, departures...)
		p.take(session.Turns(i), final, heard.close())
		state = final
	}
	return p.verdict(policy), nil
}

// playing is a run's state during its replay.
type playing struct {
	record *replay.Record
	labels map[string]string
	turns  []int // for each model turn, the index of its message
	first  int   // the index in turns of the current part's first turn

	calls     int
	left      []replay.Departure
	decisions []Decision
	denied    bool
	judged    map[string]int
}

func labelsOf(r *replay.Record) map[string]string {
	labels := map[string]string{}
	for _, l := range r.Labels {
		labels[l.Call] = l.Label
	}
	return labels
}

// take records the replay of one part of the recording, which is an agent run with the given number of turns.
func (p *playing) take(turns int, final agent.State, events []hooks.Event) {
	stopped := slices.ContainsFunc(events, func(e hooks.Event) bool { return e.Decision == hooks.StopRun && !e.Shadow })
	taken := 0
	for _, step := range final.RunSteps() {
		if step.Message().Role() != agent.RoleAssistant || taken >= turns {
			continue
		}
		p.moments(taken, taken+1, events)
		for i, result := range step.Results() {
			p.calls++
			p.call(taken, i, &result, stopped, events)
		}
		taken++
	}
	p.moments(taken, turns+1, events)
	for n := taken; n < turns && stopped; n++ {
		for i := range p.message(n).ToolCalls {
			p.add(n, i, Decision{Effect: NotReached, Reason: "the run had already stopped"})
		}
	}
	p.first += turns
}

// message returns the recorded message of a turn in the current part.
func (p *playing) message(turn int) replay.Message {
	if at := p.first + turn; at < len(p.turns) {
		return p.record.Messages[p.turns[at]]
	}
	return replay.Message{}
}

// add adds a decision about a call in a turn. A negative call means that the decision is about the turn.
func (p *playing) add(turn, call int, d Decision) {
	d.Message, d.Call, d.After = len(p.record.Messages), call, p.denied
	if at := p.first + turn; at < len(p.turns) {
		d.Message = p.turns[at]
	}
	if calls := p.message(turn).ToolCalls; call >= 0 && call < len(calls) {
		c := calls[call]
		d.ID, d.Tool, d.Arguments = c.ID, c.Function.Name, c.Function.Arguments
		d.Worked, d.Label = p.worked(d.Message, call), p.labels[c.ID]
	}
	p.decisions = append(p.decisions, d)
	p.denied = p.denied || d.prevents() || !d.Shadow && d.Effect == Mocked
}

// worked reports whether a call succeeded in the recording. If several calls have the same ID, answers to this ID
// belong to them in order.
func (p *playing) worked(message, call int) bool {
	calls := p.record.Messages[message].ToolCalls
	id, skip := calls[call].ID, 0
	for _, c := range calls[:call] {
		if c.ID == id {
			skip++
		}
	}
	for _, m := range p.record.Messages[message+1:] {
		switch {
		case m.Role == replay.RoleTool && m.ToolCallID == id:
			if skip--; skip < 0 {
				return !m.Error
			}
		case slices.ContainsFunc(m.ToolCalls, func(c replay.ToolCall) bool { return c.ID == id }):
			return false // later answers to the ID belong to that message's calls
		}
	}
	return false
}

// moments records the decisions that are not about calls, for the steps before to that begin at from.
func (p *playing) moments(from, to int, events []hooks.Event) {
	for _, e := range events {
		if e.Call.ID == "" && e.Call.Name == "" && e.Step >= from && e.Step < to {
			p.add(e.Step, -1, decisionOf(e))
		}
	}
}

// call records the decisions about a call, with its result.
func (p *playing) call(turn, index int, r *agent.ToolResult, stopped bool, events []hooks.Event) {
	about := func(match func(hooks.Event) bool) []hooks.Event {
		var out []hooks.Event
		for _, e := range events {
			if e.Step == turn && e.Call.Index == index && e.Call.Name != "" && match(e) {
				out = append(out, e)
			}
		}
		return out
	}
	for _, e := range about(func(e hooks.Event) bool { return e.Shadow }) {
		p.add(turn, index, decisionOf(e))
	}
	by := about(func(e hooks.Event) bool { return !e.Shadow && e.Hook == r.DecidedBy && e.Point == hooks.PreToolUse })
	stops := about(func(e hooks.Event) bool { return !e.Shadow && e.Decision == hooks.StopRun })
	d := Decision{Rule: r.DecidedBy, Point: hooks.PreToolUse}
	if len(by) > 0 {
		d = decisionOf(by[len(by)-1])
	}
	switch {
	case r.Reason == agent.ReasonNobodyToAsk, r.Reason == agent.ReasonRejected:
		d.Effect = Asked
		p.add(turn, index, d)
	case r.Denied():
		d.Effect, d.Failed = Denied, r.Reason == agent.ReasonHookFailed
		p.add(turn, index, d)
	case len(stops) > 0:
		p.add(turn, index, decisionOf(stops[0]))
	case r.Reason == agent.ReasonRunStopped && stopped:
		p.add(turn, index, Decision{Effect: NotReached, Reason: "the run was stopped"})
	case r.Mocked():
		d.Effect = Mocked
		p.add(turn, index, d)
	case r.Status == agent.ToolNotExecuted, r.Reason == agent.ReasonInvalid, r.Reason == agent.ReasonMalformed, r.Reason == agent.ReasonUnknownTool:
		p.add(turn, index, Decision{Effect: NotRun, Reason: r.Text()})
	}
	for _, e := range about(func(e hooks.Event) bool {
		if e.Shadow {
			return false
		}
		switch e.Decision {
		case hooks.Rewrite:
			return r.Executed() && r.Rewritten()
		case hooks.Replace, hooks.Withhold:
			return true
		case "":
			return e.Err != nil && e.Policy == "open" || e.Err != nil && e.Point != hooks.PreToolUse
		}
		return false
	}) {
		p.add(turn, index, decisionOf(e))
	}
}

// decisionOf returns the decision that an event describes.
func decisionOf(e hooks.Event) Decision {
	d := Decision{
		Point: e.Point, Call: -1, Effect: effectOf(e), Rule: e.Hook, Reason: e.Reason, Facts: e.Outcome.Facts(),
		Shadow: e.Shadow, Became: e.After, Failed: e.Err != nil,
	}
	if e.Err != nil {
		d.Reason = e.Err.Error()
	}
	if o := e.Origin; o != nil {
		d.File, d.Line = o.File, o.Line
	}
	return d
}

// verdict returns the run's verdict.
func (p *playing) verdict(policy string) Verdict {
	s := Score{Runs: 1, Calls: p.calls, Left: map[replay.DepartureKind]int{}}
	if len(p.left) > 0 {
		s.Left[p.left[0].Kind]++
	}
	for _, d := range p.decisions {
		s.count(d)
	}
	if slices.ContainsFunc(p.decisions, func(d Decision) bool { return d.Call >= 0 && d.prevents() }) {
		s.Hit = 1
	}
	s.judge(p.record, p.decisions)
	s.judged = p.judged
	return Verdict{Policy: policy, Score: s, Decisions: p.decisions}
}
