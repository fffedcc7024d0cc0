package capability

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// compactor decides which messages the model is shown. Each agent has one.
type compactor struct {
	UseCompaction
	known   *agent.Scratch[compactKnown]
	ask     agent.Driver // writes summaries
	counter TokenCounter // may be nil
}

// compacting wraps a driver, which receives the compacted messages.
type compacting struct {
	*compactor
	inner agent.Driver
}

var (
	_ agent.Streamer  = compacting{}
	_ agent.Describer = compacting{}
)

// Features returns the wrapped driver's Features.
func (d compacting) Features() agent.Features { return agent.FeaturesOf(d.inner) }

func (d compacting) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.turn(ctx, s, new(bool), func(s agent.State) mo.Result[agent.Step] { return d.inner.Next(ctx, s) })
}

func (d compacting) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	told := false
	return d.turn(ctx, s, &told, func(s agent.State) mo.Result[agent.Step] {
		return agent.Stream(ctx, d.inner, s, func(delta agent.Delta) { told = true; emit(delta) })
	})
}

// turn makes one model call. It compacts before the call if a limit is exceeded. If the service reports that the
// messages are too long, it compacts and repeats the call.
func (d compacting) turn(
	ctx context.Context, s agent.State, told *bool, ask func(agent.State) mo.Result[agent.Step],
) mo.Result[agent.Step] {
	shown, err := d.show(ctx, s, "")
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	result := ask(shown.state)
	if !d.NoRescue && !*told && !shown.tried && ctx.Err() == nil && agent.KindOf(result.Error()) == agent.KindContextLength {
		again, err := d.show(ctx, s, CompactContextLength)
		if err != nil {
			return mo.Err[agent.Step](err)
		}
		if again.done {
			shown, result = again, ask(again.state)
		}
	}
	reply, err := result.Get()
	if err != nil {
		return result
	}
	d.calibrate(s, shown.measured, reply.Usage.InputTokens)
	return mo.Ok(d.settle(s, reply))
}

// settle adds effects and usage to a reply, so that they are recorded with it.
func (d compacting) settle(s agent.State, reply agent.Step) agent.Step {
	known := d.known.Get(s)
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.latest.Number > compactedKey.Or(s, CompactedView{}).Number {
		reply.Prior = agent.EffectsOf(compactedKey.Set(known.latest)).Add(reply.Prior)
	}
	if known.owed != nil {
		reply.Usage, known.owed = reply.Usage.Add(*known.owed), nil
	}
	return reply
}

// showing is the view that the model is shown in one call.
type showing struct {
	state    agent.State
	measured int64 // its unscaled tokens
	tried    bool  // whether a compaction was tried
	done     bool
}

// show returns the view of s for the model. Without a trigger it compacts if a limit is exceeded. It returns an error
// that ends the call: from the context, from a hook that aborts the run, or from a stop.
func (c *compactor) show(ctx context.Context, s agent.State, trigger CompactionTrigger) (showing, error) {
	known := c.known.Get(s)
	known.mu.Lock()
	defer known.mu.Unlock()
	view := compactedKey.Or(s, CompactedView{})
	if known.latest.Number > view.Number {
		view = known.latest
	}
	fits := view.fits(s)
	c.look(s, view, fits, known)
	measured := known.tokens + c.around(s)
	tokens := c.scaleTokens(measured, known)
	out := showing{state: s, measured: measured}
	list := func() shownList {
		if !fits {
			return CompactedView{}.list(s, nil)
		}
		return view.list(s, known.head)
	}
	if trigger == "" {
		trigger, tokens = c.due(ctx, s, view, fits, tokens, known)
	}
	if trigger != "" {
		try := &attempt{compactor: c, trigger: trigger, state: s, list: list(), tokens: tokens, known: known, view: view, fits: fits}
		err := try.make(ctx)
		if out.tried = try.id != ""; err != nil {
			return out, err
		}
		if try.done {
			view, fits = known.latest, true
			c.look(s, view, fits, known)
			out.done, out.measured = true, known.tokens+c.around(s)
		}
	}
	if fits {
		out.state = s.WithView(list().messages...)
	}
	return out, nil
}

// due returns the exceeded limit, if any, and the number of tokens.
func (c *compactor) due(
	ctx context.Context, s agent.State, view CompactedView, fits bool, tokens int64, known *compactKnown,
) (CompactionTrigger, int64) {
	n := s.MessageCount()
	if fits {
		n += len(known.head) - view.From
	}
	limit, most := max(c.Tokens, view.NextTokens), max(c.Messages, view.NextMessages)
	if view.From > 0 && !fits { // the model is shown new messages
		limit, most = max(c.Tokens, grown(view.Tokens)), max(c.Messages, grown(view.Messages))
	}
	if c.Messages > 0 && n > most {
		return CompactMessages, c.countedView(ctx, s, view, fits, tokens, known)
	}
	// Before the first reply calibrates the estimate, it may be wrong by half.
	if c.Tokens == 0 || tokens <= limit && (known.ratio > 0 || c.counter == nil || tokens <= limit/2) {
		return "", tokens
	}
	if tokens = c.countedView(ctx, s, view, fits, tokens, known); tokens > limit {
		return CompactTokens, tokens
	}
	return "", tokens
}

