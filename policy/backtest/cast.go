package backtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/lazy"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// mostCasts is the maximum number of agent sets in the cache.
const mostCasts = 256

// casts builds and caches a backtest's agents: one for each policy, suite and set of tools. It is safe for concurrent
// use.
type casts struct {
	policies []Policy
	agent    string
	tools    []replay.ToolSchema // for runs without schemas; if nil, such runs get schemas for the tools that they call

	mu    sync.Mutex
	made  map[string]*cast
	rules map[string]map[string]Rule // hooks that may decide, by policy and name
}

// cast holds the agents for one set of tools.
type cast struct {
	players []player
	left    map[string]error // the error of each policy that has no hooks for the suite
	err     error
}

type player struct {
	policy string
	agent  *agent.Agent
}

// of returns the agents for a run.
func (c *casts) of(from Recording, r *recorded.Run) *cast {
	key := r.Suite + "\x00" + r.Agent
	var tools []replay.ToolSchema
	var err error
	switch {
	case len(r.Tools) > 0:
		text, _ := r.Tools[0].MarshalJSON()
		for _, t := range r.Tools[1:] {
			more, _ := t.MarshalJSON()
			text = append(text, more...)
		}
		key, tools = key+"\x00"+string(text), r.Tools
	case r.ToolsRef != "":
		key += "\x00" + from.Name + "\x00" + r.ToolsRef
	case c.tools != nil:
		tools = c.tools
	default:
		tools = calledTools(r)
		key += strings.Join(lo.Map(tools, func(t replay.ToolSchema, _ int) string { return "\x00" + t.Name }), "")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.made[key]; ok {
		return made
	}
	if r.ToolsRef != "" && len(r.Tools) == 0 {
		tools, err = from.tools(r.ToolsRef)
	}
	made := &cast{err: err}
	if err == nil {
		made = c.cast(r, tools)
	}
	if len(c.made) >= mostCasts {
		clear(c.made)
	}
	c.made[key] = made
	return made
}

func (c *casts) cast(r *recorded.Run, tools []replay.ToolSchema) *cast {
	out := &cast{left: map[string]error{}}
	name := r.Agent
	if name == "" {
		name = c.agent
	}
	for _, p := range c.policies {
		list, err := p.Hooks(r.Suite)
		if err != nil {
			out.left[p.Name] = err
			continue
		}
		a, err := agentWith(name, tools, list)
		if err != nil {
			return &cast{err: fmt.Errorf("build an agent with policy %s: %w", p.Name, err)}
		}
		c.learn(p, list)
		out.players = append(out.players, player{p.Name, a})
	}
	return out
}

// learn records a policy's hooks that may decide, so that the report also lists hooks that never decided.
func (c *casts) learn(p Policy, list []hooks.Hook) {
	if c.rules[p.Name] == nil {
		c.rules[p.Name] = map[string]Rule{}
	}
	for _, h := range list {
		if !h.Control() {
			continue
		}
		rule := Rule{Name: h.Name(), Shadow: h.IsShadow(), Undone: slices.Contains(p.Undone, h.Name())}
		if o := h.Origin(); o != nil {
			rule.File, rule.Line = o.File, o.Line
		}
		c.rules[p.Name][h.Name()] = rule
	}
}

// drain waits for the work that hooks started in the background.
func (c *casts) drain(ctx context.Context) {
	for made := range maps.Values(c.made) {
		for _, p := range made.players {
			if p.agent.Drain(ctx) != nil {
				p.agent.Cancel()
			}
		}
	}
}

var toolName = lazy.Regexp(`^[A-Za-z0-9_.-]{1,128}$`)

// calledTools returns a tool that accepts any arguments for each tool that a run calls. It is used when the recording
// has no schemas.
func calledTools(r *recorded.Run) []replay.ToolSchema {
	names := map[string]bool{}
	for _, c := range r.Calls() {
		if toolName().MatchString(c.Function.Name) {
			names[c.Function.Name] = true
		}
	}
	var tools []replay.ToolSchema
	for _, name := range slices.Sorted(maps.Keys(names)) {
		tools = append(tools, replay.ToolSchema{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	return tools
}
