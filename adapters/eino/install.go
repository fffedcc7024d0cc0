package einoguard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// Question is the information of the interrupt with which a call waits for an answer.
type Question struct{ Tool, Arguments, Reason string }

// Install appends the guard to the handlers of config. It must be the last handler.
func Install(g *guard.Guard, config *adk.ChatModelAgentConfig) error {
	if g == nil || config == nil {
		return errors.New("einoguard: installing: the guard or the config is nil: make a guard with guard.New")
	}
	register()
	names := map[string]string{}
	for name, aliases := range config.ToolsConfig.ToolAliases {
		for _, alias := range aliases.NameAliases {
			names[alias] = name
		}
	}
	config.Handlers = append(slices.Clip(config.Handlers), &handler{guard: g, aliases: names})
	return nil
}

// register tells eino how to store what the package puts into a checkpoint.
var register = sync.OnceFunc(func() {
	schema.RegisterName[*Question]("grapnel_einoguard_question")
	schema.RegisterName[*held]("grapnel_einoguard_held")
	schema.RegisterName[*ledger]("grapnel_einoguard_ledger")
})

// ledger is a session's ledger in the run's state. It is written only when eino stores the state, because that takes longer
// the more calls there are.
type ledger struct {
	session *guard.Session
	saved   string // from another process, or before the last interrupt
}

func (l *ledger) save() (string, error) {
	if l.session == nil {
		return l.saved, nil
	}
	return l.session.Save()
}

// MarshalJSON is called when eino copies the run's state.
func (l *ledger) MarshalJSON() ([]byte, error) {
	saved, err := l.save()
	if err != nil {
		return nil, err
	}
	return json.Marshal(saved)
}

func (l *ledger) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &l.saved) }

// GobEncode is called when eino stores that copy.
func (l *ledger) GobEncode() ([]byte, error) {
	saved, err := l.save()
	return []byte(saved), err
}

func (l *ledger) GobDecode(data []byte) error {
	l.saved = string(data)
	return nil
}

type handler struct {
	*adk.BaseChatModelAgentMiddleware
	guard   *guard.Guard
	aliases map[string]string
}

// run is one run of the agent, in this process.
type run struct {
	guard  *guard.Guard
	parent *guard.Session
	callID string // the parent's call
	sealed map[string]bool

	transcript *transcript // used before model calls, which are one after the other

	mu      sync.Mutex // held while the session's lock is taken, and eino's lock of the run's state
	session *guard.Session
	stop    func() bool
	ended   bool
}

type runKey struct{}

func runOf(ctx context.Context) (*run, error) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r, nil
	}
	return nil, errors.New("einoguard: the call belongs to no run: install the guard in the agent's config")
}

// The names of what the package keeps in the run's state.
const (
	idKey     = "einoguard.session"
	ledgerKey = "einoguard.ledger"
	wordsKey  = "einoguard.words"
)

// BeforeAgent seals the tools. It is called when a run is resumed, too.
func (h *handler) BeforeAgent(ctx context.Context, c *adk.ChatModelAgentContext) (context.Context, *adk.ChatModelAgentContext, error) {
	r := &run{guard: h.guard, parent: guard.FromContext(ctx), callID: compose.GetToolCallID(ctx), sealed: map[string]bool{}}
	if outer, ok := ctx.Value(runKey{}).(*run); ok && outer.guard != h.guard {
		return ctx, nil, errors.New("einoguard: an agent that a guarded agent calls has another guard: install the same guard in both")
	}
	out := *c
	out.Tools = nil
	for _, t := range c.Tools {
		info, err := t.Info(ctx)
		if err != nil {
			return ctx, nil, err
		}
		s, err := seal(t, info.Name)
		if err != nil {
			return ctx, nil, err
		}
		r.sealed[info.Name] = true
		out.Tools = append(out.Tools, s)
	}
	r.stop = context.AfterFunc(ctx, func() { r.close(context.WithoutCancel(ctx)) })
	return context.WithValue(ctx, runKey{}, r), &out, nil
}

// AfterAgent ends the session.
func (*handler) AfterAgent(ctx context.Context, _ *adk.ChatModelAgentState) (context.Context, error) {
	r, err := runOf(ctx)
	if err != nil {
		return ctx, err
	}
	r.stop()
	return ctx, r.close(ctx)
}

