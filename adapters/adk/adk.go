package adkguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	adk "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// Adapter puts a guard in front of the tools of agents. It can serve any number of runners, and is safe for concurrent use.
type Adapter struct {
	guard *guard.Guard

	mu        sync.Mutex
	installed map[string]bool // agents
	runs      map[invocation]*run
}

// New returns an adapter for g.
func New(g *guard.Guard) *Adapter {
	return &Adapter{guard: g, installed: map[string]bool{}, runs: map[invocation]*run{}}
}

// Install seals the tools and toolsets of config, and adds callbacks. It must be called last, and for every agent that
// has tools or sub-agents, or works on tasks. It returns an error for a config that has it already.
func (a *Adapter) Install(config *llmagent.Config) error {
	if a == nil || a.guard == nil || config == nil {
		return errors.New("adkguard: installing: the guard or the config is nil: make a guard with guard.New")
	}
	for _, t := range config.Tools {
		if isSealed(t) {
			return fmt.Errorf("adkguard: agent %q: installing twice: tool %q is sealed already", config.Name, t.Name())
		}
	}
	for _, s := range config.Toolsets {
		if isSealed(s) {
			return fmt.Errorf("adkguard: agent %q: installing twice: toolset %q is sealed already", config.Name, s.Name())
		}
	}
	config.Tools = slices.Clone(config.Tools)
	for i, t := range config.Tools {
		config.Tools[i] = a.seal(t)
	}
	config.Toolsets = slices.Clone(config.Toolsets)
	for i, s := range config.Toolsets {
		config.Toolsets[i] = a.sealSet(s)
	}
	if config.Mode == llmagent.ModeTask {
		config.BeforeAgentCallbacks = append(slices.Clip(config.BeforeAgentCallbacks), a.beforeTask)
	}
	config.AfterAgentCallbacks = append([]adk.AfterAgentCallback{a.afterAgent}, config.AfterAgentCallbacks...)
	config.BeforeModelCallbacks = append(slices.Clip(config.BeforeModelCallbacks), a.beforeModel)
	config.AfterModelCallbacks = []llmagent.AfterModelCallback{a.afterModel(config.AfterModelCallbacks)}
	config.BeforeToolCallbacks = append(slices.Clip(config.BeforeToolCallbacks), a.beforeTool)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.installed[config.Name] = true
	return nil
}

// NewAgent makes an agent with the guard installed: see Install.
func (a *Adapter) NewAgent(config llmagent.Config) (adk.Agent, error) {
	if err := a.Install(&config); err != nil {
		return nil, err
	}
	return llmagent.New(config)
}

// PluginConfig returns the config of a runner with the guard's plugin, which opens a session for each invocation, and
// other plugins after it. Every runner of the agents needs it.
func (a *Adapter) PluginConfig(others ...*plugin.Plugin) runner.PluginConfig {
	p, err := plugin.New(plugin.Config{
		Name:                "grapnel_guard",
		BeforeRunCallback:   a.beforeRun,
		AfterRunCallback:    a.afterRun,
		BeforeModelCallback: a.mustBeInstalled,
		BeforeToolCallback:  a.beforeTool,
		OnEventCallback:     a.onEvent,
	})
	if err != nil { // without the plugin, no call runs
		return runner.PluginConfig{Plugins: others}
	}
	return runner.PluginConfig{Plugins: append([]*plugin.Plugin{p}, others...)}
}

// invocation identifies an invocation.
type invocation struct{ app, user, session, id string }

// run is one invocation, in this process, or an agent that a tool of one starts.
type run struct {
	session *guard.Session
	stored  session.Session // nil for an agent that a tool starts
	id      string          // the invocation's
	silent  bool            // it began without a message
	waits   atomic.Bool     // it may go on when its runner has ended: it has asked, or has a call that takes long
	begin   sync.Once
	failed  error
	open    []adk.InvocationContext // its runs of runners, guarded by the Adapter's lock

	mu      sync.Mutex
	refused map[string]bool // calls that the adapter itself has answered
	tasks   map[string]bool // tools that start an agent when the model calls them
	begun   map[string]bool // calls of such tools that the guard has allowed
}

func newRun(s *guard.Session) *run {
	return &run{session: s, refused: map[string]bool{}, tasks: map[string]bool{}, begun: map[string]bool{}}
}

