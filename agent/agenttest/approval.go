package agenttest

import (
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// WithApproval returns a parked state with an answer to what is asked about a call: see agent.State.WithApprovalAt. The state does not
// change when nothing is asked about the call. It is for tests: programs name the agent.Intervention that a person was shown.
func WithApproval(s agent.State, call string, answer agent.Approval) agent.State {
	asked, _ := lo.Find(s.Interventions(), func(i agent.Intervention) bool { return i.CallID() == call })
	return s.WithApprovalAt(asked.ID, answer, time.Now())
}
