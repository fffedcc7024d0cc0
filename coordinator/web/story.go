package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

// verdict is the kind of a decision. It also names its icon and colour.
type verdict string

const (
	passed   verdict = "passed"
	denied   verdict = "denied"
	asked    verdict = "asked"
	rewrote  verdict = "rewrote"
	withheld verdict = "withheld"
	failed   verdict = "failed"
	shadow   verdict = "shadow"
	running  verdict = "running"
)

// verdicts are the kinds that a summary counts, in its order, with their words.
var verdicts = []struct {
	kind verdict
	word string
}{{denied, "denied"}, {withheld, "withheld"}, {asked, "asked"}, {rewrote, "changed"}, {failed, "failed"}, {shadow, "in shadow"}}

// decision is one call of a hook.
type decision struct {
	seq  int64
	kind verdict
	// hook is the hook's name without its policy, title names it for people, and words say what it decided.
	hook, title, words string
	from, at           time.Time
	reason, err        string
	facts              []hooks.Fact
	before, after      string
	origin             *hooks.Origin
	run                agent.RunID // that the hook has started
	around             bool        // the hook is around the run
	point              string
	open               string // identifies a call that has no outcome yet
}

func (d *decision) id() string { return fmt.Sprintf("d-%d", d.seq) }

// call is one tool call.
type call struct {
	id, tool            string
	original, arguments string
	from, to            time.Time
	decisions           []*decision
	questions           []question
	answers             []answer
	subagents           []string
	runs                bool
	done                *completedCall
}

// step is one step of an agent.
type step struct {
	key     stepKey
	agent   string // the sub-agent, if any
	from    time.Time
	thought time.Time // when the model answered
	to      time.Time
	model   string
	input   []string
	text    string
	usage   usage
	tookMS  int64
	calls   []*call
	other   []*decision
	notes   []string
	err     string
}

type stepKey struct {
	run  agent.RunID
	step int
}

func (s *step) id(root agent.RunID) string {
	if s.key.run == root || s.key.run == "" {
		return fmt.Sprintf("s-%d", s.key.step+1)
	}
	return fmt.Sprintf("s-%s-%d", s.key.run, s.key.step+1)
}

// entry is a part of a story: a step, a hook around the run, or a note.
type entry struct {
	step     *step
	decision *decision
	note     string
	seq      int64
}

// story is what the events of a run say, in order. It is made for one request or stream and not safe for concurrent use.
type story struct {
	root    agent.RunID
	entries []entry
	last    int64
	// keep, unless zero, is how many steps the story keeps; until, unless zero, is the first step that it leaves out.
	keep, until int
	// dropped counts the steps that were left out at the beginning.
	dropped        int
	steps          int
	calls          int
	usage          usage
	counts         map[verdict]int
	passes         map[string]int
	names          map[agent.RunID]string
	hidden         map[stepKey]*step // from until
	started, ended time.Time
}

func newStory(root agent.RunID, keep, until int) *story {
	return &story{
		root: root, keep: keep, until: until, counts: map[verdict]int{}, passes: map[string]int{}, names: map[agent.RunID]string{},
		hidden: map[stepKey]*step{},
	}
}

