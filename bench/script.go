package bench

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
)

// The texts of every run.
const (
	ToolName  = "add"
	ToolText  = "Adds two whole numbers."
	Arguments = `{"a":12,"b":30}`
	Answer    = "All added up."

	question = "Add these numbers until I am happy."
	result   = "42"
	prefix   = "call_"
)

// Script is the model, the tool's body and the hooks' body of every contender, except for the types of its messages.
// It also counts the calls. Runs may use it concurrently.
type Script struct {
	job      Job
	ids      []string // the ids of the calls, created once
	anyOrder bool

	modelCalls, toolRuns, hookCalls, sum atomic.Int64
}

// NewScript returns the script of a job, or an error for an invalid job.
func NewScript(job Job) (*Script, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	return &Script{job: job, ids: callIDs(0, job.Steps*job.width())}, nil
}

// AnyOrder makes Reply accept any call of a step as its last one, for contenders that order results by the end of
// their calls. Such contenders sort the messages of their Outcome.
func (s *Script) AnyOrder() *Script {
	s.anyOrder = true
	return s
}

// Input returns the input of a run: the history, then the user's question.
func (s *Script) Input() []Message {
	return append(s.job.past(), Message{Role: RoleUser, Content: question})
}

// Reply returns one model turn. Its arguments are the role of the last message and the call that this message
// answers. It returns the ids of the next step's tool calls, or none if the model gives its [Answer]. The caller must
// not modify the ids.
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

// Add is the body of the tool.
func (s *Script) Add(a, b int) int {
	s.toolRuns.Add(1)
	if s.job.InTool != nil {
		s.job.InTool()
	}
	s.sum.Add(int64(a + b))
	return a + b
}

// Hook is the body of every hook, before and after the tool: it counts the call and changes nothing.
func (s *Script) Hook(tool string) {
	if tool == ToolName {
		s.hookCalls.Add(1)
	}
}

// OffClock runs f without measuring it. The code in f stands for work of earlier runs, which the bare loop does not
// have.
func (s *Script) OffClock(f func()) {
	if s.job.OffClock == nil {
		f()
		return
	}
	s.job.OffClock(f)
}

// Outcome returns the counts since the last call of Outcome.
func (s *Script) Outcome(transcript iter.Seq[Message]) Outcome {
	return Outcome{
		ModelCalls: int(s.modelCalls.Swap(0)),
		ToolRuns:   int(s.toolRuns.Swap(0)),
		HookCalls:  int(s.hookCalls.Swap(0)),
		Sum:        int(s.sum.Swap(0)),
		Transcript: transcript,
	}
}

// past returns the messages of the history.
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

// exchange returns the calls of a step and their results.
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

// callIDs returns n ids of calls, numbered from first.
func callIDs(first, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + strconv.Itoa(first+i)
	}
	return ids
}
