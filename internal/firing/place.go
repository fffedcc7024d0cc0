package firing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/runctx"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// ErrParked ends a firing when a hook waits in the store.
var ErrParked = errors.New("a hook waits in the run's store")

// Place is where the gates of one firing wait: see runctx.Place. Control hooks run one after the other, so a Place is
// not used concurrently.
type Place struct {
	// Run is the run. Host, unless empty, is the host name in its waits for watched gates.
	Run  agent.Run
	Host string
	// Waits lists the run's waits, with the answers so far.
	Waits []durable.Wait
	// Now is the time that deadlines are compared with.
	Now time.Time
	// Cancel cancels the firing's context.
	Cancel context.CancelCauseFunc
	// When the firing has returned ErrParked, Parked lists the new waits, and Jobs lists the runs to submit with
	// them.
	Parked []durable.Wait
	Jobs   []durable.Job
}

var _ runctx.Place = (*Place)(nil)

// gateTool is the tool name in questions of gates, the same as for gates that block.
const gateTool = "gate"

// Park returns the answer to a gate, or ends the firing. An answer to another question of the same action is ignored.
func (p *Place) Park(_ context.Context, id string, q agent.Question) (agent.Approval, error) {
	call, round := "gate-"+id, 1
	for _, w := range p.Waits {
		if w.Kind == durable.WaitChild {
			continue
		}
		about, err := durable.InterventionOf(w)
		switch {
		case err != nil:
			return agent.Approval{}, err
		case about.CallID() != call:
			continue
		case !slices.ContainsFunc(about.Questions, func(asked agent.Question) bool { return asked.ID() == q.ID() }):
			round = about.Round + 1
			continue
		case about.Answer() != nil:
			return *about.Answer(), nil
		default:
			return agent.Approval{}, p.Wait(w)
		}
	}
	arguments, err := strictjson.Marshal(map[string]string{"hook": q.By, "question": q.Reason})
	if err != nil {
		return agent.Approval{}, err
	}
	about := agent.ToolCall{ID: call, Name: gateTool, Arguments: arguments}
	asked := agent.Intervention{
		Original: about, Call: about, Questions: agent.Questions{q}, Asked: p.Now, Deadline: p.Now.Add(q.Within), Round: round,
	}.WithID(p.Run.ID, int(p.Now.UnixMicro())) // a repeated firing asks again
	waits, err := durable.Notice{Run: p.Run, Calls: []durable.WaitingCall{{Intervention: asked}}}.Waits()
	if err != nil {
		return agent.Approval{}, err
	}
	for i := range waits {
		if p.Host != "" && waits[i].Kind != durable.WaitApproval {
			waits[i].Host = p.Host
		}
	}
	return agent.Approval{}, p.Wait(waits...)
}

// Wait ends the firing until one of the waits is over.
func (p *Place) Wait(waits ...durable.Wait) error {
	if !waits[0].Deadline.IsZero() && !p.Now.Before(waits[0].Deadline) {
		return runctx.ErrExpired
	}
	p.Parked = waits
	p.Cancel(ErrParked)
	return ErrParked
}
