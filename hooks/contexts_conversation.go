package hooks

import (
	"context"
	"errors"

	"github.com/grapnel-go/grapnel/agent"
)

// Conversation describes a conversation that starts or has ended: an agent.Session.
type Conversation struct {
	// Source says whether the conversation is new. It is empty at the end.
	Source agent.ConversationSource `json:"source,omitempty"`
	// Reason says why the conversation was closed. It is empty at the start.
	Reason agent.CloseReason `json:"reason,omitempty"`
	// Turns is the number of the session's runs. At the start it counts the runs before this one, at the end all runs.
	// Denied runs count, too.
	Turns int `json:"turns"`
}

// ConversationContext is the context of AtConversationStart. Its Run is the conversation's first run, which waits for
// the hooks.
type ConversationContext struct {
	contextView
	about Conversation
}

// Conversation returns the conversation's description.
func (c ConversationContext) Conversation() Conversation { return c.about }

// Allow lets the conversation begin, and may add to it.
func (c ConversationContext) Allow(effects ...agent.Effect) Result { return c.allowWith(effects) }

// ConversationEndContext is the context of AtConversationEnd. Its Run is the conversation's last run, which has ended.
// State is the final state.
type ConversationEndContext struct {
	aroundView
	about Conversation
}

// Conversation returns the conversation's description.
func (c ConversationEndContext) Conversation() Conversation { return c.about }

// startConversation asks the hooks at ConversationStart in turn, if this run is the conversation's first. Each hook
// sees the additions of earlier hooks. If a hook cannot decide and fails closed, the input is denied and nothing is
// added. The conversation's next run asks the hooks again, so that a second message does not get past them.
func (c *Compiled) startConversation(ctx context.Context, s agent.State) (agent.State, error) {
	source, starts := agent.Checkpoint(s).ConversationStart()
	if !starts {
		return s, nil
	}
	info, _ := infoOf(ConversationStart)
	about := Conversation{Source: source, Turns: s.Run().Number - 1}
	view := func(s agent.State, frozen *Outcome) ConversationContext {
		return ConversationContext{contextView{state: s, info: info, frozen: frozen}, about}
	}
	after := s
	var last *Outcome
	var effects agent.Effects
	for _, e := range pointsOf(c).conversationStart.controls {
		o, err := e.consult(ctx, view(after, nil))
		if err != nil {
			return s, err
		}
		if o == nil {
			continue
		}
		tellConflicts(ctx, s, ConversationStart, effects, o.effects)
		effects = effects.Add(o.effects)
		after, last = after.Apply(o.effects), o
		if o.decision == Deny {
			after = denyInput(s, o)
			break
		}
	}
	if err := pointsOf(c).conversationStart.announce(ctx, c.pool, view(after, last)); err != nil {
		return s, err
	}
	if !after.Status().Terminal() {
		agent.Checkpoint(s).RecordConversationStart()
	}
	return after, nil
}

// EndConversation tells the hooks at ConversationEnd that the session with the final state s was closed. It waits until
// they have returned, including detached hooks. When ctx is done, it cancels the hooks that still run. The observer
// receives their events; nil means none. Use it as agent.Config.EndConversation.
func (c *Compiled) EndConversation(ctx context.Context, s agent.State, reason agent.CloseReason, o agent.Observer) error {
	if pointsOf(c).conversationEnd.empty() {
		return nil
	}
	run := s.Run()
	scope := c.OpenScope(ctx, ScopeOptions{Run: run, Observer: o})
	defer scope.Cancel()
	firing := Firing{Point: ConversationEnd, Stage: run.Stage, Iteration: run.Iteration}
	about := Conversation{Reason: reason, Turns: run.Number}
	err := scope.fire(ctx, s, firing, func(ctx context.Context, inside agent.State, f Firing) error {
		return pointsOf(c).conversationEnd.announce(ctx, scope.hooks.pool, ConversationEndContext{viewAround(inside, f, nil), about})
	}, &s)
	return errors.Join(err, scope.Drain(ctx))
}
