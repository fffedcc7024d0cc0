package registry

import (
	"context"
	"fmt"
	"reflect"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Registry is what the names in definitions stand for. It is a plain value, made where it
// is used; there is none for the whole program. The zero Registry knows nothing. It must
// not be changed while it is used; several goroutines may use it.
type Registry struct {
	// Drivers make what asks a model, by the beginning of its name: "openai/" is asked for
	// openai/gpt-5-mini, and told gpt-5-mini. The longest that fits is asked.
	Drivers map[string]DriverMaker
	// Tools, Hooks and Capabilities are what the parts of a definition are made by.
	Tools        map[string]Maker[[]toolexec.Tool]
	Hooks        map[string]Maker[[]hooks.Hook]
	Capabilities map[string]Maker[capability.Capability]
	// Agents are those that may be given work.
	Agents map[string]Definition
	// Servers are MCP servers that definitions may name; Connect reaches any. Without it a
	// definition with a server is an error.
	Servers map[string]Server
	Connect func(ctx context.Context, m *Making, s Server) ([]toolexec.Tool, error)
	// Policies puts the policies of a definition in force, by the paths and names that it has for them, such as
	// library:secrets. The capability is installed before those of the definition; nil is none. Without Policies a definition that
	// names some is an error:
	//
	//	reg := registry.Registry{Policies: func(_ context.Context, _ *registry.Making, files []string) (capability.Capability, error) {
	//		p, err := policy.LoadFiles(files...)
	//		return policy.Use(p), err
	//	}}
	Policies func(ctx context.Context, m *Making, files []string) (capability.Capability, error)
	// Given are tools, and First capabilities, that the agent has before those of its
	// definition; those that it may give work to do not have them.
	Given []toolexec.Tool
	First []capability.Capability
	// Idle is told of a hook of the definition that is for what neither the agent nor the agents that it gives work to
	// have, and returns the error, or nil if that may be so. Nil means an error.
	Idle func(hook string, err error) error
}

// DriverMaker makes a driver; model is the name behind the beginning.
type DriverMaker func(ctx context.Context, m *Making, model string) (agent.Driver, error)

// Maker makes a part of agents. Make it with UseTools, UseHooks, UseCapability or With.
type Maker[T any] struct {
	settings func() any // nil: it takes none
	make     func(ctx context.Context, m *Making, settings any) (T, error)
}

// UseTools returns a part that is always these tools.
func UseTools(list ...toolexec.Tool) Maker[[]toolexec.Tool] { return makeAlways(list) }

// UseHooks returns a part that is always these hooks.
func UseHooks(list ...hooks.Hook) Maker[[]hooks.Hook] { return makeAlways(list) }

// UseCapability returns a part that is always this capability.
func UseCapability(c capability.Capability) Maker[capability.Capability] { return makeAlways(c) }

func makeAlways[T any](v T) Maker[T] {
	return Maker[T]{make: func(context.Context, *Making, any) (T, error) { return v, nil }}
}

// With returns a part that is made for each agent, with settings. S is a struct; its fields have
// tags such as `key:"calls"`, `key:"file,required"`, `key:"per,positive"` (a number or
// time above zero), `key:"calls,limit"` (a number above zero, or -1) or `key:"delay,nonnegative"`, and may be strings, bools, numbers,
// time.Durations, structs, and slices, pointers and maps of those. What does not fit is
// told with its line before anything is made.
func With[S, T any](make func(ctx context.Context, m *Making, settings S) (T, error)) Maker[T] {
	return Maker[T]{
		settings: func() any { return new(S) },
		make: func(ctx context.Context, m *Making, settings any) (T, error) {
			return make(ctx, m, *settings.(*S)) //nolint:forcetypeassert // settings made it
		},
	}
}

// TakesSettings reports whether the part can be given settings, and whether it must be.
func (k Maker[T]) TakesSettings() (can, must bool) {
	if k.settings == nil {
		return false, false
	}
	made := k.settings()
	file := yamlfile.Parse("none", []byte("{}"))
	root, _ := file.Root()
	return true, !root.Decode(made)
}

// Keys returns the keys of the settings.
func (k Maker[T]) Keys() []string {
	if k.settings == nil {
		return nil
	}
	var names []string
	for _, key := range yamlfile.Keys(reflect.TypeOf(k.settings()).Elem()) {
		names = append(names, key.Name)
	}
	return names
}

// Making is the agent that something is made for.
type Making struct {
	// Definition is what it is made of.
	Definition Definition
	// Name is what the part is called in the definition; of several hooks of one name,
	// those behind the first have a number: "deny-2".
	Name string
	// Tools are the names of the tools that the agent has. Only hooks and capabilities are
	// told.
	Tools []string

	closing *[]func() error
}

// Closing registers something to call when the agent is closed. The last is called first.
func (m *Making) Closing(f func() error) { *m.closing = append(*m.closing, f) }

// as returns m for another part.
func (m *Making) as(what, name string, count map[string]int) *Making {
	part := *m
	part.Name = name
	key := what + " " + name
	if count[key]++; count[key] > 1 {
		part.Name = fmt.Sprintf("%s-%d", name, count[key])
	}
	return &part
}
