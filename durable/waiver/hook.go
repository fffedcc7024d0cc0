package waiver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// Source returns the waivers in force, or all of them: a durable.Store, or the store of a coordinator's runner.
type Source interface {
	Waivers(ctx context.Context, all bool) ([]durable.Waiver, error)
}

// HookName is the name of Hook.
const HookName = "waiver"

// Hook returns the hook that answers with the waivers of a store. It is called "waiver" and has the highest priority, so
// that it may answer the question of every hook that a person could waive. When the store cannot be read, the person is
// asked.
func Hook(store Source) hooks.Hook {
	return hooks.On(hooks.AtInterventionRequested, HookName, func(ctx context.Context, c hooks.InterventionContext) hooks.Result {
		open := c.Questions().Open()
		if !slices.ContainsFunc(open, isForWaivers) {
			return c.Allow()
		}
		waivers, err := store.Waivers(ctx, false)
		if err != nil {
			return mo.Err[*hooks.Outcome](fmt.Errorf("reading the waivers: %w", err))
		}
		var used []string
		for _, q := range open {
			w, ok := lo.Find(waivers, func(w durable.Waiver) bool { return answers(w, q, c.Call().ToolCall) })
			if !ok {
				return c.Allow()
			}
			used = append(used, fmt.Sprintf("%s of %s", w.ID, w.By))
		}
		return c.Approve("waiver " + strings.Join(lo.Uniq(used), ", "))
	}).WithPriority(math.MaxInt).WithFailure(hooks.Open).WithWaivers()
}

// CanAnswer reports whether a waiver may answer a question, and the agent that asks it has Hook.
func CanAnswer(q agent.Question) bool { return whyNot(q) == "" }

// isForWaivers reports whether a waiver may answer a question if the agent has Hook.
func isForWaivers(q agent.Question) bool {
	q.Waivable = true
	return CanAnswer(q)
}

// whyNot returns why no waiver may answer a question; empty if one may.
func whyNot(q agent.Question) string {
	switch {
	case q.Kind != agent.QuestionOrdinary:
		return "only questions of rules about calls that have not begun can be waived"
	case q.By == "":
		return "no rule asks it"
	case q.Required:
		return "the rule " + q.By + " is of a required policy, whose questions only people answer"
	case q.Restricted():
		return "about the rule " + q.By + ", " + q.Needs()
	case !q.Waivable:
		return "the agent does not use waivers: its program must give it the hook of package waiver"
	}
	return ""
}

// answers reports whether a waiver answers a question about a call. A waiver that cannot be read answers none.
func answers(w durable.Waiver, q agent.Question, call agent.ToolCall) bool {
	s, err := ScopeOf(w)
	return err == nil && isForWaivers(q) && s.Covers(q.By, call)
}
