package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/firing"
	"github.com/grapnel-go/grapnel/internal/runctx"
)

// spawner runs pipelines for a session's hooks, as child runs. The firing waits in the store for an awaited pipeline, as for a gate.
type spawner struct{ m *machine }

var _ action.Spawner = spawner{}

// spawning is the part of a position that the pipelines started at a firing need. A detached action needs it while the position
// changes.
type spawning struct {
	round  int
	limits agent.Limits
	over   string // names the limit that is used up; empty for none
}

type spawningKey struct{}

// Spawn starts a pipeline and returns its output, or an empty one if the rule does not await it.
func (s spawner) Spawn(ctx context.Context, start action.SpawnStart) (string, error) {
	at, ok := ctx.Value(spawningKey{}).(spawning)
	if !ok {
		return "", errors.New("pipelines are only started while a point fires")
	}
	place, awaited := runctx.PlaceOf(ctx).(*firing.Place)
	if !awaited {
		return "", s.m.submitChild(ctx, at, start)
	}
	return s.m.awaitSpawned(ctx, place, at, start)
}

// id identifies a pipeline that a hook starts, in the session's run.
func (at spawning) id(s action.SpawnStart) string {
	id := fmt.Sprintf("spawn %s %s/%d by %s, attempt %d", s.Point, s.Run.Stage, s.Run.Iteration, s.Hook, s.Attempt)
	if at.round > 0 {
		id += fmt.Sprintf(", round %d", at.round)
	}
	return id
}

// submitChild starts a detached pipeline.
func (m *machine) submitChild(ctx context.Context, at spawning, start action.SpawnStart) error {
	job, err := m.spawnJob(at, start)
	if err != nil {
		return err
	}
	if m.detachedDemands != nil {
		job.Demands = m.detachedDemands
	}
	job.Labels[LabelDetached] = "true"
	job.IdempotencyKey = string(m.about.ID) + " " + at.id(start)
	if len(job.IdempotencyKey) > maxKey {
		return fmt.Errorf("the names of stage, hook and point have more than %d bytes together", maxKey)
	}
	m.addTrace(&job)
	return m.journal.Commit(ctx, durable.Commit{Jobs: []durable.Job{job}}, nil)
}

// maxKey is the maximum length of an idempotency key.
const maxKey = 256

// awaitSpawned returns a pipeline's output, or ends the firing until the pipeline has one.
func (m *machine) awaitSpawned(ctx context.Context, place *firing.Place, at spawning, start action.SpawnStart) (string, error) {
	id := at.id(start)
	for _, w := range place.Waits {
		if w.Subject != id {
			continue
		}
		child, err := m.store.Run(ctx, w.Child)
		switch {
		case err != nil:
			return "", err
		case child.Status.Ended():
			return m.outputOf(ctx, child)
		}
		err = place.Wait(w)
		if errors.Is(err, runctx.ErrExpired) {
			err = m.store.Signal(ctx, w.Child, durable.Signal{Kind: durable.SignalCancel, Text: "its time limit has passed"})
			return "", errors.Join(fmt.Errorf("pipeline %q did not end in time", start.Pipeline), err)
		}
		return "", err
	}
	job, err := m.spawnJob(at, start)
	if err != nil {
		return "", err
	}
	job.ID = agent.NewRunID()
	w := durable.Wait{
		Run: m.about.ID, ID: string(job.ID), Kind: durable.WaitChild, Subject: id, Child: job.ID, Asked: place.Now,
	}
	if deadline, ok := ctx.Deadline(); ok {
		w.Deadline = place.Now.Add(time.Until(deadline))
	}
	place.Jobs = append(place.Jobs, job)
	return "", place.Wait(w)
}

// outputOf returns an ended pipeline's output.
func (m *machine) outputOf(ctx context.Context, child durable.Run) (string, error) {
	result, err := durable.ResultOf(ctx, m.store, child.ID)
	if err == nil && child.Status != durable.StatusCompleted {
		err = fmt.Errorf("pipeline %q ended as %s: %s", child.Name, child.Status, result.Error)
	}
	return result.Text, err
}

