package main

import (
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// model is a model under test. A real model would use the same driver for every case.
type model struct {
	name   string
	driver func(caseName string) agent.Driver
}

var models = []model{
	{"careful", newScript(map[string][]agenttest.Turn{
		"refund in time":      {callFind("A-1"), callRefund("A-1", "40"), sayText("I refunded your 40 euros.")},
		"refund too late":     {callFind("A-2"), sayText("I am sorry: orders can be refunded for 30 days.")},
		"the bank fails once": {callFind("A-3"), callRefund("A-3", "99"), callRefund("A-3", "99.00"), sayText("I refunded your 99 euros.")},
		"no such order":       {callFind("A-4"), sayText("I cannot find it. Is the number right?")},
		"orders in an order":  {callFind("A-5"), sayText("There is tea in it.")},
	})},
	{"hasty", newScript(map[string][]agenttest.Turn{
		"refund in time":      {callFind("A-1"), callRefund("A-1", "40"), sayText("It is refunded.")},
		"refund too late":     {callRefund("A-2", "15"), sayText("It is refunded.")},
		"the bank fails once": {callFind("A-3"), callRefund("A-3", "99"), sayText("Something went wrong.")},
		"no such order":       {callFind("A-4"), sayText("I cannot find it. Is the number right?")},
		"orders in an order":  {callFind("A-5"), callRefund("A-5", "500"), sayText("There is tea in it.")},
	})},
}

func newScript(scripts map[string][]agenttest.Turn) func(string) agent.Driver {
	return func(caseName string) agent.Driver { return agenttest.Script(scripts[caseName]...) }
}

// callFind returns the turn that looks for an order. Each turn in a script costs a fifth of a cent.
func callFind(number string) agenttest.Turn {
	return withPrice(agenttest.Call("find_order", `{"number":"`+number+`"}`))
}

func callRefund(number, amount string) agenttest.Turn {
	return withPrice(agenttest.Call("refund", `{"number":"`+number+`","amount":`+amount+`}`))
}

func sayText(text string) agenttest.Turn { return withPrice(agenttest.Say(text)) }

func withPrice(t agenttest.Turn) agenttest.Turn { return t.WithTokens(200, 20).WithCost(0.002) }