func (r *run) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.session == nil {
		return nil
	}
	return r.session.Close(ctx)
}

// open returns the run's session. The caller is within the run.
func (r *run) open(ctx context.Context) (*guard.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.session != nil:
		return r.session, nil
	case r.ended:
		return nil, fmt.Errorf("einoguard: opening a session: the run has ended: %w", context.Cause(ctx))
	}
	id, err := load[string](ctx, idKey)
	if err != nil {
		return nil, err
	}
	kept, err := load[*ledger](ctx, ledgerKey)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = "eino_" + rand.Text()
		if err := adk.SetRunLocalValue(ctx, idKey, id); err != nil {
			return nil, err
		}
	}
	own := context.WithoutCancel(ctx)
	var s *guard.Session
	if r.parent != nil {
		s = r.parent.Child(own, r.callID)
	} else {
		s = r.guard.Session(own, id)
	}
	if kept != nil {
		var saved string
		if saved, err = kept.save(); err == nil {
			err = s.Restore(own, saved)
		}
	}
	if err == nil {
		err = adk.SetRunLocalValue(ctx, ledgerKey, &ledger{session: s})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(own))
	}
	r.session = s
	return s, nil
}

func load[T any](ctx context.Context, key string) (T, error) {
	v, _, err := adk.GetRunLocalValue(ctx, key)
	value, _ := v.(T)
	return value, err
}

// BeforeModelRewriteState tells the session what the transcript says.
func (h *handler) BeforeModelRewriteState(
	ctx context.Context, state *adk.ChatModelAgentState, _ *adk.ModelContext,
) (context.Context, *adk.ChatModelAgentState, error) {
	r, err := runOf(ctx)
	if err != nil {
		return ctx, nil, err
	}
	s, err := r.open(ctx)
	if err != nil {
		return ctx, nil, err
	}
	if r.transcript == nil {
		words, err := r.words(ctx, state.Messages)
		if err != nil {
			return ctx, nil, err
		}
		r.transcript = newTranscript(h.aliases, words)
	}
	if err := s.Sync(ctx, r.transcript.convert(state.Messages)...); err != nil {
		return ctx, nil, err
	}
	return ctx, state, s.Step(ctx)
}

// words returns digests: of the user's messages in the first model call, and of earlier runs' answers.
func (r *run) words(ctx context.Context, messages []*schema.Message) (string, error) {
	words, err := load[string](ctx, wordsKey)
	if err != nil || words != "" {
		return words, err
	}
	list := []string{"words"} // not empty, so that this happens once
	for _, m := range messages {
		if r.parent == nil && byUser(m) {
			list = append(list, digest(m))
		}
		if m.Role == schema.Tool {
			list = append(list, earlier(m))
		}
	}
	words = strings.Join(list, " ")
	return words, adk.SetRunLocalValue(ctx, wordsKey, words)
}

// byUser reports whether nothing shows that a handler or another agent has written the message.
func byUser(m *schema.Message) bool {
	if m.Role != schema.User || strings.HasPrefix(m.Content, "For context:") {
		return false
	}
	marks := len(m.Extra)
	if adk.GetMessageID(m) != "" {
		marks--
	}
	return marks == 0
}

func digest(m *schema.Message) string {
	sum := sha256.Sum256([]byte(textOf(m)))
	return hex.EncodeToString(sum[:])
}

// earlier identifies an answer from an earlier run.
func earlier(m *schema.Message) string {
	sum := sha256.Sum256([]byte(m.ToolCallID + "\x00" + textOf(m)))
	return "answer:" + hex.EncodeToString(sum[:])
}

// transcript converts a run's messages. It converts a message once, and again when its text has changed.
type transcript struct {
	aliases map[string]string
	known   map[string]bool // digests of the user's messages, and of answers from earlier runs
	calls   map[string]agent.ToolCall
	seen    []seen
	out     []agent.Message
}

// seen is a message that was converted. Its text is compared in no time as long as it is the same string.
type seen struct {
	message *schema.Message
	text    string
	out     int // how many converted messages there were before
}

func newTranscript(aliases map[string]string, words string) *transcript {
	x := &transcript{aliases: aliases, known: map[string]bool{}, calls: map[string]agent.ToolCall{}}
	for word := range strings.FieldsSeq(words) {
		x.known[word] = true
	}
	return x
}

