package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
)

// Kind says how a run is executed.
type Kind string

// The kinds of runs.
const (
	// KindAgent: an agent runs, by its loop.
	KindAgent Kind = "agent"
	// KindCommand: a command runs once as a process.
	KindCommand Kind = "command"
	// KindPipeline: stages run one after the other, each of them as child runs: see package pipeline.
	KindPipeline Kind = "pipeline"
)

// The labels that give the run of an agent its position in a pipeline: see agent.Run.
const (
	LabelStage     = "pipeline.stage"
	LabelIteration = "pipeline.iteration"
)

// Job describes a run to be stored: see Leases.
type Job struct {
	// ID is the ID of the run. Empty means a new one.
	ID agent.RunID
	// Kind is the kind of the run. Empty means KindAgent.
	Kind Kind
	// Name is the name of the agent or command in the registry of the worker, and Version its version
	// at the time of the job, if it has one.
	Name    string
	Version string
	// Session is the session of the run.
	Session agent.SessionID
	// Parent is the run that starts this one, and Root the topmost ancestor. An empty Root means
	// Parent, or the run itself when Parent is empty, too.
	Parent agent.RunID
	Root   agent.RunID
	// Input is what the run begins with: see AgentJob and CommandJob. It is opaque to the store.
	Input []byte
	// Summary is Run.Summary. Empty means a summary of the Input.
	Summary string
	// By is the verified name of who submits the job; empty when it is not known. That person's approval does not count
	// where a question has approvers or a quorum.
	By string
	// Limits, unless zero, are the remaining budget: they limit the run and the runs below it, in
	// addition to the limits of the agent; the stricter applies. What the run used before it was resumed
	// counts; Time begins with the first attempt, and does not count while the run waits. A run of a command has only a Time. See InputOf.
	Limits agent.Limits
	// Demands are labels that a worker must have to run the job: label names with their values.
	Demands map[string]string
	// Labels are names and values by which runs are listed.
	Labels map[string]string
	// Priority orders ready runs: workers claim those with a higher priority first.
	Priority int8
	// NotBefore is when the run may start; zero for at once.
	NotBefore time.Time
	// StartBy is when the run is cancelled unless it has started; zero for never.
	StartBy time.Time
	// Deadline is when the run is cancelled unless it has ended; zero for never.
	Deadline time.Time
	// IdempotencyKey identifies the job among all jobs of the store. Submitting a second job with the
	// key returns the run of the first. Empty means that every job is new.
	IdempotencyKey string
	// Phase, unless empty, is the kind of the Runner that has the run before a Runner of its Kind executes it: see Pass. A
	// worker needs only a Runner of that kind for it: Name and Demands count later.
	Phase Kind
	// After, unless empty, is the run that must end before this one can start: until then, this run waits for it, with the
	// wait that AfterWait returns. It must exist or be submitted earlier in the same call; otherwise the store returns
	// ErrNotFound. If it has ended, the run need not wait. When it ends, the store answers the wait. If it is deleted before
	// it has ended, this run waits until the wait is answered or the run is cancelled. A job with an After cannot have a
	// NotBefore, and cannot be leased at once (Begin).
	After agent.RunID
	// Traits are kept for the service that submits the job.
	Traits Traits
}

// afterID is the ID and the subject of the wait of a run that starts after another.
const afterID = "after"

// AfterWait returns the wait with which a store stores the run of a job that starts after another run; asked is the time.
func AfterWait(id, after agent.RunID, asked time.Time) Wait {
	return Wait{Run: id, ID: afterID, Kind: WaitChild, Subject: afterID, Asked: asked, Child: after}
}

// IsAfter reports whether a store has stored the wait for a job with an After: see AfterWait.
func (w Wait) IsAfter() bool { return w.ID == afterID && w.Kind == WaitChild }

// maxLabel is the maximum length of a label name, a label value, a definition name and a version, in bytes.
const maxLabel = 256

