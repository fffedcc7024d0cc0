package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/rooted"
)

// SessionOptions describe a session: one run of a pipeline.
type SessionOptions struct {
	// Name is the session's name. Required.
	Name string
	// Dir is the directory for the session's files. Required.
	Dir string
	// Workspace is the directory in which commands run. Empty means the working directory.
	Workspace string
	// Demands are labels that a worker must have to execute the session and its iterations. They must select workers that
	// have the directories.
	Demands map[string]string
	// DetachedDemands are the demands for pipelines that hooks start without awaiting them. They may need other workers, because they
	// can go on when the session has ended. Nil means Demands.
	DetachedDemands map[string]string
	// Limits apply to the session and its iterations together, in addition to the pipeline's limits.
	Limits agent.Limits
	// By is the verified name of the person or program that starts the session.
	By string
	// Inputs is a JSON object for the session. Empty means none.
	Inputs json.RawMessage
	// IdempotencyKey identifies the session among the store's jobs: see durable.Job.
	IdempotencyKey string

	depth int // the number of pipelines above this one
	// only is the stage in a parallel block that the session runs, and next the stage after the block.
	only, next string
	// root is the directory with the files of all sessions; empty for Dir's parent.
	root string
}

// The labels for a session's runs, besides durable.LabelStage and durable.LabelIteration.
const (
	// LabelPipeline is the pipeline's name, LabelSession the session's name.
	LabelPipeline = "pipeline"
	LabelSession  = "pipeline.session"
	// LabelDetached is "true" for a pipeline that a hook has started without awaiting it.
	LabelDetached = "pipeline.detached"
	// labelRestarts counts how often the iteration's stage has begun again. A stage that never did has none.
	labelRestarts = "pipeline.restarts"
)

// sessionInput is the input in a session's run.
type sessionInput struct {
	Source    json.RawMessage `json:"source"`
	Session   string          `json:"session"`
	Dir       string          `json:"dir"`
	Workspace string          `json:"workspace"`
	Inputs    json.RawMessage `json:"inputs,omitzero"`
	Depth     int             `json:"depth,omitempty"`
	Only      string          `json:"only,omitempty"`
	Next      string          `json:"next,omitempty"`
	Root      string          `json:"root,omitempty"`
	// DetachedDemands are as in SessionOptions.
	DetachedDemands map[string]string `json:"detached_demands,omitempty"`
}

// Job returns the job for a new session.
func (p *Pipeline) Job(o SessionOptions) (durable.Job, error) {
	in := sessionInput{
		Session: o.Name, Inputs: o.Inputs, Depth: o.depth, Only: o.only, Next: o.next, Root: o.root, DetachedDemands: o.DetachedDemands,
	}
	var err error
	if !namePattern.MatchString(o.Name) || len(o.Name) > maxName {
		err = fmt.Errorf("invalid name %q: use at most %d letters and digits, with . _ or - between them", o.Name, maxName)
	}
	if o.Dir == "" {
		err = errors.Join(err, errors.New("SessionOptions.Dir is empty"))
	}
	if err == nil && len(o.Inputs) > 0 && (!json.Valid(o.Inputs) || bytes.TrimSpace(o.Inputs)[0] != '{') {
		err = errors.New("SessionOptions.Inputs is no JSON object")
	}
	if err == nil {
		in.Dir, err = filepath.Abs(o.Dir)
	}
	if err == nil {
		in.Workspace, err = filepath.Abs(o.Workspace)
	}
	if err == nil && !utf8.ValidString(in.Dir+in.Workspace) {
		err = fmt.Errorf("the paths %q and %q must be UTF-8: use another directory", in.Dir, in.Workspace)
	}
	if err == nil {
		in.Source, err = p.encode()
	}
	if err != nil {
		return durable.Job{}, fmt.Errorf("session of pipeline %q: %w", p.Name, err)
	}
	data, err := json.Marshal(in)
	if err != nil {
		return durable.Job{}, fmt.Errorf("session of pipeline %q: %w", p.Name, err)
	}
	return durable.Job{
		Kind: durable.KindPipeline, Name: p.Name, Version: p.hash()[:12], Session: agent.SessionID(o.Name), Input: data,
		By: o.By, Limits: o.Limits.Merge(agent.Limits(p.Limits)), Demands: o.Demands,
		Labels: map[string]string{LabelPipeline: p.Name, LabelSession: o.Name}, IdempotencyKey: o.IdempotencyKey, Summary: summaryOf(o.Inputs),
	}, nil
}

// summaryOf returns the summary of a session: its inputs, and never the text of its files.
func summaryOf(inputs json.RawMessage) string {
	if text := string(bytes.TrimSpace(inputs)); text != "" && text != "{}" {
		return text
	}
	return "pipeline"
}

// InputsOf returns the inputs in a session run's input: see durable.InputOf. It returns an empty object for none.
func InputsOf(input []byte) (json.RawMessage, error) {
	var in sessionInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("reading the inputs of a session: %w", err)
	}
	if len(in.Inputs) == 0 {
		return json.RawMessage("{}"), nil
	}
	return in.Inputs, nil
}

