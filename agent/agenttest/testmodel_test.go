package agenttest_test

import (
	"testing"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

func TestScriptIsAModel(t *testing.T) {
	agenttest.TestModel(t, agenttest.Model{New: scripted})
}

// scripted plays the turns of a model.
func scripted(_ *testing.T, turns ...agent.Step) agent.Driver {
	return agenttest.Script(lo.Map(turns, func(turn agent.Step, _ int) agenttest.Turn { return agenttest.Reply(turn) })...)
}
