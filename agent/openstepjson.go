package agent

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/samber/lo"
)

// openStepJSON is the JSON form of a step that has begun. The messages do not include its reply yet.
type openStepJSON struct {
	Reply        *messageJSON   `json:"reply,omitempty"`
	FinishReason FinishReason   `json:"finish_reason,omitempty"`
	Usage        *Usage         `json:"usage,omitempty"`
	Model        string         `json:"model,omitempty"`
	ID           string         `json:"id,omitempty"`
	Effects      []effectJSON   `json:"effects,omitempty"`
	Stop         *Signal        `json:"stop,omitempty"`
	Started      time.Time      `json:"started,omitzero"`
	Calls        []openCallJSON `json:"calls,omitempty"` // one for each call in the reply
}

// openCallJSON is the progress of one call.
type openCallJSON struct {
	Asked *interventionJSON `json:"asked,omitempty"`
	Begun *ToolCall         `json:"begun,omitempty"`
	Input *callInputJSON    `json:"input,omitempty"`
	// Child is the run that the call has started. In changes, ChildChanges holds the changes to that run instead.
	Child        *stateJSON   `json:"child,omitempty"`
	ChildChanges *changesJSON `json:"child_changes,omitempty"`
	// Answer is the answer's message, and Result the rest of the result.
	Answer *messageJSON `json:"answer,omitempty"`
	Result *resultJSON  `json:"result,omitempty"`
	// Effects are the changes to the state that the answer requests.
	Effects []effectJSON `json:"effects,omitempty"`
}

// callInputJSON is the input that a call has asked for.
type callInputJSON struct {
	State []byte       `json:"state,omitempty"`
	Given []GivenInput `json:"given,omitempty"`
	Open  bool         `json:"open,omitempty"`
}

// interventionJSON is a question to a person. The original call is in the reply.
type interventionJSON struct {
	ID        string    `json:"id,omitempty"`
	Round     int       `json:"round,omitempty"`
	Call      ToolCall  `json:"call"`
	Prepared  string    `json:"prepared"` // digest of the call that needs approval
	Questions Questions `json:"questions,omitempty"`
	Asked     time.Time `json:"asked"`
	Deadline  time.Time `json:"deadline,omitzero"`
	// Begun reports that the call had begun before the person was asked. Used reports that it has begun since. Earlier
	// are the questions that were answered before it began.
	Begun   bool       `json:"begun,omitempty"`
	Used    bool       `json:"used,omitempty"`
	Earlier []Question `json:"earlier,omitempty"`
	// Schema is the arguments' schema. Description is another party's description of its tool.
	Schema      string `json:"schema,omitempty"`
	Description string `json:"description,omitempty"`
}

// effectJSON is the JSON form of an effect: a message, a context or a key.
type effectJSON struct {
	Message *messageJSON    `json:"message,omitempty"`
	Context string          `json:"context,omitempty"`
	Key     string          `json:"key,omitempty"`
	Run     bool            `json:"run,omitempty"` // the key's scope
	Value   json.RawMessage `json:"value,omitempty"`
	Source  string          `json:"source,omitempty"`
}

func (o *openStep) form() (*openStepJSON, error) {
	if o == nil {
		return nil, nil
	}
	r := o.reply
	effects, err := r.Effects.form()
	if err != nil {
		return nil, errorBelow("/open_step", err)
	}
	form := &openStepJSON{
		Reply: new(r.Message.form()), FinishReason: r.FinishReason, Model: r.Model, ID: r.ID,
		Effects: effects, Stop: r.Stop, Started: o.started.UTC(), Calls: make([]openCallJSON, len(o.calls)),
	}
	if r.Usage != (Usage{}) {
		form.Usage = &r.Usage
	}
	for i := range o.calls {
		if form.Calls[i], err = o.calls[i].form(nil); err != nil {
			return nil, errorBelow("/open_step/calls/"+strconv.Itoa(i), err)
		}
	}
	return form, nil
}

