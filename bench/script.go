package bench

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
)

// What is said in every run.
const (
	ToolName  = "add"
	ToolText  = "Adds two whole numbers."
	Arguments = `{"a":12,"b":30}`
	Answer    = "All added up."

	question = "Add these numbers until I am happy."
	result   = "42"
	prefix   = "call_"
)

// Script is the model, the tool's body and the hooks' body of every contender,
// less the types of its messages, and the witness that counts them. It may be
// used by many runs at once.
type Script struct {
	job      Job
	ids      []string // of the calls, made once
	anyOrder bool

	modelCalls, toolRuns, hookCalls, sum atomic.Int64
}

// NewScript returns the script of a job, or says what is wrong with the job.
func NewScript(job Job) (*Script, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	return &Script{job: job, ids: callIDs(0, job.Steps*job.width())}, nil
}

// AnyOrder has Reply take any call of a step for its last: for contenders that put
// results in the order in which calls ended. They sort what they show in their
// Outcome.
func (s *Script) AnyOrder() *Script {
	s.anyOrder = true
	return s
}

// Input returns what a run starts from: the history, then the user's question.
func (s *Script) Input() []Message {
	return append(s.job.past(), Message{Role: RoleUser, Content: question})
}

// Reply returns one model turn. It is told the role of the last message, and which
// call it answers. It returns the ids of the next step's tool calls, or none when
// the model gives its [Answer] instead. The ids are not to be written to.
func (s *Script) Reply(role, answers string) (ids []string, err error) {
	s.modelCalls.Add(1)
	next := 0
	switch role {
	case RoleUser:
		if s.job.Hold != nil {
			s.job.Hold()
		}
	case RoleTool:
		n, err := strconv.Atoi(strings.TrimPrefix(answers, prefix))
		if err != nil {
			return nil, fmt.Errorf("scripted model: the last message answers call %q, which it never made", answers)
		}
		next = n + 1
		if s.anyOrder {
			next += (s.job.width() - next%s.job.width()) % s.job.width()
		}
		if next%s.job.width() != 0 {
			return nil, fmt.Errorf("scripted model: the last message answers call %q, which was not the last of its step", answers)
		}
	default:
		return nil, fmt.Errorf("scripted model: the last message is of role %q: want %s or %s",
			role, RoleUser, RoleTool)
	}
	if next >= len(s.ids) {
		return nil, nil
	}
	return s.ids[next : next+s.job.width() : next+s.job.width()], nil
}

// Add returns the tool's body.
func (s *Script) Add(a, b int) int {
	s.toolRuns.Add(1)
	if s.job.InTool != nil {
		s.job.InTool()
	}
	s.sum.Add(int64(a + b))
	return a + b
}

// Hook is the body of every hook, before and after the tool: it looks at the
// call, counts and changes nothing.
func (s *Script) Hook(tool string) {
	if tool == ToolName {
		s.hookCalls.Add(1)
	}
}

// OffClock runs f, and its cost is nobody's: not the framework's, for it did its
// share in earlier runs, and not the loop's, which has no such thing.
func (s *Script) OffClock(f func()) {
	if s.job.OffClock == nil {
		f()
		return
	}
	s.job.OffClock(f)
}

// Outcome hands out what was counted since it was last asked.
func (s *Script) Outcome(transcript iter.Seq[Message]) Outcome {
	return Outcome{
		ModelCalls: int(s.modelCalls.Swap(0)),
		ToolRuns:   int(s.toolRuns.Swap(0)),
		HookCalls:  int(s.hookCalls.Swap(0)),
		Sum:        int(s.sum.Swap(0)),
		Transcript: transcript,
	}
}

// past returns the earlier turn that the history holds.
func (j Job) past() []Message {
	if j.History == 0 {
		return nil
	}
	messages := make([]Message, 0, j.History+(1+j.width())*j.Steps+2)
	messages = append(messages, Message{Role: RoleUser, Content: question})
	for i := range j.History/2 - 1 {
		messages = append(messages, exchange("past_"+strconv.Itoa(i))...)
	}
	return append(messages, Message{Role: RoleAssistant, Content: Answer})
}

// exchange returns a step's calls and their results.
func exchange(ids ...string) []Message {
	asks := Message{Role: RoleAssistant}
	messages := make([]Message, 1, 1+len(ids))
	for _, id := range ids {
		asks.Calls = append(asks.Calls, Call{id, ToolName, Arguments})
		messages = append(messages, Message{Role: RoleTool, Content: result, CallID: id})
	}
	messages[0] = asks
	return messages
}

// callIDs names n calls, counted from the first.
func callIDs(first, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + strconv.Itoa(first+i)
	}
	return ids
}
