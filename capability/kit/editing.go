package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// The defaults of ContextEditing.
const (
	defaultEditTokens  = 100_000
	defaultKeepResults = 3
	defaultPlaceholder = "[this old result was removed to save room; call the tool again if it is needed]"
)

// ContextEditing hides old tool results from the model once there are many: a placeholder replaces an old result. Calls
// keep their answers, so call and answer are never separated. The transcript does not change, only the messages that
// the model is shown. The zero ContextEditing begins at 100,000 tokens and keeps the newest three results.
//
// It edits rarely, and hides many results each time. The shown messages keep their beginning until a limit is exceeded
// again, so that a provider's prompt cache stays useful. Its progress is kept in the session's metadata, and survives a
// restart.
//
// Results that the model has not seen yet are never hidden, regardless of Keep. Results shorter than the placeholder
// are not hidden either.
//
// A message is measured once in a run. From the first edit on, each step also copies the list of messages, one word for
// each message.
type ContextEditing struct {
	// Tokens is how many tokens, by Count, the model is shown before old results are hidden. Zero sets no limit. If
	// Results is zero, too, it means 100,000.
	Tokens int64
	// Results is how many results the model is shown before old ones are hidden. Zero sets no limit. It must be more
	// than Keep.
	Results int
	// Keep is how many of the newest results stay. Zero means three, and less than zero means that none stays.
	Keep int
	// AtLeast is the minimum number of tokens that hiding results for Tokens must save. A smaller saving is not worth a
	// changed prompt beginning. Zero means a tenth of Tokens, and less than zero means any number.
	AtLeast int64
	// Exclude names tools whose results stay, and are not counted by Keep or Results.
	Exclude []string
	// Placeholder replaces a result. Empty means a sentence that tells the model that the result was removed and that
	// it can call the tool again.
	Placeholder string
	// Count returns a message's number of tokens. Nil means an estimate: one token for four bytes of text and
	// arguments, four tokens for the message, and 1500 for an image or a file. It must be safe for concurrent use and
	// deterministic.
	Count func(agent.Message) int64
}

// ContextEdited: from this model call on, old results are hidden.
type ContextEdited struct {
	Run  agent.Run
	Step int
	// Results is the number of results that are newly hidden.
	Results int
	// Before and After are the tokens that the model is shown without and with the edit.
	Before, After int64
}

// EventName returns "context.edited".
func (ContextEdited) EventName() string { return "context.edited" }

// Name returns "context-editing".
func (ContextEditing) Name() string { return "context-editing" }

// Install puts the editing around the driver, inside the hooks.
func (e ContextEditing) Install(p capability.Plan) mo.Result[capability.Plan] {
	e = e.withDefaults()
	if err := e.check(); err != nil {
		return mo.Err[capability.Plan](err)
	}
	shared := &editor{e, agent.NewScratch[shownSize](nil)}
	return mo.Ok(p.WrapDriver(capability.Inside, e.Name(), func(inner agent.Driver) agent.Driver { return editing{shared, inner} }))
}

func (e ContextEditing) withDefaults() ContextEditing {
	if e.Tokens == 0 && e.Results == 0 {
		e.Tokens = defaultEditTokens
	}
	e.Keep = max(0, cmp.Or(e.Keep, defaultKeepResults))
	e.AtLeast = max(0, cmp.Or(e.AtLeast, e.Tokens/10))
	e.Placeholder = cmp.Or(e.Placeholder, defaultPlaceholder)
	e.Exclude = slices.Clone(e.Exclude)
	if e.Count == nil {
		e.Count = estimate
	}
	return e
}

func (e ContextEditing) check() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if e.Tokens < 0 {
		say("the limit of tokens is %d: it must not be negative, and zero means none", e.Tokens)
	}
	if e.Results < 0 {
		say("the limit of results is %d: it must not be negative, and zero means none", e.Results)
	}
	if e.Results > 0 && e.Results <= e.Keep {
		say("the limit of results is %d and the newest %d are kept: keep fewer, otherwise there is nothing to remove", e.Results, e.Keep)
	}
	return errors.Join(wrong...)
}

// estimate counts one token for four bytes of text, and a fixed number for an image or a file.
func estimate(m agent.Message) int64 {
	bytes, lumps := 0, int64(0)
	for _, part := range m.Content().Parts() {
		bytes += len(part.Text)
		if part.Kind == agent.PartImage || part.Kind == agent.PartFile {
			lumps++
		}
	}
	for _, call := range m.Calls() {
		bytes += len(call.Name) + len(call.Arguments)
	}
	const each, lump, bytesOfToken = 4, 1500, 4
	return each + int64(bytes/bytesOfToken) + lumps*lump
}

// edge is the point up to which results are hidden: all removable results before message At. Call is the call that the
// last hidden result answers. It shows whether the edge belongs to the current list of messages.
type edge struct {
	At   int    `json:"at"`
	Call string `json:"call"`
}

var editEdge = agent.ReservedKey[edge](reserved.InternalToken(), "kit.context_editing", agent.ScopeSession)

// shownSize caches the size of the messages that the model is shown in a run.
type shownSize struct {
	mu      sync.Mutex
	seen    int           // how many messages were measured
	last    agent.Message // the last measured message
	edge    int
	tokens  int64 // their tokens as shown to the model
	results []int // indices of results that can still be removed

	originals, view []agent.Message // the messages, and the messages shown with the edge viewEdge
	viewEdge        int
}

