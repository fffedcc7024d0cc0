package agent

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// Spending is the usage of one run and all runs below it in this process. Below it are the runs that it started, the
// runs that they started, and so on. These are sub-agents, and agents that a tool or a hook runs with the context that
// it received. It is a plain value.
type Spending struct {
	// Steps is the number of model turns. It includes turns with a reply that are not recorded yet.
	Steps int `json:"steps"`
	// Usage is the sum over all model calls.
	Usage Usage `json:"usage"`
	// Unclear reports that Usage is not reliable, because a reply came with no usage or with a negative one.
	Unclear bool `json:"unclear,omitempty"`
	// Below reports whether runs below contributed to the usage.
	Below bool `json:"-"`
}

// reservedTokens is the reservation for a model call whose request sets no limit.
const reservedTokens = 4096

var noSpending = Spending{Usage: noUsage}

// plus returns the sum of both.
func (a *Spending) plus(b *Spending) Spending {
	return Spending{Steps: a.Steps + b.Steps, Usage: a.Usage.Add(b.Usage), Unclear: a.Unclear || b.Unclear, Below: a.Below}
}

// subtract returns a without b, the usage of another run that a includes.
func (a *Spending) subtract(b *Spending) Spending {
	negative := Usage{
		-b.Usage.InputTokens, -b.Usage.OutputTokens, -b.Usage.CacheReadTokens, -b.Usage.CacheWriteTokens, -b.Usage.ReasoningTokens,
		mo.Some(-b.Usage.Cost.OrEmpty()),
	}
	return Spending{Steps: a.Steps - b.Steps, Usage: a.Usage.Add(negative), Unclear: a.Unclear, Below: a.Below}
}

// isUnclear reports whether a usage is missing or invalid.
func isUnclear(u *Usage) bool {
	cost, known := u.Cost.Get()
	return u.Tokens() == 0 && !known || u.InputTokens < 0 || u.OutputTokens < 0 || u.Tokens() < 0 || cost < 0
}

func (a *Spending) check() error {
	if a == nil {
		return nil
	}
	return firstError(checkCount("/steps", int64(a.Steps)), errorBelow("/usage", a.Usage.check()))
}

// Spending returns the usage of the current or last run and the runs that it started. While the run is running, all of
// its states return the usage until now.
func (s State) Spending() Spending {
	d := s.read()
	if l := d.live; l != nil {
		return l.account.total()
	}
	spent := d.ownSpending()
	for _, below := range []*Spending{d.children, d.open.childSpending()} {
		if below != nil {
			spent = spent.plus(below)
			spent.Below = true
		}
	}
	return spent
}

// keepChildren records the usage of the runs below until now, except those in the open step. The caller owns the frame.
func (d *stateData) keepChildren() {
	if d.live == nil {
		return
	}
	d.children = d.live.account.children.Load()
	if waiting := d.open.childSpending(); waiting != nil && d.children != nil {
		if rest := d.children.subtract(waiting); rest.Steps > 0 || rest.Usage.Tokens() > 0 {
			d.children = &rest
		} else {
			d.children = nil
		}
	}
}

// ownSpending returns the run's own usage, including the reply of an open step.
func (d *stateData) ownSpending() Spending {
	own := Spending{Steps: d.steps.Len() - d.first, Usage: *d.usage}
	for _, step := range d.steps.From(d.first) {
		used := step.Usage()
		own.Unclear = own.Unclear || step.Message().Role() == RoleAssistant && isUnclear(&used)
	}
	if d.open != nil {
		own.Steps++
		own.Usage = own.Usage.Add(d.open.reply.Usage)
		own.Unclear = own.Unclear || isUnclear(&d.open.reply.Usage)
	}
	return own
}

// childSpending returns the usage of unfinished runs that the step's calls have started, or nil when there are none.
func (o *openStep) childSpending() *Spending {
	if o == nil {
		return nil
	}
	var all *Spending
	for i := range o.calls {
		if child := o.calls[i].child; child.data != nil {
			used := child.Spending()
			all = new(cmp.Or(all, &noSpending).plus(&used))
		}
	}
	return all
}