// form returns the JSON form of the call. If old is not nil, the run that the call has started is written as its
// changes since old.
func (c *openCall) form(old *openCall) (openCallJSON, error) {
	form := openCallJSON{Begun: c.begun}
	if a := c.asked; a != nil {
		form.Asked = &interventionJSON{
			ID: a.ID, Round: a.Round, Call: a.Call, Prepared: a.prepared, Questions: a.Questions,
			Asked: a.Asked.UTC(), Deadline: a.Deadline.UTC(),
			Begun: a.Begun, Used: a.used, Earlier: a.earlier, Schema: a.Schema, Description: a.Description,
		}
	}
	if in := c.input; in != nil {
		form.Input = &callInputJSON{in.state, in.given, in.open}
	}
	var err error
	switch {
	case c.child.data == nil:
	case old == nil:
		form.Child = new(stateJSON)
		*form.Child, err = c.child.form()
		err = errorBelow("/child", err)
	default:
		form.ChildChanges, err = c.child.changesSince(old.child)
		err = errorBelow("/child_changes", err)
	}
	if c.result != nil && err == nil {
		form.Answer = new(answerOf(c.result).form())
		form.Result = new(c.result.form())
		form.Effects, err = c.result.Effects.form()
	}
	return form, err
}

// answerOf returns the message that holds the result.
func answerOf(r *ToolResult) Message { return Message{&messageBody{result: r}} }

func (e Effects) form() ([]effectJSON, error) {
	var forms []effectJSON
	for _, effect := range e.All() {
		if effect.trespasses() { // ignored now, and ignored after reading as well
			continue
		}
		form := effectJSON{Source: effect.source}
		switch effect.kind {
		case effectMessage:
			form.Message = new(effect.message.form())
		case effectContext:
			form.Context = effect.context
		case effectMetadata:
			raw, err := compactJSON(effect.entry.value)
			if err != nil {
				return nil, formError("/effects/"+strconv.Itoa(len(forms)), "metadata %q: %v", effect.entry.name, err)
			}
			form.Key, form.Run, form.Value = effect.entry.name, effect.entry.scope == ScopeRun, raw
		}
		forms = append(forms, form)
	}
	return forms, nil
}

func (f *openStepJSON) toOpenStep() *openStep {
	if f == nil {
		return nil
	}
	o := &openStep{started: f.Started, calls: make([]openCall, len(f.Calls))}
	o.reply = Step{
		Message: f.Reply.toMessage(), FinishReason: f.FinishReason, Usage: *cmp.Or(f.Usage, &Usage{}),
		Model: f.Model, ID: f.ID, Effects: effectsFrom(f.Effects), Stop: f.Stop,
	}
	calls := o.reply.Message.list()
	for i := range f.Calls {
		o.calls[i] = f.Calls[i].toOpenCall(calls[i])
	}
	return o
}

func (f *openCallJSON) toOpenCall(original ToolCall) openCall {
	c := openCall{begun: f.Begun}
	if c.begun != nil {
		c.begun.Index = original.Index
	}
	if a := f.Asked; a != nil {
		call := a.Call
		call.Index = original.Index
		c.asked = &Intervention{
			ID: a.ID, Round: a.Round, Description: a.Description, Original: original, Call: call, Questions: a.Questions,
			Asked: a.Asked, Deadline: a.Deadline, prepared: a.Prepared, Begun: a.Begun, used: a.Used, earlier: a.Earlier, Schema: a.Schema,
		}
	}
	if in := f.Input; in != nil {
		c.input = &callInput{in.State, in.Given, in.Open}
	}
	if f.Child != nil {
		c.child = f.Child.toState()
	}
	if f.Result != nil {
		c.result = f.Result.toResult(original, f.Answer.toMessage())
		c.result.Effects = effectsFrom(f.Effects)
	}
	return c
}

func effectsFrom(forms []effectJSON) Effects {
	return EffectsOf(lo.Map(forms, func(f effectJSON, _ int) Effect { return f.effect() })...)
}

