package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/internal/plog"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// stateVersion is the version of the JSON form.
const stateVersion = 3

// checkVersion returns an error if this program does not read that version of the JSON form.
func checkVersion(version int) error {
	switch {
	case version > stateVersion:
		return formError("/version", "version %d is newer than this program reads (%d): use a newer version of the module", version, stateVersion)
	case version < stateVersion:
		return formError("/version", "version %d is older than this program reads (%d): use the version of the module that wrote it", version, stateVersion)
	}
	return nil
}

// stateJSON is the JSON form of a state.
type stateJSON struct {
	Version int       `json:"version"`
	Session SessionID `json:"session,omitempty"`
	Run     Run       `json:"run,omitzero"`
	// Idle is how long the run was not running since it started.
	Idle     int64         `json:"idle_ns,omitempty"`
	Status   Status        `json:"status,omitempty"`
	Signal   *Signal       `json:"signal,omitempty"`
	Messages []messageJSON `json:"messages,omitempty"`
	// Accepted is the number of accepted messages.
	Accepted int        `json:"accepted,omitempty"`
	Steps    []stepJSON `json:"steps,omitempty"`
	// First is the index of this run's first step. Failures counts its failed steps.
	First    int          `json:"first,omitempty"`
	Failures int          `json:"failures,omitempty"`
	Metadata metadataJSON `json:"metadata,omitzero"`
	// UsageBefore is the usage of earlier runs, and RunUsage the usage of this run. Omitted means zero.
	UsageBefore *Usage `json:"usage_before,omitempty"`
	RunUsage    *Usage `json:"run_usage,omitempty"`
	// Children is the usage of the runs below, except those in the open step.
	Children *Spending `json:"children,omitempty"`
	// OpenStep is a step that has begun and is not recorded.
	OpenStep *openStepJSON `json:"open_step,omitempty"`
}

// metadataJSON holds the session's and the run's values, by name.
type metadataJSON struct {
	Session map[string]json.RawMessage `json:"session,omitempty"`
	Run     map[string]json.RawMessage `json:"run,omitempty"`
}

// stepJSON is the JSON form of a step. Its messages are in the transcript: the reply at index Message, and the answers
// to its calls right after it.
type stepJSON struct {
	Index        int          `json:"index"`
	Message      *int         `json:"message,omitempty"` // none when the model call failed
	FinishReason FinishReason `json:"finish_reason,omitempty"`
	Usage        *Usage       `json:"usage,omitempty"`
	Model        string       `json:"model,omitempty"`
	ID           string       `json:"id,omitempty"`
	Results      []resultJSON `json:"results,omitempty"` // one for each call in the reply
	Started      time.Time    `json:"started,omitzero"`
	Duration     int64        `json:"duration_ns,omitempty"`
	Failure      *Failure     `json:"failure,omitempty"`
}

