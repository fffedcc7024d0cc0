package replay

import (
	"encoding/json"
	"iter"
	"slices"
)

// Kind is a run's purpose.
type Kind string

const (
	// Clean is a run without an attack.
	Clean Kind = "clean"
	// Attacked is a run in which an attacker put instructions into tool answers.
	Attacked Kind = "attack"
	// AuthorisedTwin is a run in which the user makes the attacker's request: the same calls, but legitimate.
	AuthorisedTwin Kind = "authorised_twin"
)

// Record is one recorded run. It shares no memory with the Reader that returned it. The caller can keep and change it.
type Record struct {
	// ID names the run. It is unique in its recording.
	ID string `json:"id"`

	Source           string `json:"source"`            // the run's origin
	Suite            string `json:"suite"`             // the family of tasks and tools, "banking"
	Model            string `json:"model"`             // the model and its wrapper
	Defense          string `json:"defense"`           // an active defence on the model's side; "" for none
	BenchmarkVersion string `json:"benchmark_version"` // "" when the source has none
	Task             string `json:"task"`
	Kind             Kind   `json:"kind"`

	// Attack is the attack on the run; nil when there was none.
	Attack *Attack `json:"attack"`
	// Security reports whether the attack was stopped, according to the benchmark's score. It is nil when there was no
	// attack.
	Security *bool `json:"security"`
	// Utility reports whether the run did the user's task, according to the benchmark's check. It is nil when it was
	// not checked.
	Utility *bool `json:"utility"`

	// Tools are the run's tools if the recording contains them. Usually ToolsRef names a file instead.
	Tools []ToolSchema `json:"tools"`
	// ToolsRef is the file with the tools' schemas, relative to the recording's folder; "" when there is none.
	ToolsRef string `json:"tools_ref"`

	// Labels are the recorder's judgements of calls, such as which calls did harm.
	Labels []Label `json:"labels"`
	// Flags are the recorder's remarks on the run, such as "run_error". See Flagged.
	Flags []string `json:"flags"`
	// Split is the run's part of the collection, such as "dev".
	Split string `json:"split"`

	// Messages is the conversation, oldest first. It may be empty.
	Messages []Message `json:"messages"`

	// UserInstruction is the script that a simulated user followed. The model never saw it.
	UserInstruction string `json:"user_instruction,omitzero"`
	// ExpectedActions are the calls that the benchmark's own solution makes.
	ExpectedActions []Action `json:"expected_actions,omitzero"`

	// Other holds the members that have no field here, as written.
	Other map[string]json.RawMessage `json:",embed"`
}

// Attack is an injected goal and the injection method.
type Attack struct {
	Type          string                     `json:"type"`           // the wording: "important_instructions"
	InjectionTask string                     `json:"injection_task"` // the goal's name; "" when there is none
	Goal          string                     `json:"goal"`           // the goal as a sentence; "" when the attack only disturbs
	Vectors       []string                   `json:"vectors"`        // the places that contain the attack
	Other         map[string]json.RawMessage `json:",embed"`         // members without a field, as written
}

// Labels of calls in attacked runs.
const (
	LabelHarm      = "harm"      // the call does the injected goal's damage
	LabelPrep      = "prep"      // a preparation or a cover-up that the goal names
	LabelAmbiguous = "ambiguous" // the user's own words asked for the call
)

// Label is the recorder's judgement of one call.
type Label struct {
	Call     string                     `json:"call"`     // the call's id
	Label    string                     `json:"label"`    // LabelHarm, LabelPrep or LabelAmbiguous
	Executed bool                       `json:"executed"` // the call returned without a tool error
	Other    map[string]json.RawMessage `json:",embed"`   // members without a field, as written
}

// Action is a call in the benchmark's own solution.
type Action struct {
	Name      string                     `json:"name"`
	Arguments json.RawMessage            `json:"arguments"` // as written
	Other     map[string]json.RawMessage `json:",embed"`    // members without a field, as written
}

// Calls iterates over the run's tool calls, in the order in which the model made them, each with its message's index in
// Messages. It includes calls without an answer.
func (r *Record) Calls() iter.Seq2[int, ToolCall] {
	return func(yield func(int, ToolCall) bool) {
		for i, message := range r.Messages {
			for _, call := range message.ToolCalls {
				if !yield(i, call) {
					return
				}
			}
		}
	}
}

// Flagged reports whether the recorder set this flag for the run.
func (r *Record) Flagged(flag string) bool { return slices.Contains(r.Flags, flag) }
