package capability

import (
	"errors"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// UseDurability records the agent's runs in a store, so that they survive the process: see package durable. Its
// wrappers are outside the hooks and inside telemetry, and record values as changed by the hooks. A run whose questions
// are answered later also needs UseApproval(agent.ParkApprover).
type UseDurability struct {
	// Keeper records the runs. Several agents can share one. Required.
	Keeper *durable.Keeper
}

// Name returns "durability": an agent can have only one.
func (UseDurability) Name() string { return "durability" }

// After returns "telemetry", so that spans include the writes to the journal.
func (UseDurability) After() []string { return []string{"telemetry"} }

// keptWith returns a sub-agent's plan whose run the keeper records in the parent run's journal.
func (p Plan) keptWith(k *durable.Keeper) (Plan, error) {
	if k == nil && p.keeper == nil {
		return p, nil
	}
	if k == nil {
		return p, errors.New("its runs are durable but those of its parent agent are not: give the parent UseDurability, too")
	}
	u := UseDurability{Keeper: k}
	p.aroundRun, p.aroundStep = p.aroundRun.without(u.Name()), p.aroundStep.without(u.Name())
	p.wrapDriver, p.wrapExecutor = p.wrapDriver.without(u.Name()), p.wrapExecutor.without(u.Name())
	p.wrapApprover = p.wrapApprover.without(u.Name())
	return u.Install(p).Get()
}

// Install puts the keeper around run, step, driver and executor, and among the observers if it stores events.
func (u UseDurability) Install(p Plan) mo.Result[Plan] {
	k := u.Keeper
	if k == nil {
		return mo.Err[Plan](errors.New("no keeper: set Keeper to a result of durable.Keep"))
	}
	name := u.Name()
	p.keeper = k
	if k.ObservesEvents() && !slices.Contains(p.observers, agent.Observer(k)) { // a sub-agent may have it already
		p = p.WithObserver(k)
	}
	p = p.AroundRun(Outside, name, k.AroundRun()).AroundRun(Inside, name, k.AroundRunInside())
	p = p.AroundStep(Outside, name, k.AroundStep()).WrapDriver(Outside, name, k.WrapDriver).WrapExecutor(Outside, name, k.WrapExecutor)
	return mo.Ok(p.WrapApprover(Inside, name, k.WrapApprover)) // inside the hooks, so that it sees only people's answers
}
