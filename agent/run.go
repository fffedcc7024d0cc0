package agent

import (
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// SessionID names a session: a conversation of one or more runs.
type SessionID string

// RunID names a run: one execution of an agent on a session.
type RunID string

// NewSessionID returns a random session id.
func NewSessionID() SessionID { return SessionID("ses_" + rand.Text()) }

// NewRunID returns a random run id.
func NewRunID() RunID { return RunID("run_" + rand.Text()) }

// Run says which run of which agent a state belongs to. It is a plain value.
type Run struct {
	ID      RunID     `json:"id"`
	Session SessionID `json:"session"`
	// Agent is the agent's name.
	Agent string `json:"agent,omitempty"`
	// Parent is the run that started this one, and Root the first of that line.
	// Parent is empty and Root is ID for a run that nobody started.
	Parent RunID `json:"parent,omitempty"`
	Root   RunID `json:"root"`
	// Depth is how many runs stand above this one.
	Depth int `json:"depth,omitempty"`
	// Number counts the runs of the session from one.
	Number int `json:"number"`
	// Stage and Iteration place the run in a pipeline; empty and zero outside.
	Stage     string `json:"stage,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// Started is when the run began.
	Started time.Time `json:"started"`
}

// Status says how a run stands.
type Status string

// How a run may stand. All but StatusRunning, StatusParked and the
// empty status are terminal.
const (
	// StatusNew is a state that no run has touched yet.
	StatusNew Status = ""
	// StatusRunning: between a run's begin and its end.
	StatusRunning Status = "running"
	// StatusParked: the run waits for a person's answer, or to be taken up again, and
	// nothing of it is in memory but the state: see Agent.Resume.
	StatusParked Status = "parked"
	// StatusDone: the model gave its final answer.
	StatusDone Status = "done"
	// StatusStopped: somebody or some limit stopped the run.
	StatusStopped Status = "stopped"
	// StatusFailed: an error ended the run.
	StatusFailed Status = "failed"
	// StatusDenied: the input was not let in.
	StatusDenied Status = "denied"
	// StatusCancelled: the run's context was cancelled.
	StatusCancelled Status = "cancelled"
	// StatusInterrupted: a person was asked and said no.
	StatusInterrupted Status = "interrupted"
)

// Terminal reports whether a run with this status has ended.
func (s Status) Terminal() bool {
	return s != StatusNew && s != StatusRunning && s != StatusParked
}

// StopReason says in one word why a run ended.
type StopReason string

// The reasons of this module. Others may be used; they rank with StopByHook.
const (
	StopCompleted    StopReason = "completed"
	StopFinishReason StopReason = "finish_reason"
	StopRequested    StopReason = "stop_requested"
	StopByHook       StopReason = "hook"
	StopRetryLimit   StopReason = "retry_limit"
	StopStepsLimit   StopReason = "steps_limit"
	StopTimeLimit    StopReason = "time_limit"
	StopTokenLimit   StopReason = "token_limit"
	StopCostLimit    StopReason = "cost_limit"
	StopDenied       StopReason = "denied"
	StopRejected     StopReason = "rejected"
	StopError        StopReason = "error"
	StopUser         StopReason = "user_requested"
)

var stopRank = map[StopReason]int{
	StopCompleted: 1, StopFinishReason: 2, StopRequested: 3,
	StopRetryLimit: 5, StopStepsLimit: 6, StopTimeLimit: 7, StopTokenLimit: 8, StopCostLimit: 9,
	StopDenied: 10, StopRejected: 11, StopError: 12, StopUser: 13,
}

// rank orders reasons: of several, the highest names the end of the run.
func (r StopReason) rank() int {
	if n, ok := stopRank[r]; ok {
		return n
	}
	if r == "" {
		return 0
	}
	return 4 // StopByHook and reasons we do not know
}

// Soft reports whether the run would end by itself, so that somebody may still
// ask it to go on.
func (r StopReason) Soft() bool { return r != "" && r.rank() <= stopRank[StopRequested] }

// Signal says that a run is to end, why, and who said so. It is a plain value;
// Details must not be written once it is made.
type Signal struct {
	Reason StopReason `json:"reason"`
	// Message is a sentence for a person.
	Message string `json:"message,omitempty"`
	// Source names who stopped the run: a hook, a criterion.
	Source string `json:"source,omitempty"`
	// Details are figures such as currentSteps and maxSteps. In a state that came
	// from JSON, numbers among them are of type json.Number.
	Details map[string]any `json:"details,omitempty"`
}

// live is what belongs to a run while it runs, and is not kept in JSON.
type live struct {
	observer Observer // of all events
	listener Observer // of those of middleware
	onDelta  func(Delta)
	onStep   func(State) bool
	resumed  bool // from a state that was stored
	clock    clock

	asked  atomic.Bool // the observer was told that the model is asked
	events sync.Mutex  // one event at a time

	states  room[stateData]
	steps   room[stepBody]
	results room[ToolResult]

	judged judgements

	adding  sync.Mutex // one scratch value at a time
	first   [firstScratches]unsafe.Pointer
	scratch atomic.Pointer[[]scratchValue]
}

// firstScratches is how many of the Scratch values of a program, those that were declared
// first, are found at once: the ones of packages, which hooks look for at every call.
const firstScratches = 4

// scratches is how many Scratch values there are.
var scratches atomic.Int64

// scratchValue is the value of a Scratch, one that was not among the first, in a run.
type scratchValue struct {
	of    int64
	value unsafe.Pointer
}

// scratchOf finds the value of a Scratch; nil when it was not used yet.
func (l *live) scratchOf(number int64) unsafe.Pointer {
	if i := number - 1; i < firstScratches {
		return atomic.LoadPointer(&l.first[i])
	}
	if values := l.scratch.Load(); values != nil {
		for _, v := range *values { // few, and read far more often than added to
			if v.of == number {
				return v.value
			}
		}
	}
	return nil
}

// addScratch keeps the value of a Scratch, which has none yet. The lock is held.
func (l *live) addScratch(number int64, value unsafe.Pointer) {
	if i := number - 1; i < firstScratches {
		atomic.StorePointer(&l.first[i], value)
		return
	}
	var values []scratchValue
	if old := l.scratch.Load(); old != nil {
		values = slices.Clip(*old)
	}
	values = append(values, scratchValue{number, value})
	l.scratch.Store(&values)
}

// Scratch is a value of a run that hooks and middleware share and change while
// it runs: a counter, a cache, a clock. One Scratch value serves all runs; each
// run has a T of its own, made at first use. It is not part of the state, is not
// kept in JSON, and is gone when the run ends.
type Scratch[T any] struct {
	number int64 // its own, from one: what a run has under it is a *T
	make   func() *T
}

// NewScratch declares a scratch value. Make is called once for each run that
// uses it; nil means new(T).
func NewScratch[T any](make func() *T) *Scratch[T] {
	return &Scratch[T]{scratches.Add(1), make}
}

// Of is the value of the run that s belongs to. The pointer is the same for the
// whole run; guard what is behind it, parallel tool calls may use it at once.
// For a state that is not running, and for a Scratch that was not made with NewScratch,
// it is a new value.
func (k *Scratch[T]) Of(s State) *T {
	l := s.read().live
	if l == nil || k.number == 0 {
		return k.fresh()
	}
	if v := l.scratchOf(k.number); v != nil {
		return (*T)(v)
	}
	l.adding.Lock()
	defer l.adding.Unlock()
	if v := l.scratchOf(k.number); v != nil { // added meanwhile
		return (*T)(v)
	}
	v := k.fresh()
	l.addScratch(k.number, unsafe.Pointer(v))
	return v
}

func (k *Scratch[T]) fresh() *T {
	if k.make == nil {
		return new(T)
	}
	return k.make()
}
