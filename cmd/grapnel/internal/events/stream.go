package events

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// Version is the version of the format.
const Version = 1

// Stream is an agent.Observer that writes events as JSON Lines.
type Stream struct {
	mu  sync.Mutex
	out io.Writer
	seq int
	err error
}

var _ agent.Observer = (*Stream)(nil)

// New returns a stream that writes to out.
func New(out io.Writer) *Stream { return &Stream{out: out} }

// Err returns the first write error; the stream writes nothing after it.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// head is the beginning of every object.
type head struct {
	V    int       `json:"v"`
	Seq  int       `json:"seq"`
	Time time.Time `json:"time"`
	Type string    `json:"type"`
}

// write writes an object with members after its head.
func (s *Stream) write(kind string, members any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.seq++
	var line []byte
	if line, s.err = encode(members); s.err == nil {
		line, s.err = join(head{Version, s.seq, time.Now().UTC(), kind}, line)
	}
	if s.err == nil {
		_, s.err = s.out.Write(append(line, '\n'))
	}
}

// Fallback writes that no model is available, and that a recording is played instead.
func (s *Stream) Fallback(reason string) { s.write("fallback", fallback{reason}) }

// Delta writes a piece of a reply.
func (s *Stream) Delta(d agent.Delta) {
	out := delta{Text: d.Text, Reasoning: d.Reasoning}
	if d.Text == "" && d.Reasoning == "" {
		out.Call = &deltaCall{d.CallIndex, d.Call.ID, d.Call.Name, d.Call.Arguments}
	}
	s.write("delta", out)
}

// Observe writes an event.
func (s *Stream) Observe(_ context.Context, e agent.Event) { s.write(e.EventName(), membersOf(e)) }

// membersOf returns the members of the object of an event, after its head.
func membersOf(e agent.Event) any {
	switch e := e.(type) {
	case agent.RunStarted:
		return runStarted{of(e.Run), e.Run.Session, e.Run.Agent, e.Run.Number, e.Run.Parent, e.Run.Depth}
	case agent.StepStarted:
		return stepStarted{in(e.Run, e.Index)}
	case agent.InferenceStarted:
		request := e.State.Request()
		return inferenceStarted{
			in(e.Run, e.Step), e.Inference, request.Model, e.State.MessageCount(), request.Tools.Len(), inputOf(e),
		}
	case agent.InferenceCompleted:
		return completedInference(e)
	case processor.Retrying:
		return retrying{in(e.Run, e.Step), e.Attempt, e.Wait.Milliseconds(), failureOf(e.Err)}
	case agent.ToolCallStarted:
		return toolCallStarted{in(e.Run, e.Step), callOf(e.Call), textUnless(e.Original.Arguments, e.Call.Arguments), e.Runs}
	case agent.ToolCallCompleted:
		return completedCall(e)
	case agent.ApprovalRequested:
		return approvalRequested{in(e.Run, e.Step), callOf(e.Call), lo.Map(e.Questions, questionOf)}
	case agent.ApprovalCompleted:
		return approvalCompleted{in(e.Run, e.Step), callOf(e.Call), sayOf(&e.Approval), saysOf(e.Answers)}
	case mcp.ProgressReported:
		return progress{in(e.Run, e.Step), e.Call.ID, e.Call.Name, e.Progress, e.Total, e.Message}
	case agent.StepCompleted:
		r := e.Record
		return stepCompleted{in(e.Run, r.Index()), r.Kind(), r.Duration().Milliseconds(), usageOf(r.Usage()), failureOf(orNil(r.Failure()))}
	case agent.Judged:
		return judged{of(e.Run), e.Step, e.Evaluation.Verdict.String(), signalOf(e.Evaluation.Signal)}
	case hooks.Event:
		return hookEvent(e)
	case agent.RunParked:
		return parkedRun(e.State)
	case agent.RunResumed:
		return resumedRun(e.State)
	case durable.NotifyFailed:
		return notifyFailed{of(e.Run), failureOf(e.Err)}
	case durable.StoreStalled:
		return storeStalled{of(e.Run), failureOf(e.Err)}
	case durable.StoreRecovered:
		return storeRecovered{of(e.Run), e.After.Milliseconds()}
	case agent.RunCompleted:
		return completedRun(e)
	}
	return ofCapability(e)
}

// orNil converts a failure to an error, and a nil pointer to a nil error.
func orNil(f *agent.Failure) error {
	if f == nil {
		return nil
	}
	return f
}

// textUnless returns a text, or nil if it equals the text same.
func textUnless(text, same string) *string {
	if text == same {
		return nil
	}
	return &text
}
