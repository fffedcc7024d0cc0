// Package rules holds two tool policies for the AgentDojo suites (banking, slack, travel, workspace), written
// as plain Go: what a call may do is a table per suite, and a table is all there is to read.
//
//	facts, err := rules.LoadFacts("agentdojo-operator-facts.json")
//	if err != nil {
//		return err
//	}
//	rule, err := rules.OperatorStatic(facts, "banking")
//	if err != nil {
//		return err
//	}
//	args, err := rules.ParseArgs(`{"recipient": "US133000000121212121212", "amount": 30}`)
//	if err != nil {
//		return err
//	}
//	deny, reason := rule("send_money", args) // true, "money goes only to past payees and to the own account"
//
// DenyWrites lets an agent look at everything and change nothing. OperatorStatic is what the one who runs the
// agent can write down before any task is known: reads are free, and whatever leaves the house goes only to
// those who are known already.
//
// A Rule knows no agent and keeps nothing between two calls, so the same Rule decides in a hook of a running
// agent and over a recording, for many runs at once. An argument that is not of the kind a rule can judge is
// denied: a policy that cannot tell says no.
package rules
