package agent

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// An Effect is one change to the state that a hook or a tool requests. The state does not change until the effect is
// applied. Create effects with AddMessage, AddContext and Key.Set.
type Effect struct {
	kind    effectKind
	message Message
	context string
	entry   entry
	source  string
	own     bool // created by the framework or read from a stored state: it may set the framework's metadata
}

type effectKind uint8

const (
	effectMessage effectKind = iota + 1
	effectContext
	effectMetadata
)

// AddMessage returns an effect that appends a message to the transcript.
func AddMessage(m Message) Effect { return Effect{kind: effectMessage, message: m} }

// AddContext returns an effect that adds a message with context for the model. Several such effects become one message,
// with an empty line between their texts.
func AddContext(text string) Effect { return Effect{kind: effectContext, context: text} }

// Metadata returns the name, scope and value of a metadata effect. Ok is false for other effects.
func (e Effect) Metadata() (name string, scope Scope, value any, ok bool) {
	return e.entry.name, e.entry.scope, e.entry.value, e.kind == effectMetadata
}

// Message returns the message of a message effect. Ok is false for other effects.
func (e Effect) Message() (m Message, ok bool) { return e.message, e.kind == effectMessage }

// Context returns the text of a context effect. Ok is false for other effects.
func (e Effect) Context() (text string, ok bool) { return e.context, e.kind == effectContext }

// Source names the hook or tool that requested the effect. It is empty when unknown.
func (e Effect) Source() string { return e.source }

// toolSource prefixes a tool's name in the source of its effects, so that a tool cannot
// pass for a hook.
const toolSource = "tool:"

// Effects is a list of effects in the order they are applied. It is immutable; the zero
// Effects is empty.
type Effects struct {
	list *[]Effect
}

// EffectsOf returns a list of the given effects, which are copied.
func EffectsOf(effects ...Effect) Effects {
	if len(effects) == 0 {
		return Effects{}
	}
	return effectsOfSlice(slices.Clone(effects))
}

func effectsOfSlice(list []Effect) Effects { return Effects{&list} }

func (e Effects) slice() []Effect {
	if e.list == nil {
		return nil
	}
	return *e.list
}

// Len returns the number of effects.
func (e Effects) Len() int {
	if e.list == nil {
		return 0
	}
	return len(*e.list)
}

// All iterates over the effects in order.
func (e Effects) All() iter.Seq2[int, Effect] { return slices.All(e.slice()) }

// Add returns e followed by more.
func (e Effects) Add(more Effects) Effects {
	switch {
	case more.Len() == 0:
		return e
	case e.Len() == 0:
		return more
	}
	return effectsOfSlice(slices.Concat(e.slice(), more.slice()))
}

// Validate returns an error when one of the effects sets metadata under a name that belongs to the framework: see Key.
// The tool or hook that returned it has failed.
func (e Effects) Validate() error {
	for _, effect := range e.slice() {
		if effect.trespasses() {
			return fmt.Errorf("setting metadata %q: %s", effect.entry.name, reserved.Advice)
		}
	}
	return nil
}

func (e Effect) trespasses() bool {
	return e.kind == effectMetadata && !e.own && reserved.Holds(e.entry.name)
}

// posing returns the first message that the effects append in the user or system role.
func (e Effects) posing() (Message, bool) {
	for _, effect := range e.slice() {
		if effect.kind == effectMessage && (effect.message.Role() == RoleUser || effect.message.Role() == RoleSystem) {
			return effect.message, true
		}
	}
	return Message{}, false
}

// splitBySource returns the effects without a source and the effects with one. Only hook effects have a source.
func (e Effects) splitBySource() (without, with Effects) {
	named, unnamed := lo.FilterReject(e.slice(), func(effect Effect, _ int) bool { return effect.source != "" })
	return EffectsOf(unnamed...), EffectsOf(named...)
}

// From returns the effects. Effects without a source get the given one.
func (e Effects) From(source string) Effects {
	if e.Len() == 0 {
		return e
	}
	out := slices.Clone(e.slice())
	for i := range out {
		if out[i].source == "" {
			out[i].source = source
		}
	}
	return effectsOfSlice(out)
}

// Apply returns s with the effects applied in order. Messages are appended. Metadata is set, and the last value wins.
// All added context follows in one user message. Effects that Validate rejects are skipped.
func (s State) Apply(e Effects) State {
	if e.Len() == 0 {
		return s
	}
	d := s.copyData()
	var context, sources []string
	for _, effect := range e.slice() {
		switch effect.kind {
		case effectMessage:
			m := effect.message
			if m.Source() == "" && effect.source != "" {
				m = m.WithSource(effect.source)
			}
			d.addMessages(m)
		case effectContext:
			context = append(context, effect.context)
			if !slices.Contains(sources, effect.source) {
				sources = append(sources, effect.source)
			}
		case effectMetadata:
			if !effect.trespasses() {
				d.meta = d.meta.withEntry(effect.entry)
			}
		}
	}
	if len(context) > 0 {
		source := strings.Join(sources, ",")
		if source == "" {
			source = "context"
		}
		d.addMessages(UserText(strings.Join(context, "\n\n")).WithSource(source))
	}
	return State{d}
}
