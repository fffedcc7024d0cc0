package gate

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// Options configures a Watcher.
type Options struct {
	// Host has the secrets that webhooks name.
	Host action.Host
	// Hosts are the names of this host, for files and commands. Nil means that of the operating system.
	Hosts []string
	// Owner is the name of the watcher in claims, such as that of the worker beside it. Empty means a random one.
	Owner string
	// Callbacks is the base of the URLs where callbacks are answered: the address under which people reach the Handler, such
	// as "https://desk.example.com". Without it, callbacks are left to other watchers.
	Callbacks string
	// Key is the secret from which tokens are derived: at least 16 bytes. Watchers with the same key send the same URLs. Nil
	// means a random key: then a watcher that takes a callback over sends a URL of its own, and both are valid.
	Key []byte
	// Claim is how long the gates of a watcher that has died stay with it. Zero means 30 seconds.
	Claim time.Duration
	// Poll is how often the watcher looks for gates when the store reports no change. Zero means one second.
	Poll time.Duration
	// Limit is the maximum number of gates that the watcher has at a time. Zero means 1000.
	Limit int
	// Parallel is the maximum number of checks and webhooks at a time. Zero means 8.
	Parallel int
	// Log receives decisions and failures, never tokens. Nil disables logging.
	Log *slog.Logger
}

// Watcher watches the gates of a store.
type Watcher struct {
	store   Store
	options Options
	kinds   []durable.WaitKind

	gates map[key]*watched // only the goroutine of Run uses it, and valid
	valid time.Time        // until then, the claims are certain
	slots chan struct{}
	wake  chan struct{} // receives when a check has ended
	all   sync.WaitGroup
}

// key identifies a wait.
type key struct {
	run  agent.RunID
	wait string
}

// watched is a gate that belongs to the watcher. While a check runs, only its goroutine uses the gate, the question and
// the fields announced and done.
type watched struct {
	wait     durable.Wait
	gate     *action.WaitingGate
	question agent.Question
	// unread is why the gate could not be read.
	unread error
	// next is when the next check is due, cancel ends a running one; nil when none runs.
	next   time.Time
	cancel context.CancelFunc
	over   chan struct{} // closed when the running check has ended
	// done is set when nothing remains to be done: the webhook was sent, or the gate is decided.
	done bool
}

// Store is the part of a durable.Store that a Watcher needs.
type Store interface {
	CallbackStore
	Changes(ctx context.Context) <-chan struct{}
}

// NewWatcher returns a watcher on a store.
func NewWatcher(store Store, o Options) (*Watcher, error) {
	if o.Hosts == nil {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("watching gates: %w", err)
		}
		o.Hosts = []string{host}
	}
	if o.Key != nil && len(o.Key) < 16 {
		return nil, fmt.Errorf("watching gates: the key has %d bytes: it needs at least 16", len(o.Key))
	}
	if o.Key == nil {
		o.Key = []byte(rand.Text())
	}
	o.Owner = cmp.Or(o.Owner, "gates-"+rand.Text())
	o.Claim, o.Poll = cmp.Or(o.Claim, 30*time.Second), cmp.Or(o.Poll, time.Second)
	o.Limit, o.Parallel = cmp.Or(o.Limit, 1000), cmp.Or(o.Parallel, 8)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w := &Watcher{
		store: store, options: o, kinds: []durable.WaitKind{durable.WaitFile, durable.WaitCommand}, gates: map[key]*watched{},
		slots: make(chan struct{}, o.Parallel), wake: make(chan struct{}, 1),
	}
	if o.Callbacks != "" {
		w.kinds = append(w.kinds, durable.WaitCallback)
	}
	return w, nil
}

// Run watches until ctx is done. It then ends running checks, and returns when they have ended. Call it once.
func (w *Watcher) Run(ctx context.Context) {
	defer w.all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := w.store.Changes(ctx)
	claim := time.NewTicker(w.options.Poll)
	defer claim.Stop()
	w.claim(ctx)
	for {
		next := w.start(ctx)
		select {
		case <-ctx.Done():
			return
		case <-claim.C:
			w.claim(ctx)
		case <-changes:
			w.claim(ctx)
		case <-w.wake:
		case <-next:
		}
	}
}

// claim asks the store which gates belong to the watcher, and forgets those that do no longer: all of them when the store
// does not answer before the claims may have expired.
func (w *Watcher) claim(ctx context.Context) {
	asked := time.Now()
	until := asked.Add(w.options.Claim)
	if asked.Before(w.valid) {
		until = w.valid // then the checks must end
	}
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	waits, err := w.store.ClaimChecks(within, w.options.Owner, w.options.Claim, w.options.Limit, w.kinds, w.options.Hosts...)
	if err != nil && ctx.Err() == nil {
		w.options.Log.ErrorContext(ctx, "gate: claiming gates failed", "error", err)
	}
	switch {
	case err == nil:
		w.valid = asked.Add(w.options.Claim / 2) // the store renews claims of which less than half is left
	case time.Now().Before(w.valid):
		return
	}
	mine := lo.SliceToMap(waits, func(wait durable.Wait) (key, durable.Wait) { return key{wait.Run, wait.ID}, wait })
	for k, g := range w.gates {
		if _, ok := mine[k]; ok {
			continue
		}
		if g.cancel != nil {
			g.cancel()
		}
		delete(w.gates, k)
	}
	for k, wait := range mine {
		if w.gates[k] == nil {
			w.gates[k] = w.newWatched(wait)
		}
	}
}