// account counts the usage of a running run and the runs below it.
type account struct {
	above  *live
	limits Limits // from the criterion and extra
	extra  Limits // from RunSettings, which no criterion checks
	run    *Run   // in the frame
	began  time.Time

	children atomic.Pointer[Spending] // usage of the runs below, nil before their first model call

	mu      sync.Mutex
	at      *stateData // the state of the last model call
	replied bool       // that model call has a reply
	reply   Usage      // usage in that reply
	again   *Usage     // usage of replies whose steps were not recorded, nil when there are none
	unclear bool       // some usage was missing or invalid

	calls    int           // model calls in progress of the runs below
	reserved int64         // output tokens that these calls can use
	freed    chan struct{} // closed when one of these calls has ended, nil when no run waits for that

	told  int          // steps reported to the runs above, used only by the run's goroutine
	taken atomic.Int64 // tokens that the run's own model call has reserved with the runs above
}

// start starts counting for a run that begins or resumes with s. The run that ctx belongs to, if any, is above it.
// Limits come from the criterion, and extra from RunSettings.
func (a *account) start(ctx context.Context, s State, limits, extra Limits) {
	d := s.read()
	limits = limits.Merge(extra)
	a.limits, a.extra, a.run = limits, extra, &d.run
	a.began = d.began()
	a.above, _ = startedrun.Above(ctx).(*live)
	a.at = d
	if d.steps.Len() > d.first || d.open != nil {
		a.unclear = d.ownSpending().Unclear
	}
	if d.open != nil {
		a.replied, a.reply = true, d.open.reply.Usage
	}
	a.told = a.totalLocked().Steps
	children := d.children
	if waiting := d.open.childSpending(); waiting != nil {
		children = new(cmp.Or(children, &noSpending).plus(waiting))
	}
	a.children.Store(children)
}

// total returns the usage of this run and the runs below.
func (a *account) total() Spending {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.totalLocked()
}

// totalLocked returns the total to callers that hold the lock.
func (a *account) totalLocked() Spending {
	spent := Spending{Steps: a.at.steps.Len() - a.at.first, Usage: *a.at.usage, Unclear: a.unclear}
	if a.replied {
		spent.Steps++
		addTo(&spent.Usage, &a.reply)
	}
	if a.again != nil {
		addTo(&spent.Usage, a.again)
	}
	if below := a.children.Load(); below != nil {
		spent = spent.plus(below)
		spent.Below = true
	}
	return spent
}

// addReply counts a reply and its usage. D is the state with which the model was asked.
func (a *account) addReply(d *stateData, used *Usage) {
	unclear := isUnclear(used)
	a.mu.Lock()
	again := a.replied && a.at.steps.Len() == d.steps.Len() // a processor asks again
	if again {
		a.again = new(cmp.Or(a.again, &noUsage).Add(a.reply))
	}
	a.at, a.replied, a.reply = d, true, *used
	a.unclear = a.unclear || unclear
	a.mu.Unlock()
	if a.above != nil {
		a.addAbove(&Spending{Steps: a.tellSteps(d.steps.Len() - d.first + 1), Usage: *used, Unclear: unclear})
	}
}

// addFailure counts a step without a reply. D is the state that records it.
func (a *account) addFailure(d *stateData) {
	a.mu.Lock()
	if a.replied && a.at.steps.Len() == d.steps.Len()-1 { // the model was asked again, and failed
		a.again = new(cmp.Or(a.again, &noUsage).Add(a.reply))
	}
	a.at, a.replied = d, false
	a.mu.Unlock()
	if a.above != nil {
		a.addAbove(&Spending{Steps: a.tellSteps(d.steps.Len() - d.first), Usage: noUsage})
	}
}

// keepRepeated returns s with the usage of replies that processors dropped to ask the model again. Until
// keepRepeated is called, only the account includes this usage.
func (a *account) keepRepeated(s State) State {
	d := s.copyWithFrame()
	d.usage = new(d.usage.Add(*a.again))
	a.mu.Lock()
	a.at, a.replied, a.again = d, false, nil
	a.mu.Unlock()
	return State{d}
}

// MayAskAgain reports whether the limits allow another model call for the same step, such as a retry by a processor. It
// checks the token, cost and time limits of s's run, and all limits of the runs above. It is false outside a run.
func (s State) MayAskAgain() bool {
	l := s.read().live
	if l == nil {
		return false
	}
	limits := l.account.limits
	limits.Steps = 0
	spent := l.account.total()
	return limits.checkSpending(&spent, l.account.began, State{}) == nil && l.account.exceededAbove() == nil
}