type (
	usage struct {
		InputTokens  int64    `json:"input_tokens"`
		OutputTokens int64    `json:"output_tokens"`
		CostUSD      *float64 `json:"cost_usd"`
	}
	failure struct {
		Text string `json:"text"`
	}
	toolCall struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	question struct {
		By        string   `json:"by"`
		Rule      string   `json:"rule"`
		Reason    string   `json:"reason"`
		Approvers []string `json:"approvers"`
		Quorum    int      `json:"quorum"`
	}
	answer struct {
		Verdict  string    `json:"verdict"`
		Author   string    `json:"author"`
		By       string    `json:"by"`
		Identity string    `json:"identity"`
		Reason   string    `json:"reason"`
		At       time.Time `json:"at"`
	}
	completedCall struct {
		Call       toolCall         `json:"call"`
		Original   *string          `json:"original_arguments"`
		Status     agent.ToolStatus `json:"status"`
		Reason     agent.ReasonCode `json:"reason"`
		DecidedBy  string           `json:"decided_by"`
		Denied     bool             `json:"denied"`
		Text       string           `json:"text"`
		Attempts   int              `json:"attempts"`
		DurationMS int64            `json:"duration_ms"`
	}
	// head is in all events of a step.
	head struct {
		Run  agent.RunID `json:"run"`
		Step int         `json:"step"`
	}
	hookEvent struct {
		head

		Hook       string         `json:"hook"`
		Point      string         `json:"point"`
		Shadow     bool           `json:"shadow"`
		Origin     *hooks.Origin  `json:"origin"`
		CallID     string         `json:"call_id"`
		Tool       string         `json:"tool"`
		DurationMS int64          `json:"duration_ms"`
		Decision   hooks.Decision `json:"decision"`
		Reason     string         `json:"reason"`
		Facts      []hooks.Fact   `json:"facts"`
		Before     string         `json:"before"`
		After      string         `json:"after"`
		Policy     string         `json:"policy"`
		Error      *failure       `json:"error"`
	}
)

// add adds an event. Events of other versions, which cannot be read, are left out.
func (s *story) add(e wire.EventView) {
	s.last = max(s.last, e.Seq)
	if s.started.IsZero() || e.Time.Before(s.started) {
		s.started = e.Time
	}
	if e.Time.After(s.ended) {
		s.ended = e.Time
	}
	switch {
	case slices.Contains(aroundEvents, e.Type):
		s.addAround(e)
	case strings.HasPrefix(e.Type, "hook."):
		s.addHook(e)
	case strings.HasPrefix(e.Type, "subagent."):
		s.addSubagent(e)
	case e.Type == durable.EventCounts:
		counts := map[string]int{}
		if json.Unmarshal(e.Data, &counts) == nil {
			for name, n := range counts {
				if hook, ok := strings.CutSuffix(name, " pass"); ok {
					s.passes[hook] += n
				}
			}
		}
	default:
		s.addAgent(e)
	}
}

// aroundEvents are the types of events of hooks around a run. Runners cannot report them.
var aroundEvents = []string{wire.EventHookStart, wire.EventHookComplete, wire.EventHookFailed, wire.EventHookBlocked, wire.EventHookTimeout}

// addAround adds an event of a hook around the run.
func (s *story) addAround(e wire.EventView) {
	var h wire.HookEvent
	if json.Unmarshal(e.Data, &h) != nil {
		return
	}
	d := &decision{
		seq: e.Seq, kind: passed, title: h.Title(), hook: shortHook(h.Hook), point: h.HookType, at: e.Time, from: e.Time, around: true,
		run: h.HookRunID, reason: h.BlockReason, err: h.Error, before: string(h.Before), after: string(h.After), open: h.HookType + " " + h.Hook,
	}
	if h.DurationMS != nil {
		d.from = e.Time.Add(-time.Duration(*h.DurationMS) * time.Millisecond)
	}
	switch e.Type {
	case wire.EventHookStart:
		d.kind, d.words = running, "running"
	case wire.EventHookBlocked:
		d.kind, d.words = denied, "block"
		if h.HookType != "on_run_start" {
			d.kind = withheld
		}
	case wire.EventHookFailed, wire.EventHookTimeout:
		d.kind, d.words = failed, strings.TrimPrefix(e.Type, "hook_")
		if policy := cmp.Or(h.OnError, h.OnErrorBehavior); policy != "" {
			d.words += ", on_error " + policy
		}
	default:
		d.words = cmp.Or(h.Action, "complete")
		if h.ParametersTransformed || h.Action == string(hooks.Replace) {
			d.kind = rewrote
		}
	}
	if !s.closeOpen(d) {
		s.entries = append(s.entries, entry{decision: d, seq: e.Seq})
	}
	s.counts[d.kind]++
}

