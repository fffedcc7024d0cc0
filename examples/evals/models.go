package main

import (
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
)

// model is one that is tried. A real one is the same driver for every case.
type model struct {
	name   string
	driver func(caseName string) agent.Driver
}

var models = []model{
	{"careful", scripted(map[string][]agenttest.Turn{
		"refund in time":      {find("A-1"), pay("A-1", "40"), say("I refunded your 40 euros.")},
		"refund too late":     {find("A-2"), say("I am sorry: orders can be refunded for 30 days.")},
		"the bank fails once": {find("A-3"), pay("A-3", "99"), pay("A-3", "99.00"), say("I refunded your 99 euros.")},
		"no such order":       {find("A-4"), say("I cannot find it. Is the number right?")},
		"orders in an order":  {find("A-5"), say("There is tea in it.")},
	})},
	{"hasty", scripted(map[string][]agenttest.Turn{
		"refund in time":      {find("A-1"), pay("A-1", "40"), say("It is refunded.")},
		"refund too late":     {pay("A-2", "15"), say("It is refunded.")},
		"the bank fails once": {find("A-3"), pay("A-3", "99"), say("Something went wrong.")},
		"no such order":       {find("A-4"), say("I cannot find it. Is the number right?")},
		"orders in an order":  {find("A-5"), pay("A-5", "500"), say("There is tea in it.")},
	})},
}

func scripted(scripts map[string][]agenttest.Turn) func(string) agent.Driver {
	return func(caseName string) agent.Driver { return agenttest.Script(scripts[caseName]...) }
}

// find looks for an order. Each turn of a script costs a fifth of a cent.
func find(number string) agenttest.Turn {
	return priced(agenttest.Call("find_order", `{"number":"`+number+`"}`))
}

func pay(number, amount string) agenttest.Turn {
	return priced(agenttest.Call("refund", `{"number":"`+number+`","amount":`+amount+`}`))
}

func say(text string) agenttest.Turn { return priced(agenttest.Say(text)) }

func priced(t agenttest.Turn) agenttest.Turn { return t.WithTokens(200, 20).WithCost(0.002) }