// WithInputs returns a session run's input with other inputs.
func WithInputs(input []byte, inputs json.RawMessage) ([]byte, error) {
	var in sessionInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("replacing the inputs of a session: %w", err)
	}
	in.Inputs = inputs
	return json.Marshal(in)
}

// session is a session as it was submitted.
type session struct {
	*Pipeline

	name      string
	dir       string
	workspace string
	limits    agent.Limits
	inputs    json.RawMessage
	depth     int
	// part is set for a stage in a parallel block, which is a session below the pipeline's session; next is then the stage after the
	// block.
	part bool
	next string
	// outputDirs are the directories of all stages in the pipeline. root is the directory with the files of all sessions.
	outputDirs map[string]string
	root       string
	// base is the trusted directory above all session files. Agents may change anything below it.
	base rooted.Base

	detachedDemands map[string]string
}

// readSession reads a session from a store, given its run.
func readSession(ctx context.Context, j durable.Reader, id agent.RunID) (*session, error) {
	data, limits, err := durable.InputOf(ctx, j, id)
	if err != nil {
		return nil, err
	}
	var in sessionInput
	var src source
	if err = json.Unmarshal(data, &in); err == nil {
		err = json.Unmarshal(in.Source, &src)
	}
	if err != nil {
		return nil, &brokenError{fmt.Errorf("reading the session: %w", err)}
	}
	p, err := parse(src)
	if err != nil {
		return nil, &brokenError{err}
	}
	top := in.Dir
	if in.Only != "" { // a part's directory is in its block's directory: DIR/stages/NN-BLOCK/PART
		top = filepath.Dir(filepath.Dir(filepath.Dir(in.Dir)))
	}
	root := cmp.Or(in.Root, filepath.Dir(top))
	base := in.Workspace
	if isIn, err := filepath.Rel(base, in.Dir); err != nil || !filepath.IsLocal(isIn) {
		base = filepath.Dir(root)
	}
	if strings.HasPrefix(in.Workspace+string(filepath.Separator), root+string(filepath.Separator)) {
		root = top // the workspace's files are not session files
	}
	dirs := p.stageDirs(top)
	if in.Only != "" {
		all := p.each()
		i := slices.IndexFunc(all, func(s *Stage) bool { return s.Name == in.Only })
		if i < 0 {
			return nil, &brokenError{fmt.Errorf("pipeline %q has no stage %q", p.Name, in.Only)}
		}
		p.Stages = []Stage{*all[i]}
	}
	return &session{
		Pipeline: p, name: in.Session, dir: in.Dir, workspace: in.Workspace, limits: limits.Merge(agent.Limits(p.Limits)), inputs: in.Inputs, depth: in.Depth,
		part: in.Only != "", next: in.Next, outputDirs: dirs, root: root, base: rooted.Base(base),
		detachedDemands: in.DetachedDemands,
	}, nil
}

// brokenError is the error for a session that can never be executed.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }

func (e *brokenError) Unwrap() error { return e.err }

// stageDir returns a stage's directory.
func (s *session) stageDir(stage int) string { return stageDir(s.dir, stage, s.Stages[stage].Name) }

func stageDir(session string, stage int, name string) string {
	return filepath.Join(session, "stages", fmt.Sprintf("%02d-%s", stage+1, name))
}

// stageDirs returns the directories of all stages in a session's directory. Each stage in a parallel block has a session below.
func (d *Definition) stageDirs(session string) map[string]string {
	dirs := map[string]string{}
	for i, s := range d.Stages {
		dirs[s.Name] = stageDir(session, i, s.Name)
		for _, part := range s.Parallel {
			dirs[part.Name] = stageDir(filepath.Join(dirs[s.Name], part.Name), 0, part.Name)
		}
	}
	return dirs
}

// progress returns the path of a stage's progress file.
func (s *session) progress(stage int) string { return filepath.Join(s.stageDir(stage), "progress.md") }

// iterationDir returns an iteration's directory. A stage that has begun again has other directories, because a program in an
// earlier iteration may still run and write.
func (s *session) iterationDir(stage, iteration, restarts int) string {
	all := iterationsDir
	if restarts > 0 {
		all += fmt.Sprintf("-%d", restarts+1)
	}
	return filepath.Join(s.stageDir(stage), all, fmt.Sprintf("%04d", iteration))
}

// The names of files.
const (
	iterationsDir = "iterations" // in a stage's directory

	contextFile  = "context.json"
	decisionFile = "status.json"
	outputFile   = "output.txt"
	treeFile     = "tree.json"
	statusFile   = "status.json" // in the session's directory
	eventsFile   = "events.jsonl"
)

// file returns the path of a file in the current iteration's directory.
func (s *session) file(at position, name string) string {
	return filepath.Join(s.iterationDir(at.Stage, at.Iteration, at.Restarts), name)
}
