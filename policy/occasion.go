package policy

import (
	"maps"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/condition"
)

// occasion holds the results of the actions at one firing of a point, for the rules behind them.
type occasion struct {
	mu      sync.Mutex
	step    int
	call    string
	firing  hooks.Firing // of a point around runs; zero elsewhere
	last    int          // the turn of the last rule
	actions map[*document]map[string]condition.Action
	tried   map[string]int
	after   action.Variables
}

// moments holds the occasions of a run, by point and index of the call in its step. A new occasion replaces the old one,
// so that only current ones are kept.
type moments struct {
	mu sync.Mutex
	at map[momentKey]*occasion
}

type momentKey struct {
	policy *Policy
	point  hooks.PointName
	index  int
}

var past = agent.NewScratch(func() *moments { return &moments{at: map[momentKey]*occasion{}} })

// occasionOf returns the occasion for a rule. Rules are asked in the order of their turns, so a rule with an earlier
// turn than the last one begins a new occasion.
func occasionOf(c hooks.Context, r *rule) *occasion {
	key, call := momentKey{policy: r.owner, point: c.Point()}, ""
	if at, ok := c.(interface {
		Index() int
		Original() hooks.Call
	}); ok {
		key.index, call = at.Index(), at.Original().ID
	}
	var firing hooks.Firing
	if at, ok := c.(interface{ Firing() hooks.Firing }); ok {
		firing = at.Firing()
	}
	all := past.Get(c.State())
	all.mu.Lock()
	defer all.mu.Unlock()
	o := all.at[key]
	if o == nil || o.step != c.StepIndex() || o.call != call || o.firing != firing || r.turn < o.last {
		o = &occasion{step: c.StepIndex(), call: call, firing: firing, actions: map[*document]map[string]condition.Action{}, tried: map[string]int{}}
		all.at[key] = o
	}
	o.last = r.turn
	return o
}

// values returns the additional values for the conditions of a document.
func (o *occasion) values(c hooks.Context, d *document) condition.Values {
	v := o.variables(action.Variables{}, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	out := condition.Values{Actions: maps.Clone(o.actions[d]), Names: map[string]string{}}
	for name, value := range v.All() {
		if value != "" {
			out.Names[name] = value
		}
	}
	return out
}

// attempt counts the attempts of an action.
func (o *occasion) attempt(id string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried[id]++
	return o.tried[id]
}

// variables returns the variables for an action: the given ones, those of the pipeline, and the results of earlier
// actions.
func (o *occasion) variables(v action.Variables, c hooks.Context) action.Variables {
	o.mu.Lock()
	defer o.mu.Unlock()
	v.LastHookStatus, v.HookResponse, v.SpawnOutput = o.after.LastHookStatus, o.after.HookResponse, o.after.SpawnOutput
	at, ok := c.(interface{ Pipeline() hooks.Pipeline })
	if !ok {
		return v
	}
	p := at.Pipeline()
	v.NextStage, v.MaxIterations, v.LastDecision = p.NextStage, p.MaxIterations, p.LastDecision
	v.Progress, v.Status, v.Ctx = p.Progress, p.Status, p.Context
	v.ChangedFiles, v.StageOutputs = strings.Join(p.ChangedFiles, "\n"), strings.Join(p.StageOutputs, "\n")
	if p.Err != nil {
		v.Error = p.Err.Error()
	}
	return v
}

// record stores the result of an action for which the rule waited.
func (o *occasion) record(r *rule, answer *action.Answer, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.after = o.after.After(r.act, answer, err)
	result := condition.Action{Status: o.after.LastHookStatus}
	if answer != nil {
		result.Output = answer.Output
	}
	if o.actions[r.doc] == nil {
		o.actions[r.doc] = map[string]condition.Action{}
	}
	o.actions[r.doc][r.id] = result
}
