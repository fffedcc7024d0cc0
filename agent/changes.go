package agent

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// changesJSON is the JSON form of the changes from an earlier state to a later one.
type changesJSON struct {
	Version int `json:"version"`
	// About is the part that seldom changes from step to step. It is omitted when it did not change.
	About    *aboutJSON `json:"about,omitempty"`
	Status   Status     `json:"status,omitempty"`
	Signal   *Signal    `json:"signal,omitempty"`
	Accepted int        `json:"accepted,omitempty"`
	Failures int        `json:"failures,omitempty"`
	RunUsage *Usage     `json:"run_usage,omitempty"`
	Children *Spending  `json:"children,omitempty"`
	// MessagesFrom and StepsFrom count the messages and steps that the earlier state keeps. Messages and Steps replace
	// the rest.
	MessagesFrom int           `json:"messages_from,omitempty"`
	Messages     []messageJSON `json:"messages,omitempty"`
	StepsFrom    int           `json:"steps_from,omitempty"`
	Steps        []stepJSON    `json:"steps,omitempty"`
	// Metadata replaces all metadata; omitted when it did not change.
	Metadata *metadataJSON `json:"metadata,omitempty"`
	// OpenStep replaces the open step. OpenCalls replaces some of its calls, by index. Closed reports that no step is
	// open now.
	OpenStep  *openStepJSON        `json:"open_step,omitempty"`
	OpenCalls map[int]openCallJSON `json:"open_calls,omitempty"`
	Closed    bool                 `json:"closed,omitempty"`
}

type aboutJSON struct {
	Session     SessionID `json:"session,omitempty"`
	Run         Run       `json:"run,omitzero"`
	First       int       `json:"first,omitempty"`
	UsageBefore *Usage    `json:"usage_before,omitempty"`
	// Idle has the same meaning as in stateJSON.
	Idle int64 `json:"idle_ns,omitempty"`
}

func (s State) changesSince(since State) (*changesJSON, error) {
	d, old := s.read(), since.read()
	form := &changesJSON{
		Version: stateVersion, Status: d.status, Signal: d.signal,
		Accepted: int(d.accepted), Failures: int(d.failures), RunUsage: d.usage, Children: d.children,
	}
	if since.data == nil || d.frame != old.frame && (d.session != old.session || d.run != old.run || d.first != old.first || d.idle != old.idle) {
		form.About = &aboutJSON{d.session, d.run, d.first, &d.before, int64(d.idle)}
		form.About.Run.Started = d.run.Started.UTC()
	}
	if n := old.messages.Len(); n <= d.messages.Len() && (n == 0 || d.messages.At(n-1) == old.messages.At(n-1)) {
		form.MessagesFrom = n
	}
	for _, m := range d.messages.From(form.MessagesFrom) {
		form.Messages = append(form.Messages, m.form())
	}
	if n := old.steps.Len(); n <= d.steps.Len() && (n == 0 || d.steps.At(n-1) == old.steps.At(n-1)) {
		form.StepsFrom = n
	}
	for _, r := range d.steps.From(form.StepsFrom) {
		form.Steps = append(form.Steps, r.form())
	}
	if d.meta != old.meta {
		metadata, err := d.meta.form()
		if err != nil {
			return nil, err
		}
		form.Metadata = &metadata
	}
	return form, form.openStep(d.open, old.open)
}

// openStep sets the fields that describe changes in the open step.
func (f *changesJSON) openStep(open, old *openStep) error {
	switch {
	case open == old:
	case open == nil:
		f.Closed = true
	case old != nil && old.reply.Message == open.reply.Message && len(old.calls) == len(open.calls):
		f.OpenCalls = map[int]openCallJSON{}
		for i := range open.calls {
			if open.calls[i] == old.calls[i] {
				continue
			}
			form, err := open.calls[i].form(&old.calls[i])
			if err != nil {
				return errorBelow("/open_calls/"+strconv.Itoa(i), err)
			}
			f.OpenCalls[i] = form
		}
	default:
		var err error
		f.OpenStep, err = open.form()
		return err
	}
	return nil
}

// Restore returns the state that results from a series of changes. The first is relative to the zero State. Restore is
// as strict as UnmarshalJSON. The error has the number of the invalid change, counted from one, and the location in it.
func Restore(changes ...[]byte) (State, error) {
	if len(changes) == 0 {
		return State{}, errors.New("restoring a state: no changes")
	}
	form := stateJSON{Version: stateVersion}
	for i, text := range changes {
		if err := form.take(text); err != nil {
			return State{}, fmt.Errorf("restoring a state: change %d of %d: %w", i+1, len(changes), err)
		}
	}
	if err := form.check(); err != nil {
		return State{}, fmt.Errorf("restoring a state from %d changes: %w", len(changes), err)
	}
	return form.toState(), nil
}

// take applies the changes in text to the form.
func (f *stateJSON) take(text []byte) error {
	var c changesJSON
	var known struct {
		Version int `json:"version"`
	}
	if err := strictjson.Unmarshal(text, &known); err != nil {
		return err
	}
	if err := checkVersion(known.Version); err != nil {
		return err
	}
	if err := strictjson.UnmarshalStrict(text, &c); err != nil {
		return err
	}
	return f.change(&c)
}

func (f *stateJSON) change(c *changesJSON) error {
	if err := firstError(
		checkRange("/messages_from", c.MessagesFrom, 0, len(f.Messages)),
		checkRange("/steps_from", c.StepsFrom, 0, len(f.Steps)),
	); err != nil {
		return err
	}
	if c.About != nil {
		f.Session, f.Run, f.First, f.UsageBefore, f.Idle = c.About.Session, c.About.Run, c.About.First, c.About.UsageBefore, c.About.Idle
	}
	f.Status, f.Signal, f.Accepted, f.Failures, f.RunUsage, f.Children = c.Status, c.Signal, c.Accepted, c.Failures, c.RunUsage, c.Children
	f.Messages = append(f.Messages[:c.MessagesFrom], c.Messages...)
	f.Steps = append(f.Steps[:c.StepsFrom], c.Steps...)
	if c.Metadata != nil {
		f.Metadata = *c.Metadata
	}
	if c.OpenStep != nil {
		f.OpenStep = c.OpenStep
	}
	if c.Closed {
		f.OpenStep = nil
	}
	for i, call := range c.OpenCalls {
		if f.OpenStep == nil || i < 0 || i >= len(f.OpenStep.Calls) {
			return formError("/open_calls/"+strconv.Itoa(i), "the open step has no such call")
		}
		if changes := call.ChildChanges; changes != nil {
			if changes.Version != stateVersion {
				return formError("/open_calls/"+strconv.Itoa(i)+"/child_changes/version", "the version is %d: it must be %d", changes.Version, stateVersion)
			}
			call.Child, call.ChildChanges = cmp.Or(f.OpenStep.Calls[i].Child, &stateJSON{Version: stateVersion}), nil
			if err := call.Child.change(changes); err != nil {
				return errorBelow("/open_calls/"+strconv.Itoa(i)+"/child_changes", err)
			}
		}
		f.OpenStep.Calls[i] = call
	}
	return nil
}
