package action

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// What contexts can do, as the methods that they have. A point without effects has methods that take none.
type (
	allows interface {
		Allow(effects ...agent.Effect) hooks.Result
	}
	allowsOnly interface{ Allow() hooks.Result }
	denies     interface {
		Deny(reason string, effects ...agent.Effect) hooks.Result
	}
	deniesOnly interface {
		Deny(reason string) hooks.Result
	}
	stops interface {
		Stop(reason string, effects ...agent.Effect) hooks.Result
	}
	stopsOnly interface {
		Stop(reason string) hooks.Result
	}
	asks interface {
		AskAbout(q agent.Question, effects ...agent.Effect) hooks.Result
	}
	mocks interface {
		Mock(text string, effects ...agent.Effect) hooks.Result
		MockFailure(text string, effects ...agent.Effect) hooks.Result
	}
	rewritesCall interface {
		Rewrite(arguments any, effects ...agent.Effect) hooks.Result
	}
	rewritesCallOnly interface {
		Rewrite(arguments any) hooks.Result
	}
	rewritesInput interface {
		RewriteText(text string, effects ...agent.Effect) hooks.Result
	}
	rewritesTextOnly interface {
		Rewrite(text string) hooks.Result
	}
	replaces interface {
		Replace(text string, effects ...agent.Effect) hooks.Result
	}
	replacesOnly interface {
		Replace(text string) hooks.Result
	}
	replacesReply interface {
		ReplaceText(text string, effects ...agent.Effect) hooks.Result
	}
	withholds interface {
		Withhold(reason string, effects ...agent.Effect) hooks.Result
	}
	withholdsOnly interface {
		Withhold(reason string) hooks.Result
	}
	approves interface {
		Approve(message string) hooks.Result
		Reject(message string) hooks.Result
	}
	continues interface {
		Continue(reason string) hooks.Result
	}
)

func is[T any](c hooks.Context) bool { _, ok := c.(T); return ok }

// Decisions are what may be decided at the point of c: what its context has methods for. None where only observers are.
func Decisions(c hooks.Context) []hooks.Decision {
	can := map[hooks.Decision]bool{
		hooks.Allow:    is[allows](c) || is[allowsOnly](c),
		hooks.Deny:     is[denies](c) || is[deniesOnly](c),
		hooks.Ask:      is[asks](c),
		hooks.StopRun:  is[stops](c) || is[stopsOnly](c),
		hooks.Rewrite:  is[rewritesCall](c) || is[rewritesCallOnly](c) || is[rewritesInput](c) || is[rewritesTextOnly](c),
		hooks.Mock:     is[mocks](c),
		hooks.Replace:  is[replaces](c) || is[replacesOnly](c) || is[replacesReply](c),
		hooks.Withhold: is[withholds](c) || is[withholdsOnly](c),
		hooks.Approve:  is[approves](c),
		hooks.Reject:   is[approves](c),
		hooks.Continue: is[continues](c),
	}
	return lo.Filter(
		[]hooks.Decision{
			hooks.Allow, hooks.Deny, hooks.Ask, hooks.StopRun, hooks.Rewrite, hooks.Mock, hooks.Replace, hooks.Withhold,
			hooks.Approve, hooks.Reject, hooks.Continue,
		},
		func(d hooks.Decision, _ int) bool { return can[d] },
	)
}

// guards reports whether something can be kept from happening, or from being seen, at the point of c: where a text that is
// no decision must not pass for none.
func guards(c hooks.Context) bool {
	return is[denies](c) || is[deniesOnly](c) || is[withholds](c) || is[withholdsOnly](c)
}

// Decide makes the outcome of a point of a decision. Nil passes. A decision that the point has no power for is a failure
// of the hook, and so are effects where there can be none.
func Decide(c hooks.Context, d *Decision) hooks.Result {
	if d == nil {
		return hooks.Result{}
	}
	effects := d.effects()
	if len(effects) > 0 && !addsTo(c, d.Decision) {
		return failed(fmt.Errorf("%s at %s can add neither context nor metadata", d.Decision, c.Point()))
	}
	switch d.Decision {
	case hooks.Allow:
		switch c := c.(type) {
		case allows:
			return c.Allow(effects...)
		case allowsOnly:
			return c.Allow()
		}
	case hooks.Deny:
		switch c := c.(type) {
		case denies:
			return c.Deny(d.Reason, effects...)
		case deniesOnly:
			return c.Deny(d.Reason)
		}
	case hooks.StopRun:
		switch c := c.(type) {
		case stops:
			return c.Stop(d.Reason, effects...)
		case stopsOnly:
			return c.Stop(d.Reason)
		}
	case hooks.Withhold:
		switch c := c.(type) {
		case withholds:
			return c.Withhold(d.Reason, effects...)
		case withholdsOnly:
			return c.Withhold(d.Reason)
		}
	case hooks.Ask:
		if c, ok := c.(asks); ok {
			q, err := d.question()
			if err != nil {
				return failed(err)
			}
			return c.AskAbout(q, effects...)
		}
	case hooks.Approve:
		if c, ok := c.(approves); ok {
			return c.Approve(d.Reason)
		}
	case hooks.Reject:
		if c, ok := c.(approves); ok {
			return c.Reject(d.Reason)
		}
	case hooks.Continue:
		if c, ok := c.(continues); ok {
			return c.Continue(d.Reason)
		}
	default:
		return d.give(c, effects)
	}
	return cannot(c, d.Decision)
}