// nested is the call of a tool, which may start an agent.
type nested struct {
	guard  *guard.Guard
	parent *guard.Session
	callID string

	mu    sync.Mutex
	child *run
	ended bool
}

type nestedKey struct{}

// close ends the session of the agent that the tool has started.
func (n *nested) close(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	if n.child == nil {
		return nil
	}
	return n.child.session.Close(context.WithoutCancel(ctx))
}

// runOf returns the run that ctx belongs to.
func (a *Adapter) runOf(ctx adk.ReadonlyContext) (*run, error) {
	a.mu.Lock()
	r := a.runs[invocation{ctx.AppName(), ctx.UserID(), ctx.SessionID(), ctx.InvocationID()}]
	a.mu.Unlock()
	if r != nil {
		return r, nil
	}
	n, _ := ctx.Value(nestedKey{}).(*nested)
	switch {
	case n == nil:
		return nil, errors.New("adkguard: the call belongs to no run: add the Adapter's PluginConfig to the runner, " +
			"and install the Adapter in the agent that starts this one, too")
	case n.guard != a.guard:
		return nil, errors.New("adkguard: an agent that a guarded agent starts has another guard: install the same Adapter in both")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, errors.New("adkguard: the call that started this agent has ended")
	}
	if n.child == nil {
		n.child = newRun(n.parent.Child(context.WithoutCancel(ctx), n.callID))
	}
	return n.child, nil
}

// ledgerKey is the key of an event's metadata that holds the ledger of its invocation.
const ledgerKey = "adkguard.ledger"

// invocationOf identifies the invocation of a runner.
func invocationOf(ctx adk.InvocationContext) invocation {
	stored := ctx.Session()
	return invocation{stored.AppName(), stored.UserID(), stored.ID(), ctx.InvocationID()}
}

// beforeRun opens the session of an invocation, or continues one that has waited for an answer.
func (a *Adapter) beforeRun(ctx adk.InvocationContext) (*genai.Content, error) {
	if ctx.Value(nestedKey{}) != nil { // a runner that a tool starts: its agents are the call's children, as with agenttool
		return nil, nil
	}
	key := invocationOf(ctx)
	live := ctx.RunConfig() == nil
	a.mu.Lock()
	if live && !a.installed[ctx.Agent().Name()] { // nothing else would notice it
		a.mu.Unlock()
		return nil, fmt.Errorf("adkguard: agent %q: it is not guarded: call Install with the agent's config", ctx.Agent().Name())
	}
	r := a.runs[key]
	if r == nil {
		r = newRun(nil)
		r.stored, r.id, r.silent = ctx.Session(), ctx.InvocationID(), ctx.UserContent() == nil
		a.runs[key] = r
	}
	r.open = append(r.open, ctx)
	a.mu.Unlock()
	if live { // adk does not always say when it ends
		context.AfterFunc(ctx, func() { a.afterRun(ctx) })
	}
	r.begin.Do(func() { r.session, r.failed = a.begin(context.WithoutCancel(ctx), r) })
	return nil, r.failed
}

func (a *Adapter) begin(ctx context.Context, r *run) (*guard.Session, error) {
	s := a.guard.Session(ctx, r.stored.ID()+"/"+r.id)
	events := r.stored.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		e := events.At(i)
		if e.InvocationID != r.id || e.Author == genai.RoleUser { // a client cannot bring a ledger
			continue
		}
		r.waits.Store(true)
		if ledger, ok := e.CustomMetadata[ledgerKey].(string); ok {
			if err := s.Restore(ctx, ledger); err != nil {
				return s, err
			}
			break
		}
	}
	return s, s.Sync(ctx, append(r.transcript(), r.unanswered()...)...)
}

func (a *Adapter) afterRun(ctx adk.InvocationContext) {
	key := invocationOf(ctx)
	a.mu.Lock()
	r := a.runs[key]
	if r == nil || !slices.Contains(r.open, ctx) { // another plugin has ended the run before it began
		a.mu.Unlock()
		return
	}
	r.open = slices.DeleteFunc(r.open, func(c adk.InvocationContext) bool { return c == ctx })
	last := len(r.open) == 0
	if last {
		delete(a.runs, key)
	}
	a.mu.Unlock()
	if last {
		_ = r.session.Close(context.WithoutCancel(ctx)) // adk takes no error here
	}
}

