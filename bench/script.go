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
	job Job
	ids []string // of the calls, made once

	modelCalls, toolRuns, hookCalls, sum atomic.Int64
}

// NewScript returns the script of a job, or says what is wrong with the job.
func NewScript(job Job) (*Script, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	ids := make([]string, job.Steps)
	for i := range ids {
		ids[i] = callID(i)
	}
	return &Script{job: job, ids: ids}, nil
}

// Input is what a run starts from: the history, then the user's question.
func (s *Script) Input() []Message {
	return append(s.job.past(), Message{Role: RoleUser, Content: question})
}

// Reply is one model turn. It is told the role of the last message, and which
// call it answers. It returns the id of the next tool call, or "" when the model
// gives its [Answer] instead.
func (s *Script) Reply(role, answers string) (id string, err error) {
	s.modelCalls.Add(1)
	turn := 0
	switch role {
	case RoleUser:
		if s.job.Hold != nil {
			s.job.Hold()
		}
	case RoleTool:
		n, err := strconv.Atoi(strings.TrimPrefix(answers, prefix))
		if err != nil {
			return "", fmt.Errorf("scripted model: the last message answers call %q, which it never made", answers)
		}
		turn = n + 1
	default:
		return "", fmt.Errorf("scripted model: the last message is of role %q: want %s or %s",
			role, RoleUser, RoleTool)
	}
	if turn >= len(s.ids) {
		return "", nil
	}
	return s.ids[turn], nil
}

// Add is the tool's body.
func (s *Script) Add(a, b int) int {
	s.toolRuns.Add(1)
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

// past is the earlier turn that the history holds.
func (j Job) past() []Message {
	if j.History == 0 {
		return nil
	}
	messages := make([]Message, 0, j.History+2*j.Steps+2)
	messages = append(messages, Message{Role: RoleUser, Content: question})
	for i := range j.History/2 - 1 {
		messages = append(messages, exchange("past_"+strconv.Itoa(i))...)
	}
	return append(messages, Message{Role: RoleAssistant, Content: Answer})
}

// exchange is a call and its result.
func exchange(id string) []Message {
	return []Message{
		{Role: RoleAssistant, Calls: []Call{{id, ToolName, Arguments}}},
		{Role: RoleTool, Content: result, CallID: id},
	}
}

func callID(i int) string { return prefix + strconv.Itoa(i) }