// give is the decisions that put something in the place of what is there.
func (d *Decision) give(c hooks.Context, effects []agent.Effect) hooks.Result {
	switch {
	case d.Decision == hooks.Rewrite && d.Arguments != nil:
		switch c := c.(type) {
		case rewritesCall:
			return c.Rewrite(d.Arguments, effects...)
		case rewritesCallOnly:
			return c.Rewrite(d.Arguments)
		}
	case d.Decision == hooks.Rewrite && d.Input != nil:
		switch c := c.(type) {
		case rewritesInput:
			return c.RewriteText(*d.Input, effects...)
		case rewritesTextOnly:
			return c.Rewrite(*d.Input)
		}
	case d.Decision == hooks.Mock && d.Result != nil:
		if c, ok := c.(mocks); ok {
			if d.IsError {
				return c.MockFailure(*d.Result, effects...)
			}
			return c.Mock(*d.Result, effects...)
		}
	case d.Decision == hooks.Replace && d.Result != nil:
		switch c := c.(type) {
		case replaces:
			return c.Replace(*d.Result, effects...)
		case replacesReply:
			return c.ReplaceText(*d.Result, effects...)
		case replacesOnly:
			return c.Replace(*d.Result)
		}
	}
	return cannot(c, d.Decision)
}

// addsTo reports whether a decision can have effects at the point of c.
func addsTo(c hooks.Context, d hooks.Decision) bool {
	switch d {
	case hooks.Allow:
		return is[allows](c)
	case hooks.Deny:
		return is[denies](c)
	case hooks.StopRun:
		return is[stops](c)
	case hooks.Withhold:
		return is[withholds](c)
	case hooks.Rewrite:
		return is[rewritesCall](c) || is[rewritesInput](c)
	case hooks.Replace:
		return is[replaces](c) || is[replacesReply](c)
	case hooks.Ask, hooks.Mock:
		return true
	}
	return false
}

// effects is what the decision adds.
func (d *Decision) effects() []agent.Effect {
	var effects []agent.Effect
	if d.Context != "" {
		effects = append(effects, agent.AddContext(d.Context))
	}
	if len(d.Metadata) == 0 {
		return effects
	}
	for _, name := range slices.Sorted(maps.Keys(d.Metadata)) {
		effects = append(effects, agent.SessionKey[any](name).Set(plain(d.Metadata[name])))
	}
	return effects
}

// plain is a JSON value as Go has it: numbers are int64 where they are whole, and float64.
func plain(raw json.RawMessage) any {
	var v any
	if err := strictjson.Unmarshal(raw, &v); err != nil {
		return string(raw) // ParseDecision has read it, so it is somebody's own
	}
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if whole, err := n.Int64(); err == nil {
		return whole
	}
	f, _ := n.Float64()
	return f
}

// cannot says what can be decided instead.
func cannot(c hooks.Context, d hooks.Decision) hooks.Result {
	can := lo.Map(Decisions(c), func(d hooks.Decision, _ int) string { return string(d) })
	if len(can) == 0 {
		return failed(fmt.Errorf("%s cannot be decided at %s: nothing can", d, c.Point()))
	}
	return failed(fmt.Errorf("%s, as it was given, cannot be decided at %s: it can be %s", d, c.Point(), strings.Join(can, ", ")))
}

func failed(err error) hooks.Result { return mo.Err[*hooks.Outcome](err) }

// Apply does an action for a hook and makes an outcome of its answer: what a control made of an action is.
func Apply(ctx context.Context, c hooks.Context, a Action, r *Request) hooks.Result {
	answer, err := Keep(ctx, a, r).Do(ctx, r).Get()
	if err != nil {
		return failed(err)
	}
	return Decide(c, answer.Decision)
}