func (f *effectJSON) effect() Effect {
	switch {
	case f.Message != nil:
		return Effect{kind: effectMessage, message: f.Message.toMessage(), source: f.Source}
	case f.Key != "":
		scope := ScopeSession
		if f.Run {
			scope = ScopeRun
		}
		return Effect{kind: effectMetadata, entry: entry{f.Key, scope, undecoded(f.Value)}, source: f.Source, own: true}
	}
	return Effect{kind: effectContext, context: f.Context, source: f.Source}
}

// check returns an error when the form is not a valid open step.
func (f *openStepJSON) check(status Status) error {
	switch {
	case f == nil:
		return nil
	case status != StatusParked && status != StatusRunning:
		return formError("", "a run with status %q cannot have an open step", status)
	case f.Reply == nil:
		return formError("/reply", "an open step must have a reply")
	case f.Reply.Role != RoleAssistant:
		return formError("/reply/role", "the role is %q: it must be %q", f.Reply.Role, RoleAssistant)
	case len(f.Calls) != len(f.Reply.Calls):
		return formError("/calls", "%d entries for the %d calls of the reply: there must be one for each call", len(f.Calls), len(f.Reply.Calls))
	case !uniqueIDs(f.Reply.Calls):
		return formError("/reply/calls", "every call must have a unique id")
	}
	errs := []error{
		errorBelow("/reply", f.Reply.check()), errorBelow("/usage", f.Usage.check()), errorBelow("/stop", f.Stop.check()),
		checkEffects(f.Effects),
	}
	for i := range f.Calls {
		errs = append(errs, errorBelow("/calls/"+strconv.Itoa(i), f.Calls[i].check(f.Reply.Calls[i])))
	}
	return firstError(errs...)
}

func (f *openCallJSON) check(call ToolCall) error {
	if f.Asked != nil {
		if err := errorBelow("/asked/questions", f.Asked.Questions.check()); err != nil {
			return err
		}
	}
	switch {
	case f.Begun != nil && f.Begun.ID != call.ID:
		return formError("/begun/id", "the id is %q: it must be %q", f.Begun.ID, call.ID)
	case f.Asked != nil && f.Asked.Call.ID != call.ID:
		return formError("/asked/call/id", "the id is %q: it must be %q", f.Asked.Call.ID, call.ID)
	case f.Asked != nil && (f.Asked.Begun || f.Asked.Used) && f.Begun == nil:
		return formError("/begun", "a call whose approval is used must have begun")
	case f.Asked != nil && f.Asked.ID == "":
		return formError("/asked/id", "no id")
	case f.Input != nil && f.Begun == nil:
		return formError("/begun", "a call that has asked for input must have begun")
	case f.ChildChanges != nil:
		return formError("/child_changes", "it is allowed only in changes")
	case f.Child != nil && f.Begun == nil:
		return formError("/begun", "a call that has started a run must have begun")
	case f.Child != nil && f.Answer != nil:
		return formError("/child", "a call that was answered cannot have a run in progress")
	case f.Child != nil && f.Child.Version != stateVersion:
		return formError("/child/version", "the version is %d: it must be %d", f.Child.Version, stateVersion)
	case f.Child != nil && f.Child.Status == StatusNew:
		return formError("/child/status", "the child has no run")
	case f.Child != nil:
		return errorBelow("/child", f.Child.check())
	case (f.Answer == nil) != (f.Result == nil):
		return formError("/answer", "answer and result must be set together")
	case f.Answer == nil:
		return nil
	}
	return firstError(errorBelow("/answer", f.Answer.check()), errorBelow("/result", f.Result.check(call, f.Answer)), checkEffects(f.Effects))
}

func checkEffects(forms []effectJSON) error {
	for i, f := range forms {
		at := "/effects/" + strconv.Itoa(i)
		if f.Message != nil {
			if err := errorBelow(at+"/message", f.Message.check()); err != nil {
				return err
			}
		}
		if f.Key != "" && len(f.Value) == 0 {
			return formError(at+"/value", "metadata %q has no value", f.Key)
		}
	}
	return nil
}
