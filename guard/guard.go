package guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/nils"
	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Rules give hooks. A *policy.Policy is such a set of rules.
type Rules interface {
	// Hooks returns one hook for each rule.
	Hooks() ([]hooks.Hook, error)
	// Hash identifies the rules. An approval does not count under other rules.
	Hash() string
}

// Recorder records calls, for example as spans. A *telemetry.Telemetry is one.
type Recorder interface {
	// Follow prepares the record of a session's calls. End releases it.
	Follow(ctx context.Context, s agent.State) (end func())
	WrapExecutor(inner agent.Executor) agent.Executor
	WrapApprover(inner agent.Approver) agent.Approver
}

// Limits are limits for a session and its children together. Zero means no limit.
type Limits struct {
	// Calls is the number of calls that may run.
	Calls int
	// Time is how long the session may run. It also ends calls that are running.
	Time time.Duration
}

// Config configures a Guard.
type Config struct {
	// Name names the guarded agent in events, spans and conditions.
	Name string
	// Rules and Hooks decide on calls. Rules come first.
	Rules Rules
	Hooks []hooks.Hook
	// Tools describes the tools of the host. If it is not empty, calls of other tools are refused, and New reports a hook
	// that can never match.
	Tools agent.Tools
	// Observer receives all sessions' events. It must not call a session. Nil means none.
	Observer agent.Observer
	// Recorder records the calls. Nil means that nothing is recorded.
	Recorder Recorder
	// Approver is asked about calls that need approval, while other calls of the session go on. When it answers Park, the
	// host must ask: see AskError. Nil means that there is no person to ask, so that such calls are denied.
	Approver agent.Approver
	// Key seals tokens and saved ledgers: at least 32 random bytes, the same in all processes that share sessions. Guards
	// with other names cannot open them. Nil means a random key, so that both are worthless in another process.
	Key []byte
	// Used remembers which approvals were used. Nil means a UsedInMemory of its own, so that another guard of this name,
	// another process, or this one after a restart would accept an approval again. Package usedsql keeps them in a database.
	Used Used
	// Limits apply to each session with its children.
	Limits Limits
}

// Guard decides on the calls that another framework's agent makes. It is immutable, can serve any number of sessions,
// and is safe for concurrent use.
type Guard struct {
	name     string
	hash     string
	limits   Limits
	host     *agent.Host
	hooks    *hooks.Compiled
	tools    map[string]bool // nil for any
	sealer   sealer
	used     Used
	recorder Recorder
	unasked  []string
}

// fired are the points that a guard fires.
var fired = []hooks.PointName{
	hooks.PreToolUse, hooks.PostToolUse, hooks.ToolFailed, hooks.StepStart,
	hooks.InterventionRequested, hooks.InterventionResolved,
}

// New returns a guard. It returns an error for a control at a point that no guard fires, because that control would
// guard nothing. Rules of library policies at such points are only listed by UnaskedHooks. Observers there are never called.
func New(c Config) (*Guard, error) {
	g, err := newGuard(c)
	if err != nil {
		return nil, fmt.Errorf("guard %q: %w", c.Name, err)
	}
	return g, nil
}