// newWatched reads a gate.
func (w *Watcher) newWatched(wait durable.Wait) *watched {
	g := &watched{wait: wait}
	about, err := durable.InterventionOf(wait)
	if err == nil {
		var ok bool
		if g.question, ok = durable.GateOf(wait, about); !ok {
			err = fmt.Errorf("wait %s of run %s is no gate", wait.ID, wait.Run)
		}
	}
	if err == nil {
		g.gate, err = action.ReadWaitingGate(g.question.Gate, w.options.Host)
	}
	g.unread = err
	return g
}

// start starts the checks that are due, as far as there are free slots, and returns a channel that receives when the next
// one is due; nil when none is.
func (w *Watcher) start(ctx context.Context) <-chan time.Time {
	now := time.Now()
	var next time.Time
	for _, g := range w.gates {
		if g.cancel != nil {
			select {
			case <-g.over:
				g.cancel()
				g.cancel = nil
			default:
				continue
			}
		}
		if g.done {
			continue
		}
		if g.next.After(now) {
			if next.IsZero() || g.next.Before(next) {
				next = g.next
			}
			continue
		}
		select {
		case w.slots <- struct{}{}:
			w.check(ctx, g)
		default: // the end of another check wakes the watcher
			return nil
		}
	}
	if next.IsZero() {
		return nil
	}
	return time.After(next.Sub(now))
}

// check checks a gate once, in a goroutine.
func (w *Watcher) check(ctx context.Context, g *watched) {
	g.over = make(chan struct{})
	if ctx, g.cancel = context.WithCancel(ctx); !g.wait.Deadline.IsZero() {
		cancel := g.cancel
		var release context.CancelFunc
		ctx, release = context.WithDeadline(ctx, g.wait.Deadline)
		g.cancel = func() { release(); cancel() }
	}
	g.next = time.Now().Add(w.options.Poll)
	if g.gate != nil {
		g.next = time.Now().Add(g.gate.Every())
	}
	w.all.Go(func() {
		answer, err := w.look(ctx, g)
		about := []any{"run", g.wait.Run, "wait", g.wait.ID}
		_, ofStore := errors.AsType[*storeError](err)
		switch {
		case ctx.Err() != nil: // the deadline, or another watcher, decides
		case ofStore:
			w.options.Log.ErrorContext(ctx, "gate: watching a gate failed", append(about, "error", err)...)
		case err != nil:
			w.options.Log.WarnContext(ctx, "gate: a gate failed", append(about, "error", err)...)
			answer = new(g.failureAnswer(err))
		}
		if answer != nil {
			w.decide(ctx, g, *answer)
		}
		close(g.over)
		<-w.slots
		select {
		case w.wake <- struct{}{}:
		default:
		}
	})
}

// storeError is an error of the store, after which the watcher tries again.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }

func (e *storeError) Unwrap() error { return e.err }

// decide records the answer to a gate, also when ctx has ended meanwhile.
func (w *Watcher) decide(ctx context.Context, g *watched, a agent.Approval) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.options.Claim)
	defer cancel()
	a.Author, a.By, a.Covers = agent.AuthorEvent, g.question.By, []string{g.question.ID()}
	_, err := durable.Decide(ctx, w.store, g.wait, a)
	about := []any{"run", g.wait.Run, "wait", g.wait.ID, "verdict", a.Verdict.String()}
	switch {
	case err == nil:
		w.options.Log.InfoContext(ctx, "gate: decided", about...)
		g.done = true
	case errors.Is(err, durable.ErrAnswered), errors.Is(err, durable.ErrChanged), errors.Is(err, durable.ErrNotFound), errors.Is(err, durable.ErrExpired):
		g.done = true
	default:
		w.options.Log.ErrorContext(ctx, "gate: recording an answer failed", append(about, "error", err)...)
		g.next = time.Now().Add(w.options.Claim)
	}
}

// look checks a gate, or announces it. It returns nil when it is not answered.
func (w *Watcher) look(ctx context.Context, g *watched) (*agent.Approval, error) {
	switch {
	case g.unread != nil:
		return nil, g.unread
	case g.gate.By() == action.GateCallback:
		err := w.announce(ctx, g)
		g.done = err == nil
		return nil, err
	default:
		return g.gate.Check(ctx)
	}
}

// failureAnswer returns the answer for a gate that has failed. A gate that cannot be read denies its call.
func (g *watched) failureAnswer(err error) agent.Approval {
	if g.gate == nil {
		return agent.Approval{Verdict: agent.RejectAndContinue, Reason: fmt.Sprintf("the gate failed: %v", err)}
	}
	return g.gate.FailureAnswer(err)
}

// announce makes a token for a callback and sends the webhook. A token that another watcher has made with another key, and may
// have sent, stays valid.
func (w *Watcher) announce(ctx context.Context, g *watched) error {
	token := w.token(g.wait)
	err := w.store.AddToken(ctx, g.wait.Run, g.wait.ID, durable.TokenHash(token))
	switch {
	case errors.Is(err, durable.ErrNotFound): // it was decided meanwhile
		return nil
	case err != nil:
		return &storeError{err}
	}
	return g.gate.Announce(ctx, strings.TrimRight(w.options.Callbacks, "/")+Path+token, g.wait.Deadline)
}

// token returns the token of a wait.
func (w *Watcher) token(wait durable.Wait) string {
	mac := hmac.New(sha256.New, w.options.Key)
	fmt.Fprintf(mac, "callback\x00%s\x00%s", wait.Run, wait.ID)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