// convert returns the messages for the session. Rules that count this run's calls need not know earlier answers.
func (x *transcript) convert(messages []*schema.Message) []agent.Message {
	same := 0
	for same < len(x.seen) && same < len(messages) && x.seen[same].message == messages[same] && x.seen[same].text == textOf(messages[same]) {
		same++
	}
	if same < len(x.seen) {
		x.out, x.seen = x.out[:x.seen[same].out], x.seen[:same]
	}
	for _, m := range messages[same:] {
		text := textOf(m)
		x.seen = append(x.seen, seen{m, text, len(x.out)})
		switch m.Role {
		case schema.User:
			u := agent.UserText(text)
			if !byUser(m) || !x.known[digest(m)] {
				u = u.WithSource("eino")
			}
			x.out = append(x.out, u)
		case schema.Assistant:
			for _, c := range m.ToolCalls {
				x.calls[c.ID] = agent.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
			}
			if text != "" {
				x.out = append(x.out, agent.Assistant(text))
			}
		case schema.Tool:
			c, ok := x.calls[m.ToolCallID]
			if !ok {
				c = agent.ToolCall{ID: m.ToolCallID, Name: m.ToolName, Arguments: "{}"}
			}
			if name, ok := x.aliases[c.Name]; ok { // the guard knows the tool's own name
				c.Name = name
			}
			if x.known[earlier(m)] {
				x.out = append(x.out, agent.UserText(text).WithSource("eino:"+c.Name))
				continue
			}
			x.out = append(x.out, guard.Foreign(c, text))
		case schema.System: // the host's own
		}
	}
	return x.out
}

func textOf(m *schema.Message) string {
	if len(m.UserInputMultiContent)+len(m.AssistantGenMultiContent) == 0 {
		return m.Content
	}
	var text strings.Builder
	text.WriteString(m.Content)
	for _, p := range m.UserInputMultiContent {
		text.WriteString(p.Text)
	}
	for _, p := range m.AssistantGenMultiContent {
		text.WriteString(p.Text)
	}
	return text.String()
}

// check refuses a tool that is not sealed.
func (h *handler) check(ctx context.Context, name string) error {
	r, err := runOf(ctx)
	if err != nil {
		return err
	}
	if !r.sealed[name] && !r.sealed[h.aliases[name]] {
		return fmt.Errorf("tool %q: not executed: a handler after the guard has added it: install the guard last", name)
	}
	return nil
}

// WrapInvokableToolCall refuses tools that are not sealed. So do the other three.
func (h *handler) WrapInvokableToolCall(
	ctx context.Context, next adk.InvokableToolCallEndpoint, c *adk.ToolContext,
) (adk.InvokableToolCallEndpoint, error) {
	return next, h.check(ctx, c.Name)
}

func (h *handler) WrapStreamableToolCall(
	ctx context.Context, next adk.StreamableToolCallEndpoint, c *adk.ToolContext,
) (adk.StreamableToolCallEndpoint, error) {
	return next, h.check(ctx, c.Name)
}

func (h *handler) WrapEnhancedInvokableToolCall(
	ctx context.Context, next adk.EnhancedInvokableToolCallEndpoint, c *adk.ToolContext,
) (adk.EnhancedInvokableToolCallEndpoint, error) {
	return next, h.check(ctx, c.Name)
}

func (h *handler) WrapEnhancedStreamableToolCall(
	ctx context.Context, next adk.EnhancedStreamableToolCallEndpoint, c *adk.ToolContext,
) (adk.EnhancedStreamableToolCallEndpoint, error) {
	return next, h.check(ctx, c.Name)
}

// held is what a call that waits keeps in the checkpoint: its question, and the answers that it has.
type held struct{ Token, Answers string }

// isPause reports whether a tool has interrupted the run.
func isPause(err error) bool {
	_, is := compose.IsInterruptRerunError(err)
	return is
}

// answersOf returns the answers with which the host resumes the call.
func answersOf(ctx context.Context, name string) ([]agent.Approval, error) {
	target, has, given := tool.GetResumeContext[any](ctx)
	if !target || !has || given == nil {
		return nil, nil
	}
	switch given := given.(type) {
	case agent.Approval:
		return []agent.Approval{given}, nil
	case *agent.Approval:
		return []agent.Approval{*given}, nil
	}
	return nil, fmt.Errorf("tool %q: not executed: it is resumed with a %T: resume it with an agent.Approval", name, given)
}