// spawnJob returns the job for a pipeline that a hook starts.
func (m *machine) spawnJob(at spawning, start action.SpawnStart) (durable.Job, error) {
	if at.over != "" {
		return durable.Job{}, fmt.Errorf("pipeline %q is not started: %s", start.Pipeline, at.over)
	}
	src, ok := m.source.Pipelines[start.Pipeline]
	if !ok {
		return durable.Job{}, fmt.Errorf("the session has no pipeline %q", start.Pipeline)
	}
	src.Pipelines = m.source.Pipelines
	p, err := parse(src)
	if err != nil {
		return durable.Job{}, err
	}
	name := fmt.Sprintf("%s-%d-%s", pointNames[hooks.PointName(start.Point)], start.Run.Iteration, actionName(start.Hook))
	if start.Attempt > 1 {
		name += fmt.Sprintf("-%d", start.Attempt)
	}
	if at.round > 0 {
		name += fmt.Sprintf("-round-%d", at.round)
	}
	dir := filepath.Join(m.dir, "children", start.Run.Stage, name)
	job, err := p.Job(SessionOptions{
		Name: childName(m.name, start.Run.Stage, name), Dir: dir, Workspace: m.workspace, Demands: m.about.Demands,
		DetachedDemands: m.detachedDemands, Limits: at.limits, By: m.about.By, Inputs: start.Inputs, depth: start.Depth, root: m.root,
	})
	job.Parent, job.Root, job.Priority = m.about.ID, m.about.Root, m.about.Priority
	return job, err
}

// childName returns a name for a child's session that no other child has. A long name ends with its hash.
func childName(parent, stage, own string) string {
	name := parent + "." + stage + "." + own
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		end := "-" + hex.EncodeToString(sum[:8])
		name = strings.TrimRight(name[:maxName-len(end)], ".-_") + end
	}
	return name
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// actionName returns a hook's name as part of a file name: its ID, after its layer's name unless the layer is the pipeline. If the
// ID has other characters, a hash is added, so that no two hooks have the same name.
func actionName(hook string) string {
	layer, _, _ := strings.Cut(hook, ".")
	id := hook[strings.LastIndex(hook, "/")+1:]
	name := strings.Trim(unsafeName.ReplaceAllString(id, "-"), ".-_")
	if name != id {
		sum := sha256.Sum256([]byte(id))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	if layer != "pipeline" {
		name = unsafeName.ReplaceAllString(layer, "-") + "-" + name
	}
	return name
}

// pointNames are the names of points in pipeline files.
var pointNames = map[hooks.PointName]string{
	hooks.SessionStart: "on_session_start", hooks.IterationStart: "on_iteration_start", hooks.IterationComplete: "on_iteration_complete",
	hooks.IterationFailed: "on_error", hooks.StageComplete: "on_stage_complete", hooks.SessionComplete: "on_session_complete",
}

// cancelChildren cancels the iteration, and the pipelines that hooks have started.
func (m *machine) cancelChildren(ctx context.Context, reason string) error {
	var wrong []error
	for f := (durable.Filter{Parent: m.about.ID, Status: live, Limit: 1000}); ; {
		children, err := m.store.List(ctx, f)
		if err != nil {
			return errors.Join(append(wrong, err)...)
		}
		for _, child := range children {
			if child.Labels[LabelPipeline] == "" { // a run that calls hooks when the session has ended
				continue
			}
			text := strings.TrimSpace("the pipeline was cancelled: " + reason)
			wrong = append(wrong, m.store.Signal(ctx, child.ID, durable.Signal{Kind: durable.SignalCancel, Text: text}))
		}
		if len(children) < f.Limit {
			return errors.Join(wrong...)
		}
		f.Before = children[len(children)-1].ID
	}
}

// live are the statuses of runs that have not ended.
var live = []durable.Status{durable.StatusPending, durable.StatusReady, durable.StatusRunning, durable.StatusWaiting}

// resultFile is a file with an output that replaces the last iteration's output.
const (
	inputsFile = "inputs.json"
	resultFile = "output.json"
)

// maxResult is the maximum size of a session's output.
const maxResult = 1 << 20

// output returns the session's output: the content of its output file, or the last iteration's output.
func (m *machine) output() (string, error) {
	text, err := m.base.ReadFile(filepath.Join(m.dir, resultFile), maxResult)
	if errors.Is(err, fs.ErrNotExist) {
		return m.files.lastOutput(m.session, m.at), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the output of the session: %w", err)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// inputTexts returns the session's inputs as strings, by their names in prompts: inputs.NAME.
func (s *session) inputTexts() map[string]string {
	texts := map[string]string{}
	var inputs map[string]json.RawMessage
	if json.Unmarshal(s.inputs, &inputs) != nil {
		return texts
	}
	for name, value := range inputs {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		texts["inputs."+name] = text
	}
	return texts
}

// noSpawner replaces a session where hooks are only checked.
type noSpawner struct{}

// Spawn returns an error.
func (noSpawner) Spawn(context.Context, action.SpawnStart) (string, error) {
	return "", errors.New("no session starts a pipeline here")
}
