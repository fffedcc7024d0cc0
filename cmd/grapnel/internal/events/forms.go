package events

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
)

type (
	// ofRun identifies the run of an object. inStep also identifies the step, from zero.
	ofRun struct {
		Run agent.RunID `json:"run"`
	}
	inStep struct {
		Run  agent.RunID `json:"run"`
		Step int         `json:"step"`
	}
	fallback struct {
		Reason string `json:"reason"`
	}
	runStarted struct {
		ofRun

		Session agent.SessionID `json:"session"`
		Agent   string          `json:"agent,omitempty"`
		Number  int             `json:"number"`
		Parent  agent.RunID     `json:"parent,omitempty"`
		Depth   int             `json:"depth,omitempty"`
	}
	stepStarted struct {
		inStep
	}
	inferenceStarted struct {
		inStep

		Inference string `json:"inference"`
		Model     string `json:"model,omitempty"`
		Messages  int    `json:"messages"`
		Tools     int    `json:"tools"`

		Input []string `json:"input,omitempty"`
	}
	delta struct {
		Text      string     `json:"text,omitempty"`
		Reasoning string     `json:"reasoning,omitempty"`
		Call      *deltaCall `json:"call,omitempty"`
	}
	deltaCall struct {
		Index     int    `json:"index"`
		ID        string `json:"id,omitempty"`
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments,omitempty"`
	}
	inferenceCompleted struct {
		inStep

		Inference    string             `json:"inference"`
		Model        string             `json:"model,omitempty"`
		FinishReason agent.FinishReason `json:"finish_reason,omitempty"`
		Text         string             `json:"text,omitempty"`
		Calls        []call             `json:"calls,omitempty"`
		Usage        *durable.Usage     `json:"usage,omitempty"`
		Error        *failure           `json:"error,omitempty"`
	}
	retrying struct {
		inStep

		Attempt int      `json:"attempt"`
		WaitMS  int64    `json:"wait_ms"`
		Error   *failure `json:"error"`
	}
	call struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	toolCallStarted struct {
		inStep

		Call     call    `json:"call"`
		Original *string `json:"original_arguments,omitempty"`
		Runs     bool    `json:"runs"`
	}
	approvalRequested struct {
		inStep

		Call      call       `json:"call"`
		Questions []question `json:"questions"`
	}
	approvalCompleted struct {
		inStep

		Call    call        `json:"call"`
		Answer  *personSay  `json:"answer"`
		Answers []personSay `json:"answers,omitempty"`
	}
	toolCallCompleted struct {
		inStep

		Call       call             `json:"call"`
		Original   *string          `json:"original_arguments,omitempty"`
		Status     agent.ToolStatus `json:"status"`
		Reason     agent.ReasonCode `json:"reason,omitempty"`
		DecidedBy  string           `json:"decided_by,omitempty"`
		Denied     bool             `json:"denied,omitempty"`
		Text       string           `json:"text"`
		Attempts   int              `json:"attempts"`
		DurationMS int64            `json:"duration_ms"`
	}
	progress struct {
		inStep

		CallID   string  `json:"call_id"`
		Tool     string  `json:"tool"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
		Message  string  `json:"message,omitempty"`
	}
	stepCompleted struct {
		inStep

		Kind       agent.StepKind `json:"kind"`
		DurationMS int64          `json:"duration_ms"`
		Usage      *durable.Usage `json:"usage,omitempty"`
		Error      *failure       `json:"error,omitempty"`
	}
	judged struct {
		ofRun

		Steps   int     `json:"steps"`
		Verdict string  `json:"verdict"`
		Signal  *signal `json:"signal,omitempty"`
	}
	hook struct {
		inStep

		Hook       string          `json:"hook"`
		Point      hooks.PointName `json:"point"`
		Control    bool            `json:"control"`
		Detached   bool            `json:"detached,omitempty"`
		Shadow     bool            `json:"shadow,omitempty"`
		Origin     *hooks.Origin   `json:"origin,omitempty"`
		CallID     string          `json:"call_id,omitempty"`
		Tool       string          `json:"tool,omitempty"`
		Attempt    int             `json:"attempt,omitempty"`
		DurationMS int64           `json:"duration_ms"`
		Decision   hooks.Decision  `json:"decision,omitempty"`
		Reason     string          `json:"reason,omitempty"`
		Facts      []hooks.Fact    `json:"facts,omitempty"`
		Before     string          `json:"before,omitempty"`
		After      string          `json:"after,omitempty"`
		Policy     string          `json:"policy,omitempty"`
		Error      *failure        `json:"error,omitempty"`
		Body       string          `json:"body,omitempty"` // of a failed HTTP hook's response
	}
	runCompleted struct {
		ofRun

		Session    agent.SessionID `json:"session"`
		Status     agent.Status    `json:"status"`
		Signal     *signal         `json:"signal,omitempty"`
		Answer     string          `json:"answer,omitempty"`
		Steps      int             `json:"steps"`
		Usage      *durable.Usage  `json:"usage,omitempty"`
		DurationMS int64           `json:"duration_ms"`
		Error      *failure        `json:"error,omitempty"`
	}
	runParked struct {
		ofRun

		Session agent.SessionID `json:"session"`
		Waiting bool            `json:"waiting"`
		Calls   []waitingCall   `json:"calls,omitempty"`
		Steps   int             `json:"steps"`
		Usage   *durable.Usage  `json:"usage,omitempty"`
	}
	waitingCall struct {
		ID        string     `json:"id"`
		Call      call       `json:"call"`
		Original  *string    `json:"original_arguments,omitempty"`
		Questions []question `json:"questions"`
		Asked     time.Time  `json:"asked"`
		Deadline  time.Time  `json:"deadline,omitzero"`
		OnTimeout string     `json:"on_timeout,omitempty"`
		Answer    *personSay `json:"answer,omitempty"`
	}
	question struct {
		ID     string     `json:"id"`
		Kind   string     `json:"kind,omitempty"`
		By     string     `json:"by,omitempty"`
		Rule   string     `json:"rule,omitempty"`
		Reason string     `json:"reason,omitempty"`
		Answer *personSay `json:"answer,omitempty"`

		Approvers []string    `json:"approvers,omitempty"`
		Quorum    int         `json:"quorum,omitempty"`
		Answers   []personSay `json:"answers,omitempty"`
	}
	personSay struct {
		Verdict  string    `json:"verdict"`
		Author   string    `json:"author,omitempty"`
		By       string    `json:"by,omitempty"`
		Identity string    `json:"identity,omitempty"`
		Reason   string    `json:"reason,omitempty"`
		At       time.Time `json:"at,omitzero"`
	}
	runResumed struct {
		ofRun

		Session agent.SessionID `json:"session"`
		Agent   string          `json:"agent,omitempty"`
		Steps   int             `json:"steps"`
		Open    bool            `json:"open,omitempty"`
	}
	notifyFailed struct {
		ofRun

		Error *failure `json:"error"`
	}
	storeStalled struct {
		ofRun

		Error *failure `json:"error,omitempty"` // absent when the store does not answer
	}
	storeRecovered struct {
		ofRun

		AfterMS int64 `json:"after_ms"`
	}
	failure struct {
		Kind agent.ErrorKind `json:"kind"`
		Text string          `json:"text"`
	}
	signal struct {
		Reason  agent.StopReason `json:"reason"`
		Message string           `json:"message,omitempty"`
		Source  string           `json:"source,omitempty"`
		Details json.RawMessage  `json:"details,omitempty"`
	}
)

// inputOf returns the user messages that begin a run, as they are shown to the model.
func inputOf(e agent.InferenceStarted) (input []string) {
	if e.Step > 0 {
		return nil
	}
	for i := e.State.MessageCount() - 1; i >= 0; i-- {
		m := e.State.Message(i)
		if m.Role() == agent.RoleAssistant || m.Role() == agent.RoleTool {
			break
		}
		if m.Role() == agent.RoleUser && m.Source() == "" {
			input = append(input, m.Text())
		}
	}
	slices.Reverse(input)
	return input
}

func of(r agent.Run) ofRun            { return ofRun{r.ID} }
func in(r agent.Run, step int) inStep { return inStep{r.ID, step} }
func callOf(c agent.ToolCall) call    { return call{c.ID, c.Name, c.Arguments} }

func usageOf(u agent.Usage) *durable.Usage {
	if u.Tokens() == 0 && u.Cost.IsAbsent() {
		return nil
	}
	return new(durable.UsageOf(u))
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{agent.KindOf(err), err.Error()}
}

func signalOf(s agent.Signal) *signal {
	if s.Reason == "" {
		return nil
	}
	out := &signal{Reason: s.Reason, Message: s.Message, Source: s.Source}
	if len(s.Details) > 0 {
		if text, err := json.Marshal(s.Details); err == nil { // details of middleware may contain numbers that JSON cannot express
			out.Details = text
		}
	}
	return out
}

func completedInference(e agent.InferenceCompleted) any {
	out := inferenceCompleted{
		inStep: in(e.Run, e.Step), Inference: e.Inference, Model: e.Reply.Model, FinishReason: e.Reply.FinishReason,
		Text: e.Reply.Message.Text(), Usage: usageOf(e.Reply.Usage), Error: failureOf(e.Err),
	}
	for _, c := range e.Reply.Message.Calls() {
		out.Calls = append(out.Calls, callOf(c))
	}
	return out
}

func completedCall(e agent.ToolCallCompleted) any {
	r := e.Result
	return toolCallCompleted{
		in(e.Run, e.Step), callOf(r.Call()), textUnless(r.Original().Arguments, r.Call().Arguments), r.Status, r.Reason,
		r.DecidedBy, r.Denied(), r.Text(), r.Attempts, r.Duration.Milliseconds(),
	}
}

func hookEvent(e hooks.Event) any {
	failed, ok := errors.AsType[*action.Error](e.Err)
	if !ok {
		failed = &action.Error{}
	}
	return hook{
		in(e.Run, e.Step), e.Hook, e.Point, e.Control, e.Detached, e.Shadow, e.Origin, e.Call.ID, e.Call.Name, e.Attempt,
		e.Duration.Milliseconds(), e.Decision, e.Reason, e.Outcome.Facts(), e.Before, e.After, e.Policy, failureOf(e.Err),
		failed.Body,
	}
}

func completedRun(e agent.RunCompleted) any {
	s, err := e.State, e.Err
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		err = failed.Err
	}
	return runCompleted{
		of(s.Run()), s.Session(), s.Status(), signalOf(s.StopSignal()), s.Answer(), s.RunStepCount(),
		usageOf(s.RunUsage()), time.Since(s.Run().Started).Milliseconds(), failureOf(err),
	}
}

func parkedRun(s agent.State) any {
	out := runParked{of(s.Run()), s.Session(), s.Waiting(), nil, s.RunStepCount(), usageOf(s.RunUsage())}
	for _, i := range s.Interventions() {
		w := waitingCall{
			ID: i.ID, Call: callOf(i.Call), Original: textUnless(i.Original.Arguments, i.Call.Arguments),
			Asked: i.Asked.UTC(), Deadline: i.Deadline.UTC(),
			Questions: lo.Map(i.Questions, questionOf),
		}
		w.Call.ID = i.CallID() // for a call of a sub-agent, the id under which it is answered
		if !i.Deadline.IsZero() {
			w.OnTimeout = i.Questions.OnTimeout().String()
		}
		w.Answer = sayOf(i.Answer())
		out.Calls = append(out.Calls, w)
	}
	return out
}

// questionOf returns the JSON form of a question.
func questionOf(q agent.Question, _ int) question {
	return question{q.ID(), string(q.Kind), q.By, q.Rule, q.Reason, sayOf(q.Decision()), q.Approvers, q.Quorum, saysOf(q.Answers)}
}

// saysOf returns the JSON form of answers.
func saysOf(all []agent.Approval) []personSay {
	return lo.Map(all, func(a agent.Approval, _ int) personSay { return *sayOf(&a) })
}

// sayOf returns the JSON form of an answer; nil for no answer.
func sayOf(a *agent.Approval) *personSay {
	if a == nil {
		return nil
	}
	return &personSay{a.Verdict.String(), string(a.Author), a.By, a.Identity, a.Reason, a.At.UTC()}
}

func resumedRun(s agent.State) any {
	return runResumed{of(s.Run()), s.Session(), s.Run().Agent, s.RunStepCount(), agent.Checkpoint(s).StepOpen()}
}
