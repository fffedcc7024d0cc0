package coordinator

import (
	"maps"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// reservedPrefix begins the names of labels and demands that requests and blueprints cannot have.
const reservedPrefix = "coordinator."

// The demands of runs. Runners of a coordinator have runnerLabel as labelRunner, and labelCommand with the name of each of their commands;
// labelPipelines is the identity of PipelineOptions.Dir.
const (
	labelRunner    = reservedPrefix + "runner"
	runnerLabel    = "yes"
	labelCommand   = reservedPrefix + "command/"
	labelPipelines = reservedPrefix + "pipelines"
)

// LabelHook is the label with the type of the hook, such as on_run_start, of a run that a hook has started.
const LabelHook = reservedPrefix + "hook"

// The other labels: see facts. Lists select runs by some of them.
const (
	labelHooks         = reservedPrefix + "hooks"
	labelResult        = reservedPrefix + "result"
	labelSession       = reservedPrefix + "session"
	labelAfter         = reservedPrefix + "after"
	labelParentSession = reservedPrefix + "parent_session"
	labelMode          = reservedPrefix + "mode"
	labelKey           = reservedPrefix + "key"
	labelTrace         = reservedPrefix + "traceparent"
)

// A session's first run has the labelSession sessionBegin, later runs have sessionResume.
const (
	sessionBegin  = "begin"
	sessionResume = "resume"
)

// facts are what a coordinator knows about a run beside what the store has of each run. The store keeps them as labels.
type facts struct {
	// hasHooks says that the blueprint has hooks, holdsResult that on_result hooks are called before the result is stored.
	hasHooks, holdsResult bool
	// hook is the type of the hook that has started the run.
	hook string
	// session is sessionBegin or sessionResume; empty for a run that calls hooks or a session back. After is the run of the session
	// before this one, parentSession the session that has started this one.
	session       string
	after         agent.RunID
	parentSession agent.SessionID
	// mode says who is told when the run has ended; empty is AsyncPoll.
	mode wire.ExecutionMode
	// key is the hash of the idempotency key with which the session was resumed.
	key string
	// trace is the span that has submitted the run, as the W3C header traceparent has it.
	trace string
}

// factsOf returns what is known about a run.
func factsOf(r durable.Run) facts {
	l := r.Labels
	return facts{
		hasHooks: l[labelHooks] != "", holdsResult: l[labelResult] != "", hook: l[LabelHook], session: l[labelSession], after: agent.RunID(l[labelAfter]),
		parentSession: agent.SessionID(l[labelParentSession]), mode: wire.ExecutionMode(l[labelMode]), key: l[labelKey], trace: l[labelTrace],
	}
}

// resumes reports whether the run continues a session.
func (f facts) resumes() bool { return f.session == sessionResume }

// addTo returns the labels of a run with these facts and the labels of its request.
func (f facts) addTo(more map[string]string) map[string]string {
	yes := map[bool]string{true: "yes"}
	all := map[string]string{
		labelHooks: yes[f.hasHooks], labelResult: yes[f.holdsResult], LabelHook: f.hook, labelSession: f.session, labelAfter: string(f.after),
		labelParentSession: string(f.parentSession), labelMode: string(f.mode), labelKey: f.key, labelTrace: f.trace,
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	maps.Copy(all, more)
	return all
}
