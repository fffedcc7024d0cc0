package wire

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// RuleFilter selects rules: the query of GET /rules.
type RuleFilter struct {
	Days      int    `query:"days" default:"30" minimum:"1" maximum:"366" doc:"How many days count, with today, in UTC."`
	AgentName string `query:"agent_name" doc:"Only rules in the runs of this name."`
}

// RuleList are rules by how often they have decided, most first.
type RuleList struct {
	Rules []Rule `json:"rules"`
}

// Rule says how often a hook was called in the runs of one name, and what came of it.
type Rule struct {
	// Hook is the name of the hook; empty for the sum of hooks that are not counted one by one.
	Hook      string `json:"hook"`
	AgentName string `json:"agent_name"`
	// Point, Type, Mode and Path are those of RuleView, in the newest version of the blueprint. They are absent for a hook that it does not
	// have, such as one of the agent's program.
	Point string `json:"point,omitempty"`
	Type  string `json:"type,omitempty"`
	Mode  string `json:"mode,omitempty"`
	Path  string `json:"path,omitempty"`
	// Asked counts calls, also those that the hook lets pass, and Hits those in which it has decided. Decisions has all by their kind.
	Asked     int64                      `json:"asked"`
	Hits      int64                      `json:"hits"`
	Decisions map[durable.Decision]int64 `json:"decisions,omitempty"`
	// ShadowHits counts what it would have decided in shadow mode. Overridden counts what people have overridden.
	ShadowHits int64 `json:"shadow_hits"`
	Overridden int64 `json:"overridden"`
	Failed     int64 `json:"failed"`
	Timeouts   int64 `json:"timeouts"`
	// P95MS is how long 95 of 100 calls took at most.
	P95MS   int64     `json:"p95_ms" doc:"How long 95 of 100 calls took at most, rounded up to 1, 5, 20, 50 and so on; -1 above 20000, 0 without calls."`
	LastHit time.Time `json:"last_hit,omitzero"`
	// Notice is what stands out.
	Notice RuleNotice `json:"notice,omitempty" enum:"unused,never,overridden"`
}

// RuleNotice is what stands out about a rule.
type RuleNotice string

// What stands out about a rule.
const (
	// RuleUnused: the hook was not called.
	RuleUnused RuleNotice = "unused"
	// RuleNever: the hook was called, and has decided nothing, not even in shadow.
	RuleNever RuleNotice = "never"
	// RuleOverridden: people have overridden the hook nearly always.
	RuleOverridden RuleNotice = "overridden"
)

// HitFilter selects what a hook has decided: the query of GET /rules/{hook}/hits.
type HitFilter struct {
	Days      int    `query:"days" default:"30" minimum:"1" maximum:"366" doc:"Only runs that were created in so many days, with today, in UTC."`
	AgentName string `query:"agent_name" doc:"Only runs of this name."`
	Decision  string `query:"decision" doc:"Only runs with this decision." enum:"blocked,denied,asked,rewritten,withheld,failed,timeout,shadow,overridden"`
	Before    string `query:"before" doc:"Only runs after this one in the order of the list: next of the page before."`
	Limit     int    `query:"limit" default:"20" minimum:"1" maximum:"100" doc:"How many runs a page has."`
}

// HitList are runs in which a hook has decided, newest first.
type HitList struct {
	Runs []RunHits `json:"runs"`
	// Next, unless empty, is the value of before for the next page.
	Next string `json:"next,omitempty"`
}

// RunHits are the calls of a hook in a run: those in which it has not let something pass.
type RunHits struct {
	Run  Run   `json:"run"`
	Hits []Hit `json:"hits"`
	// More is set if the run has more events or hits than were read.
	More bool `json:"more,omitempty"`
}

// Hit is one decision of a hook.
type Hit struct {
	// Seq is the number of its event in the run, as GET /runs/{id}/events has it.
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Point string    `json:"point"`
	Tool  string    `json:"tool,omitempty"`
	Call  string    `json:"call_id,omitempty"`
	// Decision says what the hook has decided, or why it has not, in words.
	Decision string `json:"decision"`
	// Outcome is complete, blocked, failed or timeout.
	Outcome    string `json:"outcome"`
	Reason     string `json:"reason,omitempty"`
	Shadow     bool   `json:"shadow,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	// Subagent is the run of the agent that has called the hook, if another than the run.
	Subagent agent.RunID `json:"subagent_run_id,omitempty"`
}