// tellSteps returns how many of n steps are new to the runs above. A step that a processor repeats is not new.
func (a *account) tellSteps(n int) int {
	more := max(n-a.told, 0)
	a.told += more
	return more
}

// addAbove adds usage to the runs above.
func (a *account) addAbove(used *Spending) {
	for above := a.above; above != nil; above = above.account.above {
		for {
			old := above.account.children.Load()
			if above.account.children.CompareAndSwap(old, new(cmp.Or(old, &noSpending).plus(used))) {
				break
			}
		}
	}
}

// reserve reserves a model call within the limits of the runs above, until release is called. It reserves one step and
// the output tokens that the request in s allows, or 4,096 if the request sets no limit. Reservations of calls in
// progress count as used, so that parallel runs wait for each other when little remains. A run that a model call's hook
// has started is part of that call's reservation and does not wait. The error comes from ctx, or is a SignalError with
// the reached limit.
func (a *account) reserve(ctx context.Context, s State) error {
	d := s.read()
	tokens := int64(cmp.Or(d.oneCall().request, d.request, &emptyRequest).MaxOutputTokens)
	if tokens <= 0 {
		tokens = reservedTokens
	}
	for l := a.above; l != nil; l = l.account.above {
		if l.account.taken.Load() > 0 {
			return nil
		}
	}
	for {
		busy, freed, err := a.tryReserve(tokens)
		switch {
		case err != nil:
			return err
		case busy == nil:
			a.taken.Store(tokens)
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryReserve reserves with all the runs above, or with none. If it reserves with none, busy is a run that must wait for
// the calls in progress below it. Freed is closed when the next of these calls ends.
func (a *account) tryReserve(tokens int64) (busy *live, freed <-chan struct{}, err error) {
	for l := a.above; l != nil; l = l.account.above {
		over, freed := l.account.take(tokens)
		if over == nil && freed == nil {
			continue
		}
		a.free(tokens, l)
		if over != nil {
			return nil, nil, &SignalError{*over}
		}
		return l, freed, nil
	}
	return nil, nil, nil
}

// take reserves with this run. Over is set if the run has reached a limit. Freed is set if the calls in progress may
// still reach one. It is closed when one of these calls ends.
func (a *account) take(tokens int64) (over *Signal, freed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	spent := a.totalLocked() // includes calls whose reservation has ended
	if over := a.checkBelow(&spent); over != nil {
		return over, nil
	}
	if a.calls > 0 && a.limits != (Limits{}) {
		used := spent.Usage
		if tokens := used.Tokens(); tokens > 0 {
			used.Cost = mo.Some(used.Cost.OrEmpty() * float64(tokens+a.reserved) / float64(tokens)) // at the average cost per token until now
		}
		used.OutputTokens += a.reserved
		if a.checkBelow(&Spending{Steps: spent.Steps + a.calls, Usage: used}) != nil {
			if a.freed == nil {
				a.freed = make(chan struct{})
			}
			return nil, a.freed
		}
	}
	a.calls++
	a.reserved += tokens
	return nil, nil
}

// release ends the reservation for the run's model call, if any, after its usage was counted.
func (a *account) release() {
	if tokens := a.taken.Load(); tokens > 0 {
		a.taken.Store(0)
		a.free(tokens, nil)
	}
}

// free releases a reservation with the runs above, up to end.
func (a *account) free(tokens int64, end *live) {
	for l := a.above; l != end; l = l.account.above {
		above := &l.account
		above.mu.Lock()
		above.calls--
		above.reserved -= tokens
		if above.freed != nil {
			close(above.freed)
			above.freed = nil
		}
		above.mu.Unlock()
	}
}

// exceededAbove returns the limit that a run above has reached, or nil.
func (a *account) exceededAbove() *Signal {
	for l := a.above; l != nil; l = l.account.above {
		if l.account.limits == (Limits{}) {
			continue
		}
		spent := l.account.total()
		if over := l.account.checkBelow(&spent); over != nil {
			return over
		}
	}
	return nil
}
