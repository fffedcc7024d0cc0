package main

import (
	"context"

	"github.com/grapnel-go/grapnel/examples/backtest/rules"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy/backtest"
)

// allPolicies returns the policies to try. Add your own policy here.
func allPolicies(facts rules.Facts) []backtest.Policy {
	return []backtest.Policy{
		newPolicy("deny-writes", facts, rules.DenyWrites),
		newPolicy("operator-static", facts, rules.OperatorStatic),
	}
}

// newPolicy returns a policy with a rule as its hook. If the facts lack data for a suite, the backtest leaves out that
// suite's runs.
func newPolicy(name string, facts rules.Facts, make func(rules.Facts, string) (rules.Rule, error)) backtest.Policy {
	return backtest.Policy{Name: name, Hooks: func(suite string) ([]hooks.Hook, error) {
		rule, err := make(facts, suite)
		if err != nil {
			return nil, err
		}
		return []hooks.Hook{ruleHook(name, rule)}, nil
	}}
}

// ruleHook asks a rule about every call.
func ruleHook(name string, rule rules.Rule) hooks.Hook {
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