func newGuard(c Config) (*Guard, error) {
	g := &Guard{name: c.Name, limits: c.Limits, used: c.Used, recorder: c.Recorder}
	var list []hooks.Hook
	if c.Rules != nil && nils.Is(c.Rules) { // no rules by mistake, which would allow everything
		return nil, fmt.Errorf("its Rules are a nil %T: check the error with which it was loaded", c.Rules)
	}
	if c.Rules != nil {
		given, err := c.Rules.Hooks()
		if err != nil {
			return nil, err
		}
		list, g.hash = given, c.Rules.Hash()
	}
	set := hooks.NewSet(append(slices.Clip(list), c.Hooks...)...)
	for _, h := range set.All() {
		if !h.Control() || lo.Some(fired, h.Points()) {
			continue
		}
		g.unasked = append(g.unasked, h.Name())
		if !h.IsShadow() && !strings.HasPrefix(h.Name(), "library:") {
			return nil, fmt.Errorf("control %q would never be asked: it is at %s, and a guard fires only %s", h.Name(), join(h.Points()), join(fired))
		}
	}
	compiled, err := set.CompileIn(&hooks.Pool{}, reachOf(c))
	if err != nil {
		return nil, err
	}
	if gaps := lo.Filter(compiled.Gaps(), func(p hooks.Gap, _ int) bool { return p.Origin == nil }); len(gaps) > 0 {
		return nil, errors.Join(lo.Map(gaps, func(p hooks.Gap, _ int) error { return fmt.Errorf("hook %q: %s", p.Hook, p.Text) })...)
	}
	g.hooks = compiled
	if g.sealer, err = newSealer(c.Key); err != nil {
		return nil, err
	}
	if g.used == nil {
		g.used = &UsedInMemory{}
	}
	if c.Limits.Calls < 0 || c.Limits.Time < 0 {
		return nil, fmt.Errorf("the limits %+v must not be negative", c.Limits)
	}
	if c.Tools.Len() > 0 {
		g.tools = map[string]bool{}
		for _, t := range c.Tools.All() {
			g.tools[t.Name] = true
		}
	}
	config := agent.Config{
		Name: c.Name, Executor: executor{g.tools}, Observer: c.Observer, Request: agent.Request{Tools: c.Tools},
		WrapExecutor: []func(agent.Executor) agent.Executor{compiled.WrapExecutor},
		WrapApprover: []func(agent.Approver) agent.Approver{compiled.WrapApprover},
	}
	if !nils.Is(c.Approver) {
		config.Approver = unlocked{c.Approver}
	}
	if !nils.Is(c.Recorder) {
		config.WrapExecutor = append([]func(agent.Executor) agent.Executor{c.Recorder.WrapExecutor}, config.WrapExecutor...)
		config.WrapApprover = append([]func(agent.Approver) agent.Approver{c.Recorder.WrapApprover}, config.WrapApprover...)
	}
	g.host, err = agent.NewHost(reserved.InternalToken(), config)
	return g, err
}

func join(points []hooks.PointName) string {
	return strings.Join(lo.Map(points, func(p hooks.PointName, _ int) string { return string(p) }), ", ")
}

func reachOf(c Config) hooks.Reach {
	here := hooks.Scope{
		Agents: []string{c.Name}, Points: fired, LaterAgents: []string{"*"}, Stages: []string{"*"},
	}
	for _, t := range c.Tools.All() {
		here.Tools = append(here.Tools, hooks.Tool{Name: t.Name})
	}
	if c.Tools.Len() == 0 {
		here.LaterTools = []string{"*"}
	}
	return hooks.Reach{Here: here}
}

// UnaskedHooks returns library rules' names, and shadow controls' names, that are never asked, because no guard fires
// their point. An adapter or a program can show them.
func (g *Guard) UnaskedHooks() []string { return slices.Clone(g.unasked) }

// Drain waits until the detached hooks of all sessions have ended, or until ctx is done. Cancel ends them.
func (g *Guard) Drain(ctx context.Context) error { return g.hooks.Background().Drain(ctx) }

// Cancel cancels the detached hooks of all sessions and waits until they have returned.
func (g *Guard) Cancel() { g.hooks.Background().Cancel() }

// Session opens a run. ID is the host's name for the conversation. An empty ID means a random one. History is the
// conversation so far: see Sync.
func (g *Guard) Session(ctx context.Context, id string, history ...agent.Message) *Session {
	if id == "" {
		id = "ses_" + rand.Text()
	}
	s := g.open(ctx, id, withName(withName("", g.name), id), agent.RunSettings{Session: agent.SessionID(id)}, &budget{limits: g.limits, began: time.Now()})
	s.addMessages(history)
	return s
}

func (g *Guard) open(ctx context.Context, id, scope string, settings agent.RunSettings, b *budget) *Session {
	s := &Session{guard: g, id: id, scope: scope, settings: settings, budget: b, turn: make(chan struct{}, 1)}
	s.begin(ctx, agent.NewState())
	return s
}