// countedView returns the current view's token count. The driver's count calibrates the estimate.
func (c *compactor) countedView(
	ctx context.Context, s agent.State, view CompactedView, fits bool, estimate int64, known *compactKnown,
) int64 {
	if c.counter == nil {
		return estimate
	}
	var messages []agent.Message
	if fits {
		messages = view.list(s, known.head).messages
	}
	n := c.countTokens(ctx, s, messages, estimate)
	if measured := known.tokens + c.around(s); n != estimate && measured > 0 {
		known.ratio = min(max(float64(n)/float64(measured), 0.25), 4)
	}
	return n
}

// grown returns n plus a quarter.
func grown[N int | int64](n N) N { return n + max(n/4, 1) }

// attempt is one attempt to compact the view.
type attempt struct {
	*compactor
	trigger CompactionTrigger
	state   agent.State
	list    shownList
	tokens  int64
	known   *compactKnown
	view    CompactedView // before the attempt
	fits    bool

	id      string
	started time.Time
	used    *agent.Usage
	after   int64 // number of tokens shown afterwards
	done    bool
}

// make performs the attempt. A failure changes nothing except the limits for the next attempt.
func (a *attempt) make(ctx context.Context) error {
	s, n := a.state, len(a.list.messages)
	keepTokens := a.KeepTokens
	if a.trigger == CompactContextLength { // the actual limit is lower than assumed
		quarter := max(a.tokens/4, 1)
		keepTokens = min(cmp.Or(keepTokens, quarter), quarter)
	}
	part, ok := a.list.cut(a.Keep, keepTokens, func(m agent.Message) int64 { return a.scaleTokens(a.measure(m), a.known) })
	if !ok {
		a.postpone()
		return nil
	}
	a.id, a.started = "cmp_"+rand.Text(), time.Now()
	about := hooks.Compaction{ID: a.id, Messages: n, Tokens: a.tokens}
	denied, err := hooks.Of(s).PreCompact(ctx, s, about)
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		a.tellFailure(ctx, about, err)
		return err
	}
	if denied != nil {
		a.tellFailure(ctx, about, denied)
		return nil
	}
	summary, used, err := a.summarise(ctx, s, part.summary)
	if a.used = used; used != nil {
		owed := *used
		if a.known.owed != nil {
			owed = owed.Add(*a.known.owed)
		}
		a.known.owed = &owed
	}
	var view CompactedView
	var after []agent.Message
	if err == nil {
		view, after, err = a.replaceSection(ctx, part, summary)
	}
	if err != nil {
		a.tellFailure(ctx, about, err)
		if _, stop := errors.AsType[*agent.SignalError](err); stop {
			return err
		}
		return context.Cause(ctx)
	}
	a.known.latest, a.done = view, true
	about.MessagesAfter, about.Summary = len(after), summary
	hooks.Of(s).PostCompact(ctx, s, about)
	if s.Observed() {
		s.Emit(ctx, CompactionCompleted{
			Run: s.Run(), Step: s.RunStepCount(), ID: a.id, Trigger: a.trigger, MessagesBefore: n, MessagesAfter: len(after),
			TokensBefore: a.tokens, TokensAfter: a.after, Summary: summary, Usage: a.usage(), Took: time.Since(a.started),
		})
	}
	return nil
}

// replaceSection returns the view with a part replaced by the summary, and the messages that the view shows.
func (a *attempt) replaceSection(ctx context.Context, p part, summary string) (CompactedView, []agent.Message, error) {
	from, _ := a.list.at(p.cut)
	view := CompactedView{
		ID: a.id, From: from, Kept: p.kept, Summary: summary, Anchor: anchorOf(a.state, from),
		Number: a.view.Number + 1, Tokens: a.tokens, Messages: len(a.list.messages),
	}
	head := view.headOf(a.state)
	shown := slices.Concat(head, a.list.messages[p.cut:])
	gone := a.measureAll(a.list.messages[:p.cut]) - a.measureAll(head)
	if gone <= 0 {
		return view, nil, errors.New("the summary is not shorter than the messages that it replaces")
	}
	a.after = a.countTokens(ctx, a.state, shown, max(a.tokens-a.scaleTokens(gone, a.known), 0))
	if view.NextTokens = a.Tokens; a.after > a.Tokens*4/5 { // most tokens are in messages that must stay
		view.NextTokens = grown(a.after)
	}
	if view.NextMessages = a.Messages; len(shown) > a.Messages*4/5 {
		view.NextMessages = grown(len(shown))
	}
	return view, shown, nil
}

// postpone delays the next attempt until the shown messages have grown by a quarter.
func (a *attempt) postpone() {
	view := a.view
	view.Number++
	view.Tokens, view.Messages = a.tokens, len(a.list.messages)
	view.NextTokens, view.NextMessages = grown(view.Tokens), grown(view.Messages)
	a.known.latest = view
}

// tellFailure postpones the next attempt, and reports the failure.
func (a *attempt) tellFailure(ctx context.Context, about hooks.Compaction, err error) {
	a.postpone()
	about.Err = err
	s := a.state
	hooks.Of(s).CompactFailed(ctx, s, about)
	if s.Observed() {
		_, denied := errors.AsType[*hooks.DeniedError](err)
		s.Emit(ctx, CompactionFailed{
			Run: s.Run(), Step: s.RunStepCount(), ID: about.ID, Trigger: a.trigger, Messages: about.Messages, Tokens: about.Tokens,
			Denied: denied, Failure: agent.Failure{Kind: agent.KindOf(err), Text: err.Error()}, Usage: a.usage(), Took: time.Since(a.started),
		})
	}
}

func (a *attempt) usage() agent.Usage {
	if a.used == nil {
		return agent.Usage{Cost: mo.Some(0.0)}
	}
	return *a.used
}
