// Package rules contains two tool policies for the AgentDojo suites (banking, slack, travel, workspace), written in
// plain Go. A table for each suite lists which calls are allowed.
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
// DenyWrites lets an agent read everything and change nothing. OperatorStatic is a policy that an operator can write
// before any task is known: reads are allowed, and data and money go only to known recipients.
//
// A Rule does not depend on an agent and keeps no state between calls. The same Rule can therefore decide in a running
// agent's hook and for a recording, for many runs concurrently. A rule denies an argument whose type it cannot judge.
package rules
