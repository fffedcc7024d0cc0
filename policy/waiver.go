package policy

import (
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
)

// over reports whether the waiver has ended.
func (w *Waiver) over() bool { return !time.Now().Before(w.Expires) }

// newHooks returns the rule as hooks: one, or, while it is waived, one in shadow and one that takes over when the waiver
// ends.
func (r *rule) newHooks(do action.Action) []hooks.Hook {
	if r.waiver == nil || r.shadow || r.waiver.over() {
		return []hooks.Hook{r.newHook(do)}
	}
	waived := hooks.When(func(hooks.Context) bool { return !r.waiver.over() })
	kept := *r
	kept.suffix, kept.shadow = waivedSuffix, true
	return []hooks.Hook{kept.newHook(do).Matching(waived), r.newHook(do).Matching(hooks.Not(waived))}
}

// waivedSuffix ends the name of the hook of a waived rule.
const waivedSuffix = ":waived"