// resultJSON is the part of a result that is not in the message that answers the call.
type resultJSON struct {
	Call     *ToolCall `json:"call,omitempty"` // the effective call, if it differs from the model's call
	Attempts int       `json:"attempts,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Duration int64     `json:"duration_ns,omitempty"`
	Stop     *Signal   `json:"stop,omitempty"`
}

// MarshalJSON writes the state in the current version of its JSON form, with everything that belongs to the session. It
// omits the agent's data (the request, a view, scratch values) and the effects of results, which have been applied.
// Error values keep only their kind and text. Times are written in UTC. Invalid UTF-8 in a text is replaced by U+FFFD.
//
// If JSON cannot hold a metadata value, MarshalJSON returns an error with the value's key.
//
// The JSON is not protected: see Seal for states that leave the program.
func (s State) MarshalJSON() ([]byte, error) {
	form, err := s.form()
	if err == nil {
		err = form.check()
	}
	if err != nil {
		return nil, fmt.Errorf("writing the state: %w", err)
	}
	return compactJSON(form)
}

// UnmarshalJSON reads a state that MarshalJSON wrote. It is strict: it returns an error with the location for a newer
// version, an unknown member, or anything else that is invalid. Metadata stays encoded until a typed key reads it.
// Numbers in signal details are of type json.Number.
func (s *State) UnmarshalJSON(data []byte) error {
	form, err := readState(data)
	if err != nil {
		return fmt.Errorf("reading a state: %w", err)
	}
	*s = form.toState()
	return nil
}

func readState(data []byte) (stateJSON, error) {
	var form stateJSON
	var known struct {
		Version *int `json:"version"`
	}
	if err := strictjson.Unmarshal(data, &known); err != nil {
		return form, err
	}
	if known.Version == nil {
		return form, formError("/version", "no version: this is not the JSON form of a state")
	}
	if err := checkVersion(*known.Version); err != nil {
		return form, err
	}
	if err := strictjson.UnmarshalStrict(data, &form); err != nil {
		return form, err
	}
	return form, form.check()
}

// form returns the JSON form of the state.
func (s State) form() (stateJSON, error) {
	d := s.read()
	form := stateJSON{
		Version: stateVersion, Session: d.session, Run: d.run, Idle: int64(d.idle), Status: d.status, Signal: d.signal,
		Accepted: int(d.accepted), First: d.first, Failures: int(d.failures), UsageBefore: &d.before, RunUsage: d.usage, Children: d.children,
		Messages: make([]messageJSON, 0, d.messages.Len()), Steps: make([]stepJSON, 0, d.steps.Len()),
	}
	form.Run.Started = form.Run.Started.UTC()
	for _, m := range d.messages.All() {
		form.Messages = append(form.Messages, m.form())
	}
	for _, r := range d.steps.All() {
		form.Steps = append(form.Steps, r.form())
	}
	var opening, keeping error
	form.OpenStep, opening = d.open.form()
	form.Metadata, keeping = d.meta.form()
	return form, firstError(opening, keeping)
}

// toState returns the state of a checked form.
func (f *stateJSON) toState() State {
	messages := lo.Map(f.Messages, func(m messageJSON, _ int) Message { return m.toMessage() })
	steps := lo.Map(f.Steps, func(r stepJSON, _ int) StepRecord { return r.record(messages) })
	return State{&stateData{
		frame: &frame{
			session: f.Session, run: f.Run, idle: time.Duration(f.Idle), status: f.Status, first: f.First, before: *cmp.Or(f.UsageBefore, &noUsage),
			children: f.Children, open: f.OpenStep.toOpenStep(),
		},
		messages: plog.Of(messages...), accepted: toInt32(f.Accepted),
		steps: plog.Of(steps...), failures: toInt32(f.Failures),
		meta: f.Metadata.toMetadata(), usage: cmp.Or(f.RunUsage, &noUsage), signal: f.Signal,
	}}
}

func (r StepRecord) form() stepJSON {
	b := r.read()
	form := stepJSON{
		Index: int(b.index), FinishReason: b.finish, Usage: b.usage, Model: b.model, ID: b.id,
		Results: make([]resultJSON, len(b.answers)),
		Started: b.started.UTC(), Duration: int64(b.took), Failure: b.failure,
	}
	for i := range form.Results {
		form.Results[i] = b.answers[i].result.form()
	}
	if b.message.body != nil {
		form.Message = new(int(b.at))
	}
	return form
}

func (r *ToolResult) form() resultJSON {
	form := resultJSON{
		Attempts: r.Attempts, Started: r.Started.UTC(), Duration: int64(r.Duration), Stop: r.Stop,
	}
	if r.call != r.original {
		form.Call = r.call
	}
	return form
}

// record returns the step. It also sets the messages that answer its calls, which are views of its results.
func (f *stepJSON) record(messages []Message) StepRecord {
	b := &stepBody{answers: make([]messageBody, len(f.Results))}
	b.started = f.Started.Local() //nolint:gosmopolitan // StartTime is local
	b.index, b.took, b.failure = toInt32(f.Index), time.Duration(f.Duration), f.Failure
	b.finish, b.model, b.id = f.FinishReason, f.Model, f.ID
	if f.Usage != nil && *f.Usage != noStepUsage {
		b.usage = f.Usage
	}
	if f.Message != nil {
		at := *f.Message
		b.at, b.message = toInt32(at), messages[at]
		for i, call := range b.message.Calls() {
			b.answers[i].result = f.Results[i].toResult(call, messages[at+1+i])
			messages[at+1+i] = Message{&b.answers[i]}
		}
	}
	return StepRecord{b}
}

func (f *resultJSON) toResult(call ToolCall, answer Message) *ToolResult {
	original, effective := &call, &call
	if f.Call != nil {
		effective = &ToolCall{ID: f.Call.ID, Name: f.Call.Name, Arguments: f.Call.Arguments, Index: call.Index}
	}
	return &ToolResult{
		call: effective, original: original, Content: answer.Content(),
		Status: answer.Status(), Reason: answer.Reason(), DecidedBy: answer.Source(),
		Attempts: f.Attempts, Started: f.Started, Duration: time.Duration(f.Duration), Stop: f.Stop,
	}
}

func (m *metadata) form() (metadataJSON, error) {
	var form metadataJSON
	for _, e := range m.list() {
		values, at := &form.Session, "/metadata/session/"
		if e.scope == ScopeRun {
			values, at = &form.Run, "/metadata/run/"
		}
		if !utf8.ValidString(e.name) {
			return form, formError(at, "the name %q is not valid UTF-8", e.name)
		}
		raw, err := compactJSON(e.value)
		if err != nil {
			return form, formError(at+pointerToken.Replace(e.name), "%v", err)
		}
		if *values == nil {
			*values = map[string]json.RawMessage{}
		}
		(*values)[e.name] = raw
	}
	return form, nil
}

var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

func (f *metadataJSON) toMetadata() *metadata {
	var entries []entry
	for scope, values := range map[Scope]map[string]json.RawMessage{ScopeSession: f.Session, ScopeRun: f.Run} {
		for name, raw := range values {
			entries = append(entries, entry{name, scope, undecoded(raw)})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.name, b.name))
	})
	return &metadata{entries}
}
