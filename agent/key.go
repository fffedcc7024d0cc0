package agent

import (
	"encoding/json"
	"slices"

	"github.com/grapnel-go/grapnel/internal/reserved"
)

// Scope says how long a metadata value lives.
type Scope uint8

// The scopes.
const (
	// ScopeSession values stay from run to run.
	ScopeSession Scope = iota
	// ScopeRun values are gone when the next run of the session begins.
	ScopeRun
)

func (s Scope) String() string {
	if s == ScopeRun {
		return "run"
	}
	return "session"
}

// Key is the typed name of a metadata value. Two keys with the same name and scope refer to the same value, so their T
// must be the same, too. Values must survive JSON and must not change once they are set. Create keys with SessionKey
// and RunKey.
//
// Names that begin with agent., hooks., continuation., kit. or grapnel. belong to the framework. Other code can read
// these values but not set them: In returns the state unchanged. A tool or hook whose effects set such a value fails.
type Key[T any] struct {
	name  string
	scope Scope
	own   bool // made by the framework
}

// SessionKey returns a key whose value stays with the session.
func SessionKey[T any](name string) Key[T] { return Key[T]{name: name, scope: ScopeSession} }

// RunKey returns a key whose value is dropped when the next run begins. Values are set when the step is recorded, so
// that a step's calls do not see each other's values. Use a Scratch to count.
func RunKey[T any](name string) Key[T] { return Key[T]{name: name, scope: ScopeRun} }

// ReservedKey returns a key whose name belongs to the framework. It is for packages of this module, because other code
// has no valid pass.
func ReservedKey[T any](pass reserved.Pass, name string, scope Scope) Key[T] {
	return Key[T]{name: name, scope: scope, own: pass.Valid()}
}

// Name returns the key's name as in JSON.
func (k Key[T]) Name() string { return k.name }

// Scope returns the key's scope.
func (k Key[T]) Scope() Scope { return k.scope }

// From returns the key's value in s, and whether s has such a value of type T.
func (k Key[T]) From(s State) (T, bool) {
	var none T
	e, ok := s.read().meta.find(k.name, k.scope)
	if !ok {
		return none, false
	}
	if raw, ok := e.value.(undecoded); ok { // from JSON, with its type not known until now
		var out T
		if err := json.Unmarshal([]byte(raw), &out); err != nil {
			return none, false
		}
		return out, true
	}
	v, ok := e.value.(T)
	return v, ok
}

// Or returns the key's value in s. If s has none, Or returns the second argument.
func (k Key[T]) Or(s State, otherwise T) T {
	if v, ok := k.From(s); ok {
		return v
	}
	return otherwise
}

// In returns s with the value set. If the key belongs to the framework, In returns s unchanged.
func (k Key[T]) In(s State, value T) State { return s.Apply(EffectsOf(k.Set(value))) }

// Set returns an effect that sets the value.
func (k Key[T]) Set(value T) Effect {
	return Effect{kind: effectMetadata, entry: entry{k.name, k.scope, value}, own: k.own}
}

// undecoded is the JSON text of a value that has not been decoded yet.
type undecoded string

// MarshalJSON returns the JSON text.
func (k undecoded) MarshalJSON() ([]byte, error) { return []byte(k), nil }

// metadata is an immutable list with one entry for each name and scope. It is nil when empty.
type metadata struct{ entries []entry }

type entry struct {
	name  string
	scope Scope
	value any
}

func (m *metadata) list() []entry {
	if m == nil {
		return nil
	}
	return m.entries
}

func (m *metadata) find(name string, scope Scope) (entry, bool) {
	for _, e := range m.list() {
		if e.name == name && e.scope == scope {
			return e, true
		}
	}
	return entry{}, false
}

func (m *metadata) withEntry(e entry) *metadata {
	out := slices.Clone(m.list())
	at := slices.IndexFunc(out, func(o entry) bool { return o.name == e.name && o.scope == e.scope })
	if at < 0 {
		return &metadata{append(out, e)}
	}
	out[at] = e
	return &metadata{out}
}

// withoutRun returns the metadata without the values of the last run.
func (m *metadata) withoutRun() *metadata {
	ofRun := func(e entry) bool { return e.scope == ScopeRun }
	if !slices.ContainsFunc(m.list(), ofRun) {
		return m
	}
	return &metadata{slices.DeleteFunc(slices.Clone(m.entries), ofRun)}
}
