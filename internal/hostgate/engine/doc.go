// Package engine decides on coding agents' events with policies: one process for each event.
//
//	engine.Run(ctx, engine.Config{Host: hostgate.Codex, Policies: []string{"policy.yaml"}}, os.Stdin, os.Stdout)
//
// # Failure
//
// Run always answers. A policy that cannot be loaded, an event that cannot be read, a panic, a full disk and a deadline that
// has passed are denials in the host's form, with the cause as the reason.
//
// # Sessions
//
// The processes of a session share a ledger in Config.State, an owner-only folder: a file for each session, sealed with a
// key in the same folder. The seal does not protect it from other programs of the same user. One process at a time has a
// session's ledger. So rules count the session's calls, and know what the tools answered.
//
// The user's words come from the host's events, and from the transcript of Claude Code. Without either, no value counts as
// the user's.
package engine
