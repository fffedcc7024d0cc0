package toolexec

import (
	"cmp"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/nils"
)

const (
	// defaultMaxResultBytes limits an answer's text to about sixteen thousand tokens.
	defaultMaxResultBytes = 64 << 10
	// defaultGrace is how long a tool may take to notice that its time is up.
	defaultGrace = time.Second
)

// Policy configures how a tool runs. The zero Policy runs it once, without a time limit. The executor's policy applies
// to fields that a tool does not set.
type Policy struct {
	// Timeout is the time limit for one attempt, after which its ctx is done. Zero or less means no limit: the tool
	// runs on the run's goroutine, and blocks the run if it ignores its ctx. With a limit, each attempt has its own
	// goroutine, which costs a few microseconds. The run then continues even if the tool does not return.
	Timeout time.Duration
	// Grace, with a Timeout, is the time that an attempt has to return after its ctx is done. A successful answer in
	// this time still counts. An attempt that has not returned by then is abandoned: the call has failed, there is no
	// retry, and any later result is lost. Its goroutine, and all memory that the goroutine holds, stay until the tool
	// returns; see Executor.AbandonedCalls. Zero means one second. Less than zero means no time.
	Grace time.Duration
	// Retry configures retries of failed attempts. It is used as a whole: the tool's Retry if it sets Attempts,
	// otherwise the executor's.
	Retry Retry
	// Doubt decides a call in doubt: the call began before its run was cut off and may have run. Zero means DoubtAsk.
	Doubt Doubt
	// MaxResultBytes limits an answer's text. The model gets only the head and the tail of a longer text, with a note
	// between them that says how much is missing. No rune is split. The note counts towards the limit. Images and files
	// stay whole and do not count. The text is cut after the hooks for results have run, so that a filter always sees
	// the whole text: see agent.ToolResult.CutToLimit. Zero means 64 KiB. Less than zero means no limit.
	MaxResultBytes int
	// AddMessages allows the tool to append messages in the user or system role (see Output.Effects). Without this
	// permission, such a call fails. Such messages carry the tool's name as their source, and never count as the user's
	// words. Context (agent.AddContext) needs no permission.
	AddMessages bool
}

// Doubt decides a call that may already have run.
type Doubt uint8

const (
	// DoubtAsk asks a person whether the call runs again. Without an approver, and after a deadline, the call does not
	// run again. Its result then has the status agent.ToolUnknown.
	DoubtAsk Doubt = iota + 1
	// DoubtRepeat runs the call again with the same arguments and the same idempotency key, without a new approval. Use
	// it for tools that only read, that are idempotent, or that honor the key.
	DoubtRepeat
)

// over returns p, with q's fields where p sets none.
func (p Policy) over(q Policy) Policy {
	out := Policy{
		Timeout:        cmp.Or(p.Timeout, q.Timeout),
		Grace:          cmp.Or(p.Grace, q.Grace),
		Retry:          p.Retry,
		Doubt:          cmp.Or(p.Doubt, q.Doubt),
		MaxResultBytes: cmp.Or(p.MaxResultBytes, q.MaxResultBytes),
		AddMessages:    p.AddMessages || q.AddMessages,
	}
	if out.Retry.Attempts == 0 {
		out.Retry = q.Retry
	}
	return out
}

// WithPolicy returns the tool with another policy. Fields that p does not set keep the tool's own values.
func WithPolicy(t Tool, p Policy) Tool { return policedTool{t, p} }

// WithPurpose returns the tool with a purpose, for policies: see agent.Purpose.
func WithPurpose(t Tool, p agent.Purpose) Tool { return declaredTool{t, &p} }

type declaredTool struct {
	Tool

	purpose *agent.Purpose
}

// Spec returns the tool's description, with its purpose.
func (t declaredTool) Spec() agent.ToolSpec {
	spec := t.Tool.Spec()
	spec.Purpose = t.purpose
	return spec
}

type policedTool struct {
	Tool

	policy Policy
}

// unwrapTool returns the tool without its wrappers. It also returns the policy that results from the wrappers and the
// tool's own Policy method, and the outermost wrapper's purpose; nil if there is none.
func unwrapTool(t Tool) (Tool, Policy, *agent.Purpose) {
	var policy Policy
	var purpose *agent.Purpose
loop:
	for {
		switch wrapping := t.(type) {
		case policedTool:
			t, policy = wrapping.Tool, policy.over(wrapping.policy)
		case declaredTool:
			t, purpose = wrapping.Tool, cmp.Or(purpose, wrapping.purpose)
		default:
			break loop
		}
	}
	if own, ok := t.(interface{ Policy() Policy }); ok && !nils.Is(t) {
		policy = policy.over(own.Policy())
	}
	return t, policy, purpose
}

// bound is a tool as an executor runs it.
type bound struct {
	executor *Executor
	name     string
	tool     Tool
	strict   bool // the tool itself reads its arguments strictly
	policy   Policy
	timedOut *TimeoutError // the cancellation cause of an attempt's ctx
}

func (e entry) under(defaults Policy, by *Executor) *bound {
	policy := e.policy.over(defaults).over(Policy{Grace: defaultGrace, MaxResultBytes: defaultMaxResultBytes})
	_, strict := e.tool.(interface{ readsStrictly() })
	return &bound{by, e.spec.Name, e.tool, strict, policy, &TimeoutError{After: policy.Timeout}}
}
