package durable

import "strings"

// What the entries of a journal are about.
const (
	// EntryBegin: the run was let in; the state as it began.
	EntryBegin EntryKind = "begin"
	// EntryReply: the model answered; the step is open.
	EntryReply EntryKind = "reply"
	// EntryDecision: a call was decided upon; Data says how. Nothing is rebuilt from it:
	// controls judge again.
	EntryDecision EntryKind = "decision"
	// EntryCall: a call is about to run; Key is its id. Without an EntryResult it is in
	// doubt.
	EntryCall EntryKind = "call"
	// EntryResult: a call was answered; Key is its id.
	EntryResult EntryKind = "result"
	// EntryStep: a step was recorded.
	EntryStep EntryKind = "step"
	// EntryPark: the run waits.
	EntryPark EntryKind = "park"
	// EntryResume: a run that had waited goes on, with the answers that it was given.
	EntryResume EntryKind = "resume"
	// EntryEnd: the run ended.
	EntryEnd EntryKind = "end"
	// EntryOnce and EntryDone: something that is done once was begun, and done; Key is
	// its name, Data what came of it.
	EntryOnce EntryKind = "once"
	EntryDone EntryKind = "done"
)

// childPrefix begins the kind of an entry of a sub-agent, in the journal of the run that
// started it: "child.reply" and so on. The key begins with the call that started it, and
// those above it, with slashes between them.
const childPrefix = "child."

// ofState reports whether the data of such an entry are changes of the state: see
// agent.Checkpoint.Changes.
func (k EntryKind) ofState() bool {
	switch EntryKind(strings.TrimPrefix(string(k), childPrefix)) {
	case EntryBegin, EntryReply, EntryCall, EntryResult, EntryStep, EntryPark, EntryResume, EntryEnd:
		return true
	}
	return false
}
