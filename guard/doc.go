// Package guard puts hooks and policies in front of the tools of another framework's agent. The framework keeps its loop
// and its model. The guard decides on each tool call: it denies, asks a person, rewrites the arguments, mocks, redacts the
// result or stops, as an agent of this module does.
//
//	p, err := policy.LoadFiles("policy.yaml")
//	g, err := guard.New(guard.Config{Name: "desk", Rules: p, Key: key})
//	session := g.Session(ctx, "conversation-7", input)
//	answer, err := guard.Do(ctx, session, guard.Call{ID: "call-1", Tool: "pay", Arguments: `{"amount":5}`}, pay, guard.Text)
//
// Do is the only way in which a call runs, at most once and with exactly the arguments that were judged. Package guardtest
// checks an adapter that uses it.
//
// # Sessions
//
// A Session is one conversation's run. It keeps a ledger of the calls, so that rules can count them and know who said
// what. The host calls Sync with its transcript and Step before each model call, as far as it has them. Calls judged
// before the next Step or Sync belong to one step. A host that calls neither has a step for each call, or for the calls
// that run at the same time. A host that restarts keeps the ledger with Save and Restore.
//
// # Asking a person
//
// With Config.Approver, the guard asks while other calls go on. When the approver answers Park, as agent.ParkApprover
// does, Do returns an AskError and the host asks. It makes the same call again with the token and the answers. The call
// is judged again, and an answer counts only for the same call, session, rules and question, once. A func from Tool finds
// the token and the answers in its context: see WithAnswers.
//
// # What is lost outside of this module's loop
//
// Hooks around runs, model calls and Stop never fire, so New refuses controls there. Nothing can make the run go on.
// Limits of tokens and cost, a journal, and the doubt about calls that a crash cut off need the loop. Rewritten arguments
// are not checked against the tool's schema, because only the host has it. Calls are judged in the order in which they
// arrive, and calls that are running survive a stop.
//
// # Concurrency
//
// A Guard and its sessions are safe for concurrent use. No goroutine is left when Do returns, except detached hooks: see
// Guard.Drain.
package guard
