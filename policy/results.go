package policy

import (
	"maps"
	"strings"
	"sync"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/internal/condition"
)

// actionResults holds the results of the actions at one firing of a point, for the rules behind them.
type actionResults struct {
	mu      sync.Mutex
	step    int
	call    string
	firing  hooks.Firing // at a point around runs; zero elsewhere
	last    int          // the last rule's turn
	actions map[*document]map[string]condition.Action
	tried   map[string]int
	after   action.Variables
}

// runResults holds a run's current results for each point.
type runResults struct {
	mu sync.Mutex
	at map[resultsKey]*actionResults
}

// resultsKey identifies a point for a policy.
type resultsKey struct {
	policy *Policy
	point  hooks.PointName
	index  int // the call's index in its step
}

var resultsOfRun = agent.NewScratch(func() *runResults { return &runResults{at: map[resultsKey]*actionResults{}} })

// resultsAt returns the results of the actions before a rule. Rules are asked in the order of their turns, so a rule with
// an earlier turn than the last one begins a new firing.
func resultsAt(c hooks.Context, u boundRule) *actionResults {
	key, call := resultsKey{policy: u.policy, point: c.Point()}, ""
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
	all := resultsOfRun.Get(c.State())
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.at[key]
	if a == nil || a.step != c.StepIndex() || a.call != call || a.firing != firing || u.turn() < a.last {
		a = &actionResults{step: c.StepIndex(), call: call, firing: firing, actions: map[*document]map[string]condition.Action{}, tried: map[string]int{}}
		all.at[key] = a
	}
	a.last = u.turn()
	return a
}

// values returns the additional values for a document's conditions.
func (a *actionResults) values(c hooks.Context, d *document) condition.Values {
	v := a.variables(action.Variables{}, c)
	a.mu.Lock()
	defer a.mu.Unlock()
	out := condition.Values{Actions: maps.Clone(a.actions[d]), Names: map[string]string{}}
	for name, value := range v.All() {
		if value != "" {
			out.Names[name] = value
		}
	}
	return out
}

// attempt counts the attempts of an action.
func (a *actionResults) attempt(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried[id]++
	return a.tried[id]
}

// variables returns the variables for an action: the given ones, the pipeline's variables, and the results of earlier
// actions.
func (a *actionResults) variables(v action.Variables, c hooks.Context) action.Variables {
	a.mu.Lock()
	defer a.mu.Unlock()
	v.LastHookStatus, v.HookResponse, v.SpawnOutput = a.after.LastHookStatus, a.after.HookResponse, a.after.SpawnOutput
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

// record stores the result of an awaited action.
func (a *actionResults) record(r *rule, answer *action.Answer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after = a.after.After(r.task.action, answer, err)
	result := condition.Action{Status: a.after.LastHookStatus}
	if answer != nil {
		result.Output = answer.Output
	}
	if a.actions[r.doc] == nil {
		a.actions[r.doc] = map[string]condition.Action{}
	}
	a.actions[r.doc][r.id] = result
}
