package condition

import (
	"encoding/json"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
)

// source supplies the values of an event. Missing values are zero.
type source interface { //nolint:interfacebloat // one method for each part of an event, and both sources have all
	run() agent.Run
	step() int
	stepKind() string
	usage() agent.Usage
	elapsedTime() time.Duration
	result() result
	failure() string
	input() string
	reply() reply
	subagent() hooks.Subagent
	approvals() []approval
	duration() time.Duration // for the step, sub-agent or call that the point is about
	compaction() hooks.Compaction
	continuations() int
	conversation() hooks.Conversation
	pipeline() hooks.Pipeline
	parameters() string // JSON, or empty
	invalid() string
	question() string
	end() (status agent.Status, reason agent.Signal)
	metadata(name string) (any, bool)
	tally(tool string) tally
}

// called is a tool call with the data that conditions read.
type called struct {
	tool      string
	id        string
	index     int
	arguments string // effective
	original  string
}

// result is a call's result.
type result struct {
	text    string
	isError bool
	status  string
	reason  string
	data    string // JSON, or empty

	attempts int
}

// reply is a model turn.
type reply struct {
	text   string
	tools  []string
	finish string
	model  string
}

// approval is an approval request for a call, with its answer.
type approval struct {
	CallID    string          `json:"call_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Run       string          `json:"run"`
	Question  string          `json:"question"`
	Action    string          `json:"action"`
	By        string          `json:"by"`
	Reason    string          `json:"reason"`
}

// tally is how often a tool was called in this run.
type tally struct {
	Calls  int64 `json:"calls"`
	OK     int64 `json:"ok"`
	Denied int64 `json:"denied"`
}
