package runs

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// A list says what a run waits for, which is not always an approval.
func TestDescribeWaits(t *testing.T) {
	t.Parallel()
	pay := listedCall{Call: "c1", Tool: "pay", Kind: durable.WaitApproval}
	for want, calls := range map[string][]listedCall{
		"waits for approval of pay (c1)":                       {pay},
		"waits for a decision whether to repeat pay (c1)":      {{Call: "c1", Tool: "pay", Kind: durable.WaitDoubt}},
		"waits for input for order (c2)":                       {{Call: "c2", Tool: "order", Kind: durable.WaitInput}},
		"waits for a file about deploy (c3#window)":            {{Call: "c3#window", Tool: "deploy", Kind: durable.WaitFile}},
		"waits for a file about deploy (c3#window): /srv/open": {{Call: "c3#window", Tool: "deploy", Kind: durable.WaitFile, File: "/srv/open"}},
		"waits for the end of run r2":                          {{Call: "child", Tool: "x", Kind: durable.WaitChild, Child: "r2"}},
		"waits for approval of gate":                           {{Call: "gate", Kind: durable.WaitApproval}},
		"waits for moon x (c)":                                 {{Call: "c", Tool: "x", Kind: "moon"}},
		"waits for approval of pay (c1), pay (c4), and for a decision whether to repeat send (c2)": {
			pay, {Call: "c2", Tool: "send", Kind: durable.WaitDoubt}, {Call: "c4", Tool: "pay", Kind: durable.WaitApproval},
		},
	} {
		assert.Equal(t, want, describeWaits(calls))
	}
}

// A list says on one line why a run has ended.
func TestEnding(t *testing.T) {
	t.Parallel()
	run := func(status durable.Status, reason agent.StopReason) durable.Run {
		return durable.Run{Status: status, Reason: reason}
	}
	for want, l := range map[string]listed{
		"":                              {Run: run(durable.StatusCompleted, agent.StopCompleted)},
		"no answer: the reply is empty": {Run: run(durable.StatusCompleted, agent.StopEmptyReply)},
		"a.yaml:2:8: set KEY":           {Run: run(durable.StatusFailed, agent.StopError), Error: "a.yaml:2:8: set KEY\n     2 | model: x\n       |        ^"},
	} {
		assert.Equal(t, want, l.ending())
	}
}