// closeOpen puts the outcome of a hook's call in the place of its beginning, if the story has that.
func (s *story) closeOpen(d *decision) bool {
	isOpen := func(o *decision) bool { return o != nil && o.kind == running && o.open == d.open }
	i := slices.IndexFunc(s.entries, func(e entry) bool { return isOpen(e.decision) })
	if i < 0 {
		return false
	}
	d.seq = s.entries[i].decision.seq
	s.entries[i].decision = d
	return true
}

// shortHook returns a hook's name without its policy.
func shortHook(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// addHook adds an answer of a hook inside the run.
func (s *story) addHook(e wire.EventView) {
	var h hookEvent
	if json.Unmarshal(e.Data, &h) != nil {
		return
	}
	outcome := strings.TrimPrefix(e.Type, "hook.")
	if outcome == "start" {
		return
	}
	d := &decision{
		seq: e.Seq, kind: kindOf(outcome, h), hook: shortHook(h.Hook), title: h.Point + " hook " + h.Hook, point: h.Point, at: e.Time,
		from: e.Time.Add(-time.Duration(h.DurationMS) * time.Millisecond), reason: h.Reason, facts: h.Facts, before: h.Before, after: h.After,
		origin: h.Origin,
	}
	policy := h.Policy
	if h.Origin != nil {
		if target := strings.TrimSpace(h.Origin.Action + " " + h.Origin.Target); target != "" {
			d.title += " (" + target + ")"
		}
		if policy != "" && policy != "retry" {
			policy = cmp.Or(h.Origin.OnFailure, policy)
		}
	}
	if h.Error != nil {
		d.err = h.Error.Text
	}
	switch {
	case d.err != "" && outcome == "skipped":
		d.words = "skipped"
	case d.kind == failed:
		d.words = outcome
		if policy != "" {
			d.words += ", on_error " + policy
		}
	case h.Shadow:
		d.words = "in shadow: would " + string(h.Decision)
	default:
		d.words = cmp.Or(string(h.Decision), outcome)
	}
	s.counts[d.kind]++
	at := s.stepFor(e, h.head)
	if c := at.call(h.CallID); c != nil {
		c.decisions = append(c.decisions, d)
		return
	}
	at.other = append(at.other, d)
}

// kindOf returns the kind of a hook's answer.
func kindOf(outcome string, h hookEvent) verdict {
	switch {
	case outcome == "failed" || outcome == "timeout" || h.Error != nil && outcome != "skipped":
		return failed
	case h.Shadow:
		return shadow
	case h.Decision == hooks.Withhold:
		return withheld
	case outcome == "blocked":
		return denied
	case h.Decision == hooks.Ask:
		return asked
	case h.Decision == hooks.Rewrite || h.Decision == hooks.Replace || h.Decision == hooks.Mock:
		return rewrote
	}
	return passed
}

// stepFor returns the step that an event belongs to, and adds it if it is new.
func (s *story) stepFor(e wire.EventView, at head) *step {
	key := stepKey{at.Run, at.Step}
	for _, one := range slices.Backward(s.entries) {
		if known := one.step; known != nil && known.key == key {
			return known
		}
	}
	if known := s.hidden[key]; known != nil {
		return known
	}
	added := &step{key: key, from: e.Time}
	if at.Run != s.root {
		added.agent = cmp.Or(s.names[at.Run], string(at.Run))
	}
	if s.steps++; s.until > 0 && s.steps >= s.until {
		s.hidden[key] = added
		return added
	}
	s.entries = append(s.entries, entry{step: added, seq: e.Seq})
	s.trim()
	return added
}

// trim drops the oldest steps when there are more than the story keeps. Hooks before the run stay.
func (s *story) trim() {
	if s.keep == 0 || lo.CountBy(s.entries, func(e entry) bool { return e.step != nil }) <= s.keep {
		return
	}
	i := slices.IndexFunc(s.entries, func(e entry) bool { return e.step != nil })
	s.entries = slices.Delete(s.entries, i, i+1)
	s.dropped++
}

// call returns the step's call with an ID, and adds it if it is new; nil for an empty ID.
func (s *step) call(id string) *call {
	if id == "" {
		return nil
	}
	if known, ok := lo.Find(s.calls, func(c *call) bool { return c.id == id }); ok {
		return known
	}
	added := &call{id: id}
	s.calls = append(s.calls, added)
	return added
}

// set notes the call's tool and arguments.
func (c *call) set(of toolCall, original *string) {
	c.tool, c.arguments = of.Name, of.Arguments
	if original != nil {
		c.original = *original
	} else if c.original == "" {
		c.original = of.Arguments
	}
}

func (s *story) addSubagent(e wire.EventView) {
	var sub struct {
		head

		CallID   string      `json:"call_id"`
		Subagent agent.RunID `json:"subagent"`
		Agent    string      `json:"agent"`
	}
	if json.Unmarshal(e.Data, &sub) != nil {
		return
	}
	s.names[sub.Subagent] = sub.Agent
	if e.Type != "subagent.started" {
		return
	}
	for _, one := range slices.Backward(s.entries) { // these events do not name their step
		if at := one.step; at != nil && at.key.run == sub.Run {
			if c := at.call(sub.CallID); c != nil {
				c.subagents = append(c.subagents, cmp.Or(sub.Agent, string(sub.Subagent)))
			}
			return
		}
	}
}

// addAgent adds an event of an agent.
func (s *story) addAgent(e wire.EventView) {
	var h head
	if json.Unmarshal(e.Data, &h) != nil {
		return
	}
	switch e.Type {
	case (agent.StepStarted{}).EventName():
		s.stepFor(e, h)
	case (agent.InferenceStarted{}).EventName():
		var in struct {
			Input []string `json:"input"`
		}
		if json.Unmarshal(e.Data, &in) == nil {
			s.stepFor(e, h).input = in.Input
		}
	case (agent.InferenceCompleted{}).EventName():
		s.addReply(e, h)
	case (agent.ToolCallStarted{}).EventName():
		var in struct {
			Call     toolCall `json:"call"`
			Original *string  `json:"original_arguments"`
			Runs     bool     `json:"runs"`
		}
		if json.Unmarshal(e.Data, &in) == nil {
			s.calls++
			if c := s.stepFor(e, h).call(in.Call.ID); c != nil {
				c.set(in.Call, in.Original)
				c.runs, c.from = in.Runs, e.Time
			}
		}
	case (agent.ToolCallCompleted{}).EventName():
		var in completedCall
		if json.Unmarshal(e.Data, &in) == nil {
			if c := s.stepFor(e, h).call(in.Call.ID); c != nil {
				c.set(in.Call, in.Original)
				c.done, c.to = &in, e.Time
			}
		}
	case (agent.ApprovalRequested{}).EventName(), (agent.ApprovalCompleted{}).EventName():
		s.addApproval(e, h)
	case (agent.StepCompleted{}).EventName():
		var in struct {
			DurationMS int64    `json:"duration_ms"`
			Error      *failure `json:"error"`
		}
		if json.Unmarshal(e.Data, &in) == nil {
			at := s.stepFor(e, h)
			at.to, at.tookMS = e.Time, in.DurationMS
			if in.Error != nil {
				at.err = in.Error.Text
			}
		}
	default:
		s.addNote(e, h)
	}
}

// addReply adds a reply of the model.
func (s *story) addReply(e wire.EventView, h head) {
	var in struct {
		Model string     `json:"model"`
		Text  string     `json:"text"`
		Calls []toolCall `json:"calls"`
		Usage *usage     `json:"usage"`
		Error *failure   `json:"error"`
	}
	if json.Unmarshal(e.Data, &in) != nil {
		return
	}
	at := s.stepFor(e, h)
	at.thought, at.model, at.text = e.Time, in.Model, in.Text
	for _, c := range in.Calls {
		if known := at.call(c.ID); known != nil && known.tool == "" {
			known.set(c, nil)
		}
	}
	if in.Usage != nil {
		at.usage.plus(*in.Usage)
		s.usage.plus(*in.Usage)
	}
	if in.Error != nil {
		at.err = in.Error.Text
	}
}

// plus adds usage. The cost is unknown when a part of it is.
func (u *usage) plus(more usage) {
	first := u.InputTokens+u.OutputTokens == 0
	u.InputTokens += more.InputTokens
	u.OutputTokens += more.OutputTokens
	switch {
	case more.CostUSD == nil:
		u.CostUSD = nil
	case first:
		u.CostUSD = new(*more.CostUSD)
	case u.CostUSD != nil:
		u.CostUSD = new(*u.CostUSD + *more.CostUSD)
	}
}

// addApproval adds questions about a call, or the answer to them.
func (s *story) addApproval(e wire.EventView, h head) {
	var in struct {
		Call      toolCall   `json:"call"`
		Questions []question `json:"questions"`
		Answer    *answer    `json:"answer"`
		Answers   []answer   `json:"answers"`
	}
	if json.Unmarshal(e.Data, &in) != nil {
		return
	}
	c := s.stepFor(e, h).call(in.Call.ID)
	if c == nil {
		return
	}
	c.set(in.Call, nil)
	if len(in.Questions) > 0 {
		c.questions = in.Questions
	}
	switch {
	case len(in.Answers) > 0:
		c.answers = in.Answers
	case in.Answer != nil:
		c.answers = []answer{*in.Answer}
	}
}

// addNote adds what happened besides steps and hooks.
func (s *story) addNote(e wire.EventView, h head) {
	var in struct {
		Error     json.RawMessage `json:"error"`
		Attempt   int             `json:"attempt"`
		WaitMS    int64           `json:"wait_ms"`
		FromModel string          `json:"from_model"`
		ToModel   string          `json:"to_model"`
		Reason    string          `json:"reason"`
	}
	if json.Unmarshal(e.Data, &in) != nil {
		return
	}
	why := ""
	var told failure
	switch {
	case json.Unmarshal(in.Error, &why) == nil:
	case json.Unmarshal(in.Error, &told) == nil:
		why = told.Text
	}
	var note string
	switch e.Type {
	case "inference.retrying":
		at := s.stepFor(e, h)
		wait := formatDuration(time.Duration(in.WaitMS) * time.Millisecond)
		at.notes = append(at.notes, fmt.Sprintf("attempt %d failed: %s; trying again in %s", in.Attempt, why, wait))
		return
	case "inference.fell_back":
		at := s.stepFor(e, h)
		at.notes = append(at.notes, fmt.Sprintf("model %s failed: %s; using %s", in.FromModel, why, in.ToModel))
		return
	case (agent.RunResumed{}).EventName():
		note = "the run resumed"
	case (agent.RunParked{}).EventName():
		note = "the run waits, and no process holds it"
	case durable.EventRunnerError:
		note = "no runner could execute the run: " + why
	case (durable.StoreStalled{}).EventName():
		note = "the run waits for its store: " + why
	case (durable.StoreRecovered{}).EventName():
		note = "the store accepts writes again"
	case "compaction.completed":
		note = "the conversation was shortened"
	case "compaction.failed":
		note = "shortening the conversation failed: " + why
	default:
		return
	}
	s.entries = append(s.entries, entry{note: note, seq: e.Seq})
}

// decisions returns the decisions of the entries, in order.
func (s *story) decisions() (all []*decision) {
	for _, e := range s.entries {
		if e.decision != nil {
			all = append(all, e.decision)
		}
		if e.step != nil {
			all = append(all, e.step.other...)
			for _, c := range e.step.calls {
				all = append(all, c.decisions...)
			}
		}
	}
	return all
}