// onEvent keeps the ledger with the events that change it, if the invocation may go on later. All calls of a turn have ended
// when the event with their answers comes.
func (a *Adapter) onEvent(ctx adk.InvocationContext, e *session.Event) (*session.Event, error) {
	if e.Author == genai.RoleUser { // an agent wrote it: the runner stores the user's message itself
		e.CustomMetadata = with(e.CustomMetadata, mark, true)
		return nil, nil
	}
	a.mu.Lock()
	r := a.runs[invocationOf(ctx)]
	a.mu.Unlock()
	if r == nil || e.Partial {
		return nil, nil
	}
	waits := len(e.Actions.RequestedToolConfirmations)+len(e.LongRunningToolIDs) > 0
	if waits {
		r.waits.Store(true)
	}
	if !waits && (!r.waits.Load() || r.session.StopSignal() == nil && len(answersIn(e.Content)) == 0) {
		return nil, nil
	}
	ledger, err := r.session.Save()
	if err != nil {
		return nil, err
	}
	e.CustomMetadata = with(e.CustomMetadata, ledgerKey, ledger)
	return nil, nil
}

// mustBeInstalled refuses agents in which the adapter is not installed.
func (a *Adapter) mustBeInstalled(ctx adk.Context, request *model.LLMRequest) (*model.LLMResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, t := range request.Tools {
		if !a.installed[ctx.AgentName()] {
			return nil, fmt.Errorf("adkguard: agent %q: tool %q is not guarded: call Install with the agent's config", ctx.AgentName(), name)
		}
		if err := mustBeSealed(ctx.AgentName(), name, t); err != nil { // another agent may have the name
			return nil, err
		}
	}
	return nil, nil
}

// mustBeSealed refuses tools that adk runs without callbacks.
func mustBeSealed(agent, name string, t any) error {
	if _, streams := t.(streaming); streams && !isSealed(t) {
		return fmt.Errorf("adkguard: agent %q: tool %q streams and is not sealed: install the Adapter last", agent, name)
	}
	return nil
}

// beforeModel begins a step. It refuses tools that the guard cannot see, and answers in the model's place when the session
// has stopped.
func (a *Adapter) beforeModel(ctx adk.Context, request *model.LLMRequest) (*model.LLMResponse, error) {
	r, err := a.runOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.check(ctx.AgentName(), request); err != nil {
		return nil, err
	}
	messages := r.transcript()
	if r.stored == nil {
		messages = words(request.Contents)
	}
	if err := r.session.Sync(ctx, messages...); err != nil {
		return nil, err
	}
	err = r.session.Step(ctx)
	stop, stops := errors.AsType[*guard.StopError](err)
	if !stops {
		return nil, err
	}
	return &model.LLMResponse{Content: genai.NewContentFromText(stop.Text, genai.RoleModel), TurnComplete: true}, nil
}

// check refuses tools that run without asking the guard.
func (r *run) check(agent string, request *model.LLMRequest) error {
	for name, t := range request.Tools {
		if err := mustBeSealed(agent, name, t); err != nil {
			return err
		}
		if d, ok := t.(interface{ DefersResponse() bool }); ok && d.DefersResponse() && !isSealed(t) {
			r.add(r.tasks, name)
		}
	}
	if request.Config == nil {
		return nil
	}
	for _, t := range request.Config.Tools {
		if t == nil {
			continue
		}
		rest := *t
		rest.FunctionDeclarations = nil
		if !reflect.DeepEqual(rest, genai.Tool{}) {
			return fmt.Errorf("adkguard: agent %q: the model's service runs one of its tools itself, so that no guard sees the calls: "+
				"remove it, or offer it as a function tool: %+v", agent, rest)
		}
	}
	return nil
}

// afterModel returns a callback that judges calls which start an agent at once, without callbacks for tools. A denial takes
// the call's place. The given callbacks come first: after one that answers, adk asks no other.
func (a *Adapter) afterModel(given []llmagent.AfterModelCallback) llmagent.AfterModelCallback {
	return func(ctx adk.Context, response *model.LLMResponse, failed error) (*model.LLMResponse, error) {
		for _, f := range given {
			changed, err := f(ctx, response, failed)
			if err != nil {
				return nil, err
			}
			if changed != nil {
				judged, err := a.judgeTasks(ctx, changed)
				return cmp.Or(judged, changed), err
			}
		}
		if failed != nil {
			return nil, nil //nolint:nilerr // adk itself returns the error
		}
		return a.judgeTasks(ctx, response)
	}
}