var labelName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`)

// Prepare returns the job with its defaults filled in, and with its Limits as a part of its Input, which is
// where a store keeps them. It returns an error for a job that a store must not accept. Stores call it first.
func (j Job) Prepare() (Job, error) {
	if j.ID == "" {
		j.ID = agent.NewRunID()
	}
	if j.Kind == "" {
		j.Kind = KindAgent
	}
	if j.Root == "" {
		j.Root = j.Parent
	}
	if j.Root == "" {
		j.Root = j.ID
	}
	if j.Summary = summarize(j.Summary); j.Summary == "" {
		j.Summary = summaryOf(j.Input)
	}
	input, err := withLimits(j.Input, j.Limits)
	j.Input, j.Limits = input, agent.Limits{}
	err = errors.Join(err, checkLabels("demand", j.Demands), checkLabels("label", j.Labels))
	switch {
	case err != nil:
	case len(j.Name) > maxLabel || len(j.Version) > maxLabel || len(j.IdempotencyKey) > maxLabel || len(j.By) > maxLabel:
		err = fmt.Errorf("a name, a version, an idempotency key and a submitter have at most %d bytes", maxLabel)
	case j.After != "" && !j.NotBefore.IsZero():
		err = fmt.Errorf("the job must start after run %q and not before %s: use either After or NotBefore",
			j.After, j.NotBefore.UTC().Format(time.RFC3339))
	case !j.StartBy.IsZero() && j.StartBy.Before(j.NotBefore):
		err = fmt.Errorf("the job must start by %s, but not before %s", j.StartBy.UTC().Format(time.RFC3339), j.NotBefore.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return j, fmt.Errorf("job %q of kind %s: %w", j.Name, j.Kind, err)
	}
	return j, nil
}

// PrepareToBegin returns what Prepare returns. It returns an error for a job that cannot be leased at once, too.
func (j Job) PrepareToBegin() (Job, error) {
	j, err := j.Prepare()
	if err == nil && j.After != "" {
		err = fmt.Errorf("job %q of kind %s: a run that is leased at once cannot start after run %q: submit the job, or leave After empty",
			j.Name, j.Kind, j.After)
	}
	return j, err
}

func checkLabels(what string, labels map[string]string) error {
	for name, value := range labels {
		switch {
		case len(name) > maxLabel || !labelName.MatchString(name):
			return fmt.Errorf("%s %q: a name has letters, digits, and . _ / - between them", what, name)
		case len(value) > maxLabel || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0xFFFD }):
			return fmt.Errorf("%s %s: the value has more than %d bytes, or control characters", what, name, maxLabel)
		}
	}
	return nil
}

// Needs returns what a worker must offer to run the job.
func (j Job) Needs() Needs {
	if j.Kind == "" {
		j.Kind = KindAgent
	}
	return needsOf(j.Phase, j.Kind, j.Name, j.Demands)
}

func needsOf(phase, kind Kind, name string, demands map[string]string) Needs {
	if phase != "" {
		return Needs{Kind: phase}
	}
	return Needs{Kind: kind, Name: name, Demands: demands}
}

// Needs are what a worker must offer to run a job: runs with equal needs are in one queue.
type Needs struct {
	Kind    Kind              `json:"kind"`
	Name    string            `json:"name"`
	Demands map[string]string `json:"demands,omitempty"`
}

// Key identifies Needs, in a store and in a scheduler.
type Key [16]byte

// MarshalText returns the key in hexadecimal.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText reads a key that MarshalText has written.
func (k *Key) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(k) {
		return fmt.Errorf("the key %q of a queue has not %d bytes", text, len(k))
	}
	_, err := hex.Decode(k[:], text)
	return err
}

// Key returns the key of the needs: a hash, equal in all processes.
func (n Needs) Key() Key {
	if len(n.Demands) == 0 {
		n.Demands = nil
	}
	text, err := json.Marshal(n) // maps are written in the order of their keys
	if err != nil {
		panic(err) // strings can always be written
	}
	sum := sha256.Sum256(text)
	return Key(sum[:16])
}

// String returns the needs as text, such as `agent "clerk" gpu=a100`.
func (n Needs) String() string {
	words := []string{string(n.Kind), strconv.Quote(n.Name)}
	for _, name := range slices.Sorted(maps.Keys(n.Demands)) {
		words = append(words, name+"="+n.Demands[name])
	}
	return strings.Join(words, " ")
}
