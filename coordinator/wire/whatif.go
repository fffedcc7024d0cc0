package wire

import (
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// WhatIfRequest asks what rules would do to stored runs.
type WhatIfRequest struct {
	// Policy are the rules to try, and Before the rules as they are: each the text of a policy file or of a blueprint, or library:NAME.
	// An empty Before has no rules.
	Policy string `json:"policy" minLength:"1" doc:"The rules to try: the text of a policy file or of a blueprint, or library:NAME."`
	Before string `json:"before,omitempty" doc:"The rules as they are, in the same forms. Empty means none."`
	// RunID, unless empty, is the only run. Otherwise the others select runs: of a blueprint or agent, and by when they were created.
	RunID     agent.RunID `json:"run_id,omitempty" doc:"Only this run."`
	AgentName string      `json:"agent_name,omitempty" doc:"Only runs of this blueprint."`
	Since     time.Time   `json:"since,omitzero" doc:"Only runs created at or after this time."`
	Until     time.Time   `json:"until,omitzero" doc:"Only runs created before this time."`
	// Limit is how many runs to replay at most, the newest ones.
	Limit int `json:"limit,omitempty" default:"10000" minimum:"1" maximum:"100000" doc:"How many runs to replay at most: the newest ones."`
}

// WhatIfProgress is how far a replay is.
type WhatIfProgress struct {
	// Runs of Of were replayed or could not be.
	Runs int `json:"runs"`
	Of   int `json:"of"`
	// StoppedBefore is how many calls the rules as they are have denied or asked about, StoppedAfter how many the rules to try have.
	StoppedBefore int `json:"stopped_before"`
	StoppedAfter  int `json:"stopped_after"`
}

// WhatIf is what rules would do to stored runs, compared with the rules as they are.
type WhatIf struct {
	// Runs is how many were replayed, with Calls calls in them. Cut says that the limit has left older ones out, Interrupted that
	// the replay was stopped before its end.
	Runs        int  `json:"runs"`
	Calls       int  `json:"calls"`
	Cut         bool `json:"cut,omitempty"`
	Interrupted bool `json:"interrupted,omitempty"`
	// NewlyDenied, NewlyAsked and NewlyAllowed count calls that are treated differently, and Changed those that run with other arguments or
	// get another answer.
	NewlyDenied  int `json:"newly_denied"`
	NewlyAsked   int `json:"newly_asked"`
	NewlyAllowed int `json:"newly_allowed"`
	Changed      int `json:"changed"`
	// Good is how many of the runs were completed. Broken is how many of these have a call that had succeeded and is newly denied or asked
	// about; Mended is how many have such a call no more.
	Good   int `json:"good"`
	Broken int `json:"broken"`
	Mended int `json:"mended"`
	// Before and After are the counts of "grapnel hooks backtest" for the rules as they are and the rules to try.
	Before WhatIfCounts `json:"before"`
	After  WhatIfCounts `json:"after"`
	// Groups are the differences, the largest first.
	Groups []WhatIfGroup `json:"groups"`
	// NotJudged says what the replay cannot tell.
	NotJudged []NotJudged `json:"not_judged"`
	Seconds   float64     `json:"seconds"`
}

// WhatIfCounts says how often rules have decided.
type WhatIfCounts struct {
	Denied    int `json:"denied"`
	Asked     int `json:"asked"`
	Rewritten int `json:"rewritten"`
	Mocked    int `json:"mocked"`
	Redacted  int `json:"redacted"`
	Stopped   int `json:"stopped"`
	Failed    int `json:"failed"`
	Shadow    int `json:"shadow"`
}

// WhatIfGroup is a set of similar differences.
type WhatIfGroup struct {
	// From is what the rules as they are do with the calls, To what the rules to try do: allowed, denied, asked and so on.
	From string `json:"from"`
	To   string `json:"to"`
	Tool string `json:"tool,omitempty"`
	// Rule is the rule that decides with the rules to try, or the one that has decided before.
	Rule string `json:"rule"`
	// Calls in Runs are treated so; Worked of them had succeeded.
	Calls  int `json:"calls"`
	Runs   int `json:"runs"`
	Worked int `json:"worked"`
	// RunID, CallID, Arguments and Reason are an example.
	RunID     agent.RunID `json:"run_id"`
	CallID    string      `json:"call_id,omitempty"`
	Arguments string      `json:"arguments,omitempty"`
	Reason    string      `json:"reason,omitempty"`
}

// CaseRequest names a decision in a run, or a call, for a test case.
type CaseRequest struct {
	// Decision is the number of the event with a hook's decision. If it is zero, Call is the ID of a call.
	Decision int64
	Call     string
	// Expect, unless empty, is what is expected of the policy, as a word of expect.decision in files of cases. By default it is what was
	// decided, or pass for a call.
	Expect string
	// Policy, unless empty, is the file of the policy, in place of the one of the decision's rule.
	Policy string
}

// NotJudged is something that a replay cannot tell.
type NotJudged struct {
	// Why is a sentence. Runs, unless zero, is how many runs it is about, and Rules are the rules.
	Why   string   `json:"why"`
	Runs  int      `json:"runs,omitempty"`
	Rules []string `json:"rules,omitempty"`
}
