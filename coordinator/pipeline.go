package coordinator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/invisible"
	"github.com/grapnel-go/grapnel/internal/rooted"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/pipeline"
)

// PipelineOptions configures the pipelines of a coordinator.
type PipelineOptions struct {
	// Dir is the folder for the files of runs, which is made. Pipelines are executed only by processes with this folder: it may be
	// on a disk that several machines share, at the same path on each. Empty means that this coordinator runs no pipelines.
	Dir string
	// Hooks is the file with the hooks that all pipelines have: see docs/pipelines.md. It need not exist. Empty means none.
	Hooks string
}

// The names of files in PipelineOptions.Dir, and in the folder of a run below it.
const (
	folderIDFile    = "id"
	sessionFolder   = "session"
	workspaceFolder = "workspace"
)

// pipelineFolder is an opened PipelineOptions.Dir.
type pipelineFolder struct {
	dir string
	id  string // random; in a file of the folder
}

// openPipelineFolder opens a folder and gives it an identity.
func openPipelineFolder(dir string) (*pipelineFolder, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	file := filepath.Join(dir, folderIDFile)
	if err == nil {
		err = makeFolderID(dir, file)
	}
	var id []byte
	if err == nil {
		id, err = rooted.Base(dir).ReadFile(file, 1<<10)
	}
	if err != nil {
		return nil, fmt.Errorf("the folder for pipelines: %w", err)
	}
	f := &pipelineFolder{dir, strings.TrimSpace(string(id))}
	if f.id == "" {
		return nil, fmt.Errorf("the folder for pipelines: %s is empty: remove it if no run of a pipeline waits, or restore it", file)
	}
	return f, nil
}

