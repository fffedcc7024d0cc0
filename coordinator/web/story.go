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
	"github.com/grapnel-go/grapnel/coordinator"
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
	coordinator.HookCall

	seq      int64
	kind     verdict
	name     string // the hook's name without its policy
	from, at time.Time
	run      agent.RunID // whose calls are stored; empty for a sub-agent
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
	run      agent.RunID // that the note is about
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
	droppedNotes   int
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
	call, isHook := coordinator.HookCallOf(e.Type, e.Time, e.Data)
	switch {
	case isHook:
		s.addHook(e, call)
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
	case strings.HasPrefix(e.Type, pipelineEvents):
		s.addPipeline(e)
	default:
		s.addAgent(e)
	}
}

// addHook adds a call of a hook.
func (s *story) addHook(e wire.EventView, c coordinator.HookCall) {
	d := &decision{
		HookCall: c, seq: e.Seq, kind: kindOf(c), name: c.Hook[strings.LastIndexByte(c.Hook, '/')+1:],
		from: e.Time.Add(-time.Duration(c.DurationMS) * time.Millisecond), at: e.Time,
	}
	if c.Subagent == s.root && c.Stage == "" { // calls of sub-agents are not stored, and pipelines are not replayed
		d.run = s.root
	}
	s.counts[d.kind]++
	if c.Around {
		if !s.closeOpen(d) {
			s.entries = append(s.entries, entry{decision: d, seq: e.Seq})
		}
		return
	}
	if c.Stage != "" {
		s.entries = append(s.entries, entry{decision: d, seq: e.Seq})
		s.trimNotes()
		return
	}
	at := s.stepFor(e, head{c.Subagent, c.Step})
	if call := at.call(c.Call); call != nil {
		call.decisions = append(call.decisions, d)
		return
	}
	at.other = append(at.other, d)
}

// kindOf returns the kind of a hook's answer.
func kindOf(c coordinator.HookCall) verdict {
	decision := hooks.Decision(c.Decision)
	switch {
	case c.HasFailed():
		return failed
	case c.Outcome == coordinator.HookRunning:
		return running
	case c.Shadow:
		return shadow
	case decision == hooks.Withhold, c.Around && c.Outcome == "blocked" && c.Point != "on_run_start":
		return withheld
	case c.Outcome == "blocked":
		return denied
	case decision == hooks.Ask:
		return asked
	case c.Changed, decision == hooks.Rewrite, decision == hooks.Replace, decision == hooks.Mock:
		return rewrote
	}
	return passed
}

// closeOpen puts the outcome of a hook's call in the place of its beginning, if the story has that.
func (s *story) closeOpen(d *decision) bool {
	isOpen := func(o *decision) bool { return o != nil && o.kind == running && o.Point == d.Point && o.Hook == d.Hook }
	i := slices.IndexFunc(s.entries, func(e entry) bool { return isOpen(e.decision) })
	if i < 0 {
		return false
	}
	d.seq = s.entries[i].decision.seq
	s.entries[i].decision = d
	return true
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