// judgeTasks returns a changed response, or nil.
func (a *Adapter) judgeTasks(ctx adk.Context, response *model.LLMResponse) (*model.LLMResponse, error) {
	if response == nil || response.Content == nil || response.Partial {
		return nil, nil
	}
	r, err := a.runOf(ctx)
	if err != nil {
		return nil, err
	}
	var out *model.LLMResponse
	for i, part := range response.Content.Parts {
		if part == nil || part.FunctionCall == nil || !r.has(r.tasks, part.FunctionCall.Name) {
			continue
		}
		text, err := r.judgeTask(ctx, part.FunctionCall)
		if err != nil {
			return nil, err
		}
		if out == nil {
			changed, content := *response, *response.Content
			content.Parts, changed.Content = slices.Clone(content.Parts), &content
			changed.CustomMetadata = with(changed.CustomMetadata, mark, true)
			out = &changed
		}
		if text != "" {
			out.Content.Parts[i] = genai.NewPartFromText(text)
		}
	}
	return out, nil
}

// mark is the key of an event's metadata with which the guard marks what it has seen: tasks that may begin, and texts of
// agents in the user's name.
const mark = "adkguard"

// with returns metadata with one more value.
func with(metadata map[string]any, key string, value any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, metadata)
	out[key] = value
	return out
}

// beforeTask refuses tasks that the guard has not allowed. The scope of a task is the ID of its call.
func (a *Adapter) beforeTask(ctx adk.Context) (*genai.Content, error) {
	whole := ctx.WithDelta(&adk.CommonContextDelta{}) // the callback's context itself knows neither
	id := whole.IsolationScope()
	if id == "" {
		return nil, nil
	}
	r, err := a.runOf(ctx)
	if err != nil || r.has(r.begun, id) || beganBefore(whole.Session(), id) {
		return nil, err
	}
	text := fmt.Sprintf("agent %q: not executed: the guard has not allowed the call that begins its task", ctx.AgentName())
	return genai.NewContentFromText(text, genai.RoleModel), nil
}

// afterAgent ends loops of agents when the session has stopped.
func (a *Adapter) afterAgent(ctx adk.Context) (*genai.Content, error) {
	if r, err := a.runOf(ctx); err != nil || r.session.StopSignal() == nil {
		return nil, nil //nolint:nilerr // the agent has run without tools
	}
	actions := ctx.WithDelta(&adk.CommonContextDelta{}).Actions() // the callback's context itself has none
	actions.Escalate = true
	actions.StateDelta["temp:"+mark] = true // adk makes an event only of a change
	return nil, nil
}

func (r *run) has(set map[string]bool, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return set[key]
}

func (r *run) add(set map[string]bool, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set[key] = true
}

// judgeTask returns why a task must not begin, or an empty text. Rewritten arguments take the place of the call's.
func (r *run) judgeTask(ctx context.Context, call *genai.FunctionCall) (string, error) {
	arguments, err := encode(call.Args)
	if err != nil {
		return "", err
	}
	v, err := r.session.Decide(ctx, guard.Call{ID: call.ID, Tool: call.Name, Arguments: arguments})
	ask, asks := errors.AsType[*guard.AskError](err)
	stop, stops := errors.AsType[*guard.StopError](err)
	switch {
	case asks:
		return fmt.Sprintf("tool %q: not executed: it needs approval (%s), and adk cannot ask before a task begins", call.Name, ask.Questions.Reason()), nil
	case stops:
		return stop.Text, nil
	case err != nil:
		return "", err
	case v.Answer != nil:
		return v.Answer.Text(), nil
	}
	r.add(r.begun, call.ID)
	call.Args, err = decode(v.Call.Arguments)
	return "", err
}

// beforeTool judges calls of tools that adk itself adds, and runs them.
func (a *Adapter) beforeTool(ctx adk.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	if isSealed(t) {
		return nil, nil
	}
	inner, ok := t.(callable)
	if !ok {
		return nil, fmt.Errorf("tool %q: not executed: adkguard does not know how a %T runs", t.Name(), t)
	}
	v, err := a.call(ctx, inner, args, false)
	if v == nil && err == nil { // adk would run the tool itself
		v = results.Write(&agent.ToolResult{Status: agent.ToolUnknown, Content: agent.TextContent("the answer comes later")})
	}
	return v, err
}