// makeFolderID writes the file with the identity, unless another process has: the link appears with its whole content.
func makeFolderID(dir, file string) error {
	temporary, err := os.CreateTemp(dir, ".id-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.WriteString(strings.ToLower(rand.Text()) + "\n")
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// of returns the folder of a run.
func (f *pipelineFolder) of(id agent.RunID) string { return filepath.Join(f.dir, string(id)) }

// makeWorkspace makes the workspace of a run with copies of files, unless there is one: in one step, so that none is half made.
func (f *pipelineFolder) makeWorkspace(id agent.RunID, files map[string]string) error {
	to := filepath.Join(f.of(id), workspaceFolder)
	base := rooted.Base(f.dir)
	if info, err := base.Lstat(to); err == nil && info.IsDir() { // in place of a link, the workspace is not made
		return nil
	}
	temporary := filepath.Join(f.of(id), ".workspace-"+rand.Text())
	if err := base.MkdirAll(temporary); err != nil {
		return err
	}
	defer func() { _ = base.RemoveAll(temporary) }() // it is renamed, if it is whole
	for name, text := range files {
		if err := base.WriteScript(filepath.Join(temporary, filepath.FromSlash(name)), []byte(text)); err != nil {
			return err
		}
	}
	return base.Rename(temporary, to)
}

// pipelineHost returns what performs the actions of hooks of pipelines.
func (c *Coordinator) pipelineHost() action.Host {
	host := c.host
	if host.Parks && host.Approver == nil {
		host.Approver = agent.ParkApprover // the questions wait in the store
	}
	return host
}

// loadPipeline loads the pipeline of a blueprint. The error is an *InvalidError.
func (c *Coordinator) loadPipeline(b *wire.Blueprint) (*pipeline.Pipeline, error) {
	p, err := pipeline.Load(cmp.Or(b.Pipeline.File, "pipeline.yaml"), pipeline.LoadOptions{
		Files: b.Pipeline.Files, Global: c.pipelineHooks, NeedFiles: true, Host: c.pipelineHost(),
	})
	if err == nil {
		return p, nil
	}
	var m mistakes
	problems, more := yamlfile.Problems(err)
	for _, p := range problems {
		m.add("pipeline.files."+p.File, "%d:%d: %s", p.Line, p.Column, p.Text)
	}
	for _, one := range more {
		m.add("pipeline", "%v", one)
	}
	if len(m) == 0 { // it says nothing, and is an error all the same
		m.add("pipeline", "%v", err)
	}
	return nil, m.err()
}

// The longest path of a file of a pipeline, and the longest part of it, in bytes: file systems accept them.
const (
	maxFileName = 1024
	maxNamePart = 200
)

// checkPipelineFiles adds what is wrong with the members. Whether its files are correct is checked when the blueprint is stored.
func checkPipelineFiles(p *wire.PipelineFiles, m *mistakes) {
	if p == nil || len(p.Files) == 0 {
		m.add("pipeline.files", `missing: add the texts of the files by their paths, such as {"pipeline.yaml": "…"}`)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		if len(name) > maxFileName || slices.ContainsFunc(strings.Split(name, "/"), func(one string) bool { return len(one) > maxNamePart }) {
			m.add("pipeline.files", "%.40q…: expected a path of at most %d bytes, and %d between slashes", name, maxFileName, maxNamePart)
			continue
		}
		for above := path.Dir(name); above != "." && above != "/"; above = path.Dir(above) {
			if lo.HasKey(p.Files, above) {
				m.add("pipeline.files", "%q is in %q, which is a file: rename one of them", name, above)
			}
		}
		if !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) || !invisible.IsStorable(name) {
			m.add("pipeline.files", "%q: expected a path relative to one folder, with slashes and without .. in it", name)
		}
	}
	if name := cmp.Or(p.File, "pipeline.yaml"); path.Clean(name) != name || !lo.HasKey(p.Files, name) {
		m.add("pipeline.file", "%q is none of the files: %s", name, strings.Join(slices.Sorted(maps.Keys(p.Files)), ", "))
	}
	if p.Workspace != "" && !filepath.IsAbs(p.Workspace) {
		m.add("pipeline.workspace", "%q: expected an absolute path", p.Workspace)
	}
}

// pipelineJob returns the job of a run of a pipeline without what all runs have.
func (c *Coordinator) pipelineJob(b *wire.Blueprint, id agent.RunID, params []byte) (durable.Job, error) {
	if c.folder == nil {
		return durable.Job{}, &InvalidError{[]FieldError{{
			"agent_name", fmt.Sprintf("%q is a pipeline, and this coordinator runs none: start it with a folder for them", b.Name),
		}}}
	}
	p, err := c.loadPipeline(b)
	if err != nil {
		return durable.Job{}, err
	}
	dir := c.folder.of(id)
	return p.Job(pipeline.SessionOptions{
		Name: string(id), Dir: filepath.Join(dir, sessionFolder), Workspace: cmp.Or(b.Pipeline.Workspace, filepath.Join(dir, workspaceFolder)),
		Inputs: params,
	})
}

// isIteration reports whether a run belongs to one of a pipeline: an iteration, a part of it, or a pipeline that its hook has started.
func isIteration(r durable.Run) bool {
	return r.Demands[labelPipelines] != "" && !isOurs(r) && r.Kind != KindHooks && r.Kind != KindCallback
}

// progressOf returns what a run of a pipeline is doing. Where its files are is for its own machine.
func (c *Coordinator) progressOf(ctx context.Context, r durable.Run) (*wire.PipelineView, error) {
	t, err := pipeline.NewTracker(ctx, c.store, r)
	if err != nil {
		return nil, err
	}
	p, err := t.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	p.Dir = ""
	for i := range p.Parts {
		p.Parts[i].Dir = ""
	}
	l := p.Limits
	return &wire.PipelineView{SessionProgress: p, Limits: wire.LimitsView{Steps: l.Steps, Tokens: l.Tokens, CostUSD: l.Cost, Seconds: l.Time.Seconds()}}, nil
}

// pipelineRunner executes runs of pipelines.
type pipelineRunner struct {
	runnerBase

	sessions durable.Runner
}

// Suspend suspends the pipelines.
func (r *pipelineRunner) Suspend() { r.sessions.Suspend() }

// Execute executes a pipeline until it waits or has ended.
func (r *pipelineRunner) Execute(ctx context.Context, about durable.Run) error {
	ctx = withTrace(ctx, about)
	if !isIteration(about) {
		b, err := r.blueprintOf(ctx, about)
		if err != nil {
			return r.endCancelled(ctx, about, err)
		}
		if b.Pipeline.Workspace == "" {
			if err := r.c.folder.makeWorkspace(about.ID, b.Pipeline.Files); err != nil {
				return fmt.Errorf("run %s: making its workspace: %w", about.ID, err)
			}
		}
	}
	return r.sessions.Execute(ctx, about)
}

// stageRunner executes iterations of pipelines with one runner, and runs of blueprints with another one, which may be nil.
type stageRunner struct {
	runnerBase

	stages, blueprints durable.Runner
}

// Suspend suspends both.
func (r *stageRunner) Suspend() {
	r.stages.Suspend()
	if r.blueprints != nil {
		r.blueprints.Suspend()
	}
}

// Execute executes a run with its runner.
func (r *stageRunner) Execute(ctx context.Context, about durable.Run) error {
	switch {
	case isIteration(about):
		root, err := r.keeper.Store().Run(ctx, about.Root)
		if err != nil {
			return fmt.Errorf("run %s: the run that it belongs to: %w", about.ID, err)
		}
		return r.stages.Execute(withTrace(ctx, root), about)
	case r.blueprints == nil:
		return fmt.Errorf("run %s: this process executes no runs of agents: set RunnerOptions.Agents", about.ID)
	}
	return r.blueprints.Execute(ctx, about)
}

// addPipelines adds the runners of pipelines to others. The demand of the folder selects the runs, not the names of pipelines.
func (c *Coordinator) addPipelines(all map[durable.Kind]durable.Runner, base runnerBase) {
	stages := pipeline.Runners(c.RunnerStore(), base.keeper, pipeline.Options{
		Agents: base.options.Pipelines.Agents, Events: base.options.Pipelines.Events, Again: base.options.Pipelines.Again, Host: c.pipelineHost(),
	})
	all[durable.KindPipeline] = &pipelineRunner{base, stages[durable.KindPipeline]}
	for _, kind := range []durable.Kind{durable.KindAgent, durable.KindCommand} {
		all[kind] = &stageRunner{base, stages[kind], all[kind]}
	}
}
