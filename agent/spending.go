package agent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/internal/startedrun"
)

// Spending is what a run used together with the runs that it started in this process, and
// those that they started: sub-agents, and agents that a tool or a hook runs with the context
// that it was given. It is a plain value.
type Spending struct {
	// Steps is the number of model turns, with those that have a reply and are not recorded yet.
	Steps int `json:"steps"`
	// Usage is what the model calls of all these consumed.
	Usage Usage `json:"usage"`
	// Unclear is whether a reply came with a usage that says nothing, or less than nothing,
	// so that Usage cannot be relied on.
	Unclear bool `json:"unclear,omitempty"`
	// Below is whether the runs below had a part in it.
	Below bool `json:"-"`
}

// reservedTokens is what a model call is taken to use whose request sets no limit.
const reservedTokens = 4096

var noSpending = Spending{Usage: noUsage}

// plus returns what both used together.
func (a *Spending) plus(b *Spending) Spending {
	return Spending{Steps: a.Steps + b.Steps, Usage: a.Usage.Add(b.Usage), Unclear: a.Unclear || b.Unclear, Below: a.Below}
}

// subtract returns a without what another run used, which is part of it.
func (a *Spending) subtract(b *Spending) Spending {
	negative := Usage{
		-b.Usage.InputTokens, -b.Usage.OutputTokens, -b.Usage.CacheReadTokens, -b.Usage.CacheWriteTokens, -b.Usage.ReasoningTokens,
		mo.Some(-b.Usage.Cost.OrEmpty()),
	}
	return Spending{Steps: a.Steps - b.Steps, Usage: a.Usage.Add(negative), Unclear: a.Unclear, Below: a.Below}
}

// isUnclear reports whether a usage says nothing, or something that cannot be.
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

// Spending returns what the current or last run used with the runs that it started. While the
// run is running it is what was used until now, whichever of its states is asked.
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

// keepChildren notes what the runs below have used until now, but for those that stand in
// the open step. The frame is the caller's.
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

// ownSpending returns what the run used itself, the reply of an open step included.
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

// childSpending returns what the runs used that calls of the step have started and that have
// not ended; nil when there are none.
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

// account counts what a run and the runs below it use while it runs.
type account struct {
	above  *live
	limits Limits
	simple bool // there is no limit but one of steps
	run    *Run // of the frame

	children atomic.Pointer[Spending] // of the runs below; nil before the first model call of one

	mu      sync.Mutex
	at      *stateData // what the model was asked with last
	replied bool       // since then
	reply   Usage      // of that reply
	again   *Usage     // of replies whose steps were not recorded; nil when there are none
	unclear bool       // some usage of the run was

	calls    int           // model calls of the runs below that are under way
	reserved int64         // output tokens that these may use
	freed    chan struct{} // closed when one of them has ended; nil when none waits for that

	told  int          // steps that the runs above know of; of the run's own goroutine
	taken atomic.Int64 // what the model call of the run itself has reserved with those above
}

