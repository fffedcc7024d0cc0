package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/examples/backtest/rules"
	"github.com/grapnel-go/grapnel/hooks"
)

// policy makes the rule that holds in a suite; it is an error when the facts do not say enough.
type policy struct {
	name string
	rule func(facts rules.Facts, suite string) (rules.Rule, error)
}

var policies = []policy{
	{"deny-writes", rules.DenyWrites},
	{"operator-static", rules.OperatorStatic},
}

// hook asks a rule about every call.
func hook(name string, rule rules.Rule) hooks.Hook {
	return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
		var args rules.Args
		if err := c.Call().Decode(&args); err != nil {
			return c.Fail(err)
		}
		if deny, reason := rule(c.Tool(), args); deny {
			return c.Deny(reason)
		}
		return c.Allow()
	}).WithPriority(hooks.PriorityGuard)
}

// newAgent returns an agent that plays recordings made with these tools, under these hooks.
func newAgent(tools []replay.ToolSchema, guards ...hooks.Hook) (*agent.Agent, error) {
	return builder.New().
		WithName("backtest").
		WithDriver(replay.Driver{}).
		With(
			capability.UseTools(replay.Tools(tools...)...),
			capability.UseHooks(guards...),
			capability.UseCriteria(replay.GoOn),
		).
		Build().Get()
}

// player is an agent under one policy.
type player struct {
	policy string
	agent  *agent.Agent
}

// players makes the agents that are needed, one for each policy, suite and set of tools. It is safe for concurrent
// use.
type players struct {
	policies []policy

	mu   sync.Mutex
	made map[playerKey]cast
}

type playerKey struct {
	folder       *folder
	suite, tools string
}

// cast is the players of one suite. None of them means that no policy knows the suite.
type cast struct {
	players []player
	unknown error // why there are none
	err     error
}

// of is the players for a recorded run.
func (p *players) of(f *folder, r *replay.Record) cast {
	if len(r.Tools) > 0 { // a run with tools of its own
		return p.cast(f, r.Suite, r.Tools)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := playerKey{f, r.Suite, r.ToolsRef}
	if c, ok := p.made[key]; ok {
		return c
	}
	tools, err := f.loadTools(r.ToolsRef)
	c := cast{err: err}
	if err == nil {
		c = p.cast(f, r.Suite, tools)
	}
	if p.made == nil {
		p.made = map[playerKey]cast{}
	}
	p.made[key] = c
	return c
}

func (p *players) cast(f *folder, suite string, tools []replay.ToolSchema) cast {
	var c cast
	for _, policy := range p.policies {
		rule, err := policy.rule(f.facts, suite)
		if err != nil {
			c.unknown = err
			continue
		}
		a, err := newAgent(tools, hook(policy.name, rule))
		if err != nil {
			return cast{err: err}
		}
		c.players = append(c.players, player{policy.name, a})
	}
	return c
}

// loadTools reads the schemas that a run refers to. A run that refers to none is played without tools.
func (f *folder) loadTools(ref string) ([]replay.ToolSchema, error) {
	if ref == "" {
		return nil, nil
	}
	text, err := fs.ReadFile(f.files, ref)
	if err != nil {
		return nil, fmt.Errorf("load tools: %w", err)
	}
	tools, err := replay.ParseTools(text)
	if err != nil {
		return nil, fmt.Errorf("load tools %q: %w", filepath.Join(f.name, ref), err)
	}
	return tools, nil
}
