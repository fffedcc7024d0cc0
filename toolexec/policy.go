package toolexec

import (
	"cmp"
	"time"

	"github.com/grapnel-go/grapnel/internal/nils"
)

// What a Policy that says nothing means.
const (
	// defaultMaxResultBytes is how much text of an answer the model is shown: about sixteen thousand tokens.
	defaultMaxResultBytes = 64 << 10
	// defaultGrace is how long a tool may take to notice that its time is up.
	defaultGrace = time.Second
)

// Policy is how a tool is run. The zero Policy runs it once, without a time limit. Where a tool says nothing, the
// executor's policy holds, field by field.
type Policy struct {
	// Timeout is how long one attempt may take; its ctx is then done. Zero and less mean no limit: the tool runs on
	// the run's own goroutine, and one that ignores its ctx holds the run up for as long as it likes. With a limit each
	// attempt has a goroutine of its own, at the price of a few microseconds, so that the run goes on whatever the tool does.
	Timeout time.Duration
	// Grace, where there is a Timeout, is how long an attempt may still take to return once its ctx is done. A good
	// answer counts even then. What has not returned afterwards is given up: the call has failed, no retry follows, and
	// what the tool does from there on is lost. Its goroutine and all that it holds live until it returns; see
	// Executor.Abandoned. Zero means one second, less than zero none.
	Grace time.Duration
	// Retry is whether a failed attempt is repeated. It is taken whole: from the tool when that sets Attempts, else
	// from the executor.
	Retry Retry
	// Doubt is what becomes of a call that began before its run was cut off, and that may have happened. Zero means
	// DoubtAsk.
	Doubt Doubt
	// MaxResultBytes is how much text of an answer the model is shown. Of a longer one it gets head and tail, and
	// between them a note that says how much is missing; never half a rune. The note counts. Images and files stay
	// whole and do not count. What is too long is cut out when the hooks after the call have seen all of it, so that no
	// filter gets half of what it looks for: see agent.ToolResult.CutToLimit. Zero means 64 KiB, less than zero no limit.
	MaxResultBytes int
	// AddMessages lets the tool append messages in the role of the user or of the system (see Output.Effects); without it
	// a call that does so has failed. Such messages carry the tool's name as their source, and never count as the user's
	// words. Context (agent.AddContext) needs no declaration.
	AddMessages bool
}

// Doubt says what becomes of a call that may have run already.
type Doubt uint8

// What may become of it.
const (
	// DoubtAsk: a person is asked whether it runs again. Without an approver, and after a deadline, it does not: its
	// result has the status agent.ToolUnknown.
	DoubtAsk Doubt = iota + 1
	// DoubtRepeat: it runs again with the same arguments and the same idempotency key, and needs no new approval. It is
	// for tools that only read, that do the same twice as once, or that keep to the key.
	DoubtRepeat
)

// over returns p where it says something, and otherwise q.
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

// WithPolicy returns the tool with another policy; where p says nothing, the tool's own stays.
func WithPolicy(t Tool, p Policy) Tool { return policedTool{t, p} }

type policedTool struct {
	Tool

	policy Policy
}

// unwrapTool returns the tool itself and the policy that its wrappings and its own Policy method make together.
func unwrapTool(t Tool) (Tool, Policy) {
	var policy Policy
	for {
		wrapping, ok := t.(policedTool)
		if !ok {
			break
		}
		t, policy = wrapping.Tool, policy.over(wrapping.policy)
	}
	if own, ok := t.(interface{ Policy() Policy }); ok && !nils.Is(t) {
		policy = policy.over(own.Policy())
	}
	return t, policy
}

// bound is a tool as an executor runs it.
type bound struct {
	executor *Executor
	name     string
	tool     Tool
	strict   bool // the tool reads its arguments strictly itself
	policy   Policy
	timedOut *TimeoutError // what the ctx of an attempt is cancelled with
}

func (e entry) under(defaults Policy, by *Executor) *bound {
	policy := e.policy.over(defaults).over(Policy{Grace: defaultGrace, MaxResultBytes: defaultMaxResultBytes})
	_, strict := e.tool.(interface{ readsStrictly() })
	return &bound{by, e.spec.Name, e.tool, strict, policy, &TimeoutError{After: policy.Timeout}}
}