// start begins to count for a run that begins or goes on with s, below the run that ctx
// belongs to, if it belongs to one.
func (a *account) start(ctx context.Context, s State, limits Limits) {
	d := s.read()
	a.limits, a.simple, a.run = limits, limits == (Limits{Steps: limits.Steps}), &d.run
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

// total returns what the run and the runs below have used.
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

// addReply counts the reply that the model gave when it was asked with d, and what it used.
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

// addFailure counts a step without a reply; d is the state that it is recorded in.
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

// keepRepeated returns s with the usage of replies that processors have dropped to ask again. Only the account knew of it.
func (a *account) keepRepeated(s State) State {
	d := s.copyWithFrame()
	d.usage = new(d.usage.Add(*a.again))
	a.mu.Lock()
	a.at, a.replied, a.again = d, false, nil
	a.mu.Unlock()
	return State{d}
}

// MayAskAgain reports whether the limits of tokens, cost and time of the run that s belongs to, and all limits of the
// runs above it, leave room for asking the model again for the same step, as a processor may do. False outside of a run.
func (s State) MayAskAgain() bool {
	l := s.read().live
	if l == nil {
		return false
	}
	limits := l.account.limits
	limits.Steps = 0
	spent := l.account.total()
	return limits.checkSpending(&spent, l.account.run.Started, State{}) == nil && l.account.exceededAbove() == nil
}

// tellSteps returns how many of n steps are new to the runs above. A step that a processor
// takes again is not.
func (a *account) tellSteps(n int) int {
	more := max(n-a.told, 0)
	a.told += more
	return more
}

// addAbove tells the runs above of what was used.
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

// reserve makes room with the limits of the runs above for a model call of s, until release:
// for one step, and the output tokens that its request allows, or 4,096. What calls under way
// may use counts as used, so that runs side by side wait for one another where little is left.
// A run that was started within a model call, by a hook of it, is part of what that has reserved,
// and does not wait. The error is that of ctx, or a SignalError with the limit that is reached.
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

// tryReserve reserves with all the runs above, or with none: busy is then one that has to wait
// for the calls that are under way below it, the next of which ends when freed is closed.
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

// take reserves with this run, unless it has reached a limit, or may have when the calls under
// way are back: freed is closed when one is.
func (a *account) take(tokens int64) (over *Signal, freed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	spent := a.totalLocked() // with what calls used whose reservation has ended
	if over := a.checkBelow(&spent); over != nil {
		return over, nil
	}
	if a.calls > 0 && a.limits != (Limits{}) {
		used := spent.Usage
		if tokens := used.Tokens(); tokens > 0 {
			used.Cost = mo.Some(used.Cost.OrEmpty() * float64(tokens+a.reserved) / float64(tokens)) // at what they cost until now
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

// release ends the reservation of the run's model call, if there is one, what it used being
// counted.
func (a *account) release() {
	if tokens := a.taken.Load(); tokens > 0 {
		a.taken.Store(0)
		a.free(tokens, nil)
	}
}

// free gives back what was reserved with the runs above, up to one of them.
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

// checkBelow returns the limit that the run has reached for those below it, which have used that
// with it.
func (a *account) checkBelow(spent *Spending) *Signal {
	if a.limits == (Limits{}) {
		return nil
	}
	over := a.limits.checkSpending(spent, a.run.Started, State{})
	if over != nil {
		over.Source = "limits of run " + string(a.run.ID)
		over.Message = fmt.Sprintf("the run that this one belongs to, %s of agent %q: %s", a.run.ID, a.run.Agent, over.Message)
	}
	return over
}

// exceeded reports whether the run has reached one of its limits in s, the state behind a step.
func (a *account) exceeded(s State) bool {
	if a.simple && a.children.Load() == nil { // most agents
		return a.limits.Steps != 0 && s.RunStepCount() >= a.limits.Steps
	}
	spent := a.total()
	return a.limits.checkSpending(&spent, a.run.Started, State{}) != nil
}

// exceededAbove returns the limit of a run above that is reached; nil when there is none.
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

// Limits is what a run may use together with the runs below it: see Spending. A limit that is
// zero is none, one that is less than zero, or no number, allows nothing. It is a plain value.
//
// A criterion that has a method Limits() (Limits, bool) holds its limits over the runs that
// the run starts, too: they are stopped when one is reached. Those of package continuation
// have it, and so has capability.UseGuards. See LimitsOf.
type Limits struct {
	// Steps is the number of model turns.
	Steps int
	// Tokens is input and output together.
	Tokens int64
	// Cost is in US dollars.
	Cost float64
	// Time is from the start of the run.
	Time time.Duration
}

// LimitsOf returns the limits that a criterion has, and whether it says nothing else about a run
// that Base lets go on: then it is not asked after steps whose calls ran, within the limits. It
// is what its method Limits returns, where it has one.
func LimitsOf(c Criterion) (limits Limits, only bool) {
	if limited, ok := c.(interface{ Limits() (Limits, bool) }); ok {
		return limited.Limits()
	}
	return Limits{}, c == Base
}

// Merge returns the limits that hold where both do: the smaller of each.
func (l Limits) Merge(m Limits) Limits {
	return Limits{smaller(l.Steps, m.Steps), smaller(l.Tokens, m.Tokens), smaller(l.Cost, m.Cost), smaller(l.Time, m.Time)}
}

// smaller returns the smaller of two limits, where zero is none.
func smaller[N int | int64 | float64 | time.Duration](a, b N) N {
	if a == 0 || math.IsNaN(float64(b)) || b != 0 && b < a {
		return b
	}
	return a
}

// StopFor returns the signal that ends the run of s because it has reached one of the limits,
// of several that with the weightiest reason; None while it may go on. Its Source is empty.
func (l Limits) StopFor(s State) mo.Option[Signal] {
	spent := s.Spending()
	if over := l.checkSpending(&spent, s.Run().Started, s); over != nil {
		return mo.Some(*over)
	}
	return mo.None[Signal]()
}

// checkSpending returns the signal for what a run has used that has begun then. S may be the zero State.
func (l Limits) checkSpending(spent *Spending, began time.Time, s State) *Signal {
	if spent.Usage.InputTokens < 0 || spent.Usage.OutputTokens < 0 || spent.Usage.Tokens() < 0 { // added up beyond what a number can hold
		spent.Unclear = true
	}
	switch {
	case l.Cost != 0 && l.costReached(spent):
		return l.costSignal(spent, s)
	case l.Tokens != 0 && (spent.Unclear || spent.Usage.Tokens() >= l.Tokens):
		return l.tokenSignal(spent)
	case l.Time != 0 && !began.IsZero() && time.Since(began) > l.Time:
		passed := time.Since(began)
		return &Signal{
			Reason: StopTimeLimit, Message: fmt.Sprintf("%s of at most %s passed", passed.Round(time.Millisecond), max(l.Time, 0)),
			Details: map[string]any{"elapsedSeconds": passed.Seconds(), "maxSeconds": max(l.Time, 0).Seconds()},
		}
	case l.Steps != 0 && spent.Steps >= l.Steps:
		return &Signal{
			Reason: StopStepsLimit, Message: fmt.Sprintf("%d of at most %d steps taken%s", spent.Steps, max(l.Steps, 0), spent.withBelow()),
			Details: map[string]any{"currentSteps": spent.Steps, "maxSteps": max(l.Steps, 0)},
		}
	}
	return nil
}

// withBelow says that a figure includes the runs below, where it does.
func (a *Spending) withBelow() string {
	if a.Below {
		return ", with the runs that it started"
	}
	return ""
}

func (l Limits) tokenSignal(spent *Spending) *Signal {
	limit, used := max(l.Tokens, 0), spent.Usage
	over := &Signal{Reason: StopTokenLimit, Details: map[string]any{"maxTokens": limit}}
	if spent.Unclear {
		over.Message = fmt.Sprintf("it is not known how many tokens the run used, so that the limit of %d cannot be kept: a reply came "+
			"without usage, or with one of less than nothing or of more than can be counted; have the driver set Usage, or do without "+
			"the limit of tokens", limit)
		return over
	}
	over.Message = fmt.Sprintf("%d of at most %d tokens used%s", used.Tokens(), limit, spent.withBelow())
	over.Details["totalTokens"], over.Details["inputTokens"], over.Details["outputTokens"] = used.Tokens(), used.InputTokens, used.OutputTokens
	return over
}

// costReached reports whether the limit of cost is reached, or cannot be kept.
func (l Limits) costReached(spent *Spending) bool {
	cost, known := spent.Usage.Cost.Get()
	return !known || spent.Unclear || !(cost < l.Cost) // so that no comparison with NaN lets the run go on
}

func (l Limits) costSignal(spent *Spending, s State) *Signal {
	limit := formatDollars(max(l.Cost, 0))
	over := &Signal{Reason: StopCostLimit, Details: map[string]any{"maxCost": max(l.Cost, 0)}}
	cost, known := spent.Usage.Cost.Get()
	switch {
	case !known:
		over.Message = fmt.Sprintf("the cost of the run is unknown, so that the limit of %s cannot be kept: %s came without a cost; "+
			"have the driver set Usage.Cost, or do without the cost limit", limit, s.firstWithoutCost())
		return over
	case spent.Unclear:
		over.Message = fmt.Sprintf("the cost of the run is unknown, so that the limit of %s cannot be kept: a reply came with a usage of "+
			"less than nothing, or of more than can be counted", limit)
		return over
	}
	over.Message = fmt.Sprintf("%s of at most %s spent%s", formatDollars(cost), limit, spent.withBelow())
	over.Details["currentCost"] = cost
	return over
}

// formatDollars writes an amount without the dust of floating point.
func formatDollars(amount float64) string {
	const dust = 1e6
	return "$" + strconv.FormatFloat(math.Round(amount*dust)/dust, 'f', -1, 64)
}

// firstWithoutCost names the first reply of the run that came without a cost.
func (s State) firstWithoutCost() string {
	for i, step := range s.RunSteps() {
		if step.Message().Role() == "" || step.Usage().Cost.IsPresent() {
			continue
		}
		if model := step.Reply().Model; model != "" {
			return fmt.Sprintf("the reply of model %q in step %d", model, i)
		}
		return fmt.Sprintf("the model's reply in step %d", i)
	}
	return "a model's reply"
}
