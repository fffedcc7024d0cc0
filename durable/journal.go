package durable

import "strings"

// The kinds of journal entries.
const (
	// EntryBegin: the run began; its first state.
	EntryBegin EntryKind = "begin"
	// EntryReply: the model answered; the step is open.
	EntryReply EntryKind = "reply"
	// EntryDecision: a call was decided on; Data says how. Resuming does not use it:
	// controls decide again.
	EntryDecision EntryKind = "decision"
	// EntryCall: a call is about to run; Key is its id. Without an EntryResult the call
	// is in doubt.
	EntryCall EntryKind = "call"
	// EntryResult: a call has its result; Key is the id of the call.
	EntryResult EntryKind = "result"
	// EntryStep: a step was recorded.
	EntryStep EntryKind = "step"
	// EntryPark: the run waits.
	EntryPark EntryKind = "park"
	// EntryResume: a parked run resumed, with the answers to its questions.
	EntryResume EntryKind = "resume"
	// EntryEnd: the run ended.
	EntryEnd EntryKind = "end"
	// EntryOnce and EntryDone: a func of Keeper.Once was started, and has returned; Key
	// is its name, Data its result.
	EntryOnce EntryKind = "once"
	EntryDone EntryKind = "done"
)

// childPrefix precedes the kind of a sub-agent's entry in the journal of the run that started it: "child.reply" and so
// on. The calls that lead to the sub-agent precede the key, separated by slashes.
const childPrefix = "child."

// changesState reports whether an entry's data are changes of the state: see agent.Checkpoint.Changes.
func (k EntryKind) changesState() bool {
	switch EntryKind(strings.TrimPrefix(string(k), childPrefix)) {
	case EntryBegin, EntryReply, EntryCall, EntryResult, EntryStep, EntryPark, EntryResume, EntryEnd:
		return true
	}
	return false
}