// editor decides which results the model is shown.
type editor struct {
	ContextEditing
	sizes *agent.Scratch[shownSize]
}

// removable reports whether a placeholder may replace a message.
func (e *editor) removable(m agent.Message) bool {
	return m.Role() == agent.RoleTool && !slices.Contains(e.Exclude, m.Tool()) &&
		(!m.Content().IsText() || len(m.Text()) > len(e.Placeholder))
}

func (e *editor) stoodFor(m agent.Message) agent.Message {
	return m.WithContent(agent.TextContent(e.Placeholder))
}

// gain returns how many tokens a placeholder saves.
func (e *editor) gain(m agent.Message) int64 { return e.Count(m) - e.Count(e.stoodFor(m)) }

// edgeOf returns the edge of s.
func edgeOf(s agent.State) edge {
	at := editEdge.Or(s, edge{})
	if at.At < 1 || at.At > s.MessageCount() || s.Message(at.At-1).CallID() != at.Call {
		return edge{} // the edge belongs to another list of messages
	}
	return at
}

// measure measures the messages that the model is about to be shown.
func (e *editor) measure(s agent.State, at edge, known *shownSize) {
	n := s.MessageCount()
	if known.seen > n || known.seen > 0 && s.Message(known.seen-1) != known.last || known.edge != at.At {
		known.seen, known.tokens, known.results, known.edge = 0, 0, nil, at.At
	}
	for i, m := range s.MessagesFrom(known.seen) {
		known.tokens += e.Count(m)
		switch {
		case !e.removable(m):
		case i < at.At:
			known.tokens -= e.gain(m)
		default:
			known.results = append(known.results, i)
		}
	}
	if known.seen = n; n > 0 {
		known.last = s.Message(n - 1)
	}
}

// showState returns s with the view for the model, and the effect that records the edge if it has moved.
func (e *editor) showState(ctx context.Context, s agent.State) (agent.State, agent.Effects) {
	known := e.sizes.Get(s)
	known.mu.Lock()
	defer known.mu.Unlock()
	at := edgeOf(s)
	e.measure(s, at, known)
	var moved agent.Effects
	if next, ok := e.nextEdge(ctx, s, known); ok {
		at, moved = next, agent.EffectsOf(editEdge.Set(next))
	}
	if at.At == 0 {
		return s, moved
	}
	return s.WithView(e.view(s, at, known)...), moved
}

// view returns the messages with placeholders before the edge. It compares each message with the previous one, because
// hooks can change the view for each call, and reuses the previous result for an unchanged message.
func (e *editor) view(s agent.State, at edge, known *shownSize) []agent.Message {
	if known.viewEdge != at.At { // the part before both edges does not change
		n := min(known.viewEdge, at.At, len(known.view))
		known.originals, known.view, known.viewEdge = known.originals[:n], known.view[:n], at.At
	}
	for i, m := range s.Messages() {
		switch {
		case i < len(known.originals) && known.originals[i] == m:
			continue
		case i < len(known.originals):
			known.originals, known.view = known.originals[:i], known.view[:i]
		}
		known.originals = append(known.originals, m)
		if i < at.At && e.removable(m) {
			m = e.stoodFor(m)
		}
		known.view = append(known.view, m)
	}
	known.originals, known.view = known.originals[:s.MessageCount()], known.view[:s.MessageCount()]
	return known.view
}

// nextEdge returns the new edge. Ok is false when it does not change.
func (e *editor) nextEdge(ctx context.Context, s agent.State, known *shownSize) (next edge, ok bool) {
	many := e.Results > 0 && len(known.results) > e.Results
	much := e.Tokens > 0 && known.tokens > e.Tokens
	if !many && !much {
		return next, false
	}
	seen := 0 // the model has seen all messages before its last reply
	for i, m := range s.MessagesBackward() {
		if m.Role() == agent.RoleAssistant {
			seen = i
			break
		}
	}
	var gain int64
	n := 0
	for _, i := range known.results[:max(0, len(known.results)-e.Keep)] {
		if i >= seen {
			break
		}
		m := s.Message(i)
		gain, n, next = gain+e.gain(m), n+1, edge{i + 1, m.CallID()}
	}
	if n == 0 || !many && gain < e.AtLeast {
		return next, false
	}
	before := known.tokens
	known.tokens, known.results, known.edge = before-gain, slices.Clone(known.results[n:]), next.At
	s.Emit(ctx, ContextEdited{Run: s.Run(), Step: s.RunStepCount(), Results: n, Before: before, After: known.tokens})
	return next, true
}

// editing wraps a driver, which receives the edited messages.
type editing struct {
	*editor
	inner agent.Driver
}

var (
	_ agent.Streamer  = editing{}
	_ agent.Describer = editing{}
)

// Features returns the wrapped driver's Features.
func (d editing) Features() agent.Features { return agent.FeaturesOf(d.inner) }

func (d editing) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return d.inner.Next(ctx, s) })
}

func (d editing) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return d.turn(ctx, s, func(s agent.State) mo.Result[agent.Step] { return agent.Stream(ctx, d.inner, s, emit) })
}

func (d editing) turn(ctx context.Context, s agent.State, ask func(agent.State) mo.Result[agent.Step]) mo.Result[agent.Step] {
	shown, moved := d.showState(ctx, s)
	result := ask(shown)
	if step, err := result.Get(); err == nil && moved.Len() > 0 {
		step.Prior = moved.Add(step.Prior)
		return mo.Ok(step)
	}
	return result
}
