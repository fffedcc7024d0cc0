package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/internal/strictjson"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/telemetry"
)

// KindHooks is the kind of the runner that has a run while its on_run_start hooks decide, and of the runs that call the hooks
// after a run has ended.
const KindHooks durable.Kind = "run_hooks"

// ErrBusy is returned for a replay of stored runs while another one is running in this process: each uses all cores.
var ErrBusy = errors.New("another replay is running: wait until it has ended, or stop it")

// Options configures a Coordinator.
type Options struct {
	// Store holds the blueprints and the runs. Required.
	Store durable.Store
	// Host performs the actions of hooks. Its Agents are not used: hooks start runs of blueprints.
	Host action.Host
	// Env names the environment variables of this process that hooks and pipelines of blueprints may use, in env, environment and
	// inherit. Patterns such as "DEPLOY_*" are possible. Empty means none, because who stores blueprints need not know the secrets of
	// the process.
	Env []string
	// Pipelines are the options of pipelines.
	Pipelines PipelineOptions
	// Observe, unless nil, receives the events of hooks around runs, each once, when it is stored. It must be safe for concurrent use. Spans,
	// metrics and log events of these hooks go to OpenTelemetry's global providers without it.
	Observe func(wire.HookEvent)
	// AllRuns lets Run also read runs that were not submitted through a coordinator, for example by "grapnel run --durable".
	AllRuns bool
	// Registry, unless nil, has the parts that the agents of blueprints may name: unknown names are refused when a blueprint is
	// stored. Nil leaves that to the runners.
	Registry *registry.Registry
}

// Coordinator holds blueprints, submits their runs, and calls the hooks around them. It is safe for concurrent use, by several
// processes on one store as well.
type Coordinator struct {
	store         durable.Store // nil in a Remote
	blueprints    Blueprints
	host          action.Host
	folder        *pipelineFolder // nil for none
	pipelineHooks string
	registry      *registry.Registry // nil for none
	allRuns       bool
	commits       lastCommits
	versions      versions
	hooksOf       hooksOf
	telemetry     *telemetry.Telemetry // of the hooks around runs
	observe       func(wire.HookEvent)
}

// New returns a coordinator.
func New(o Options) (*Coordinator, error) {
	if o.Store == nil {
		return nil, errors.New("a coordinator needs a store: set Options.Store")
	}
	o.Host.CheckVariable = CheckVariable(o.Env)
	c := &Coordinator{
		store: o.Store, blueprints: o.Store, host: o.Host, pipelineHooks: o.Pipelines.Hooks, registry: o.Registry, allRuns: o.AllRuns,
		telemetry: telemetry.New(telemetry.Config{}), observe: o.Observe,
	}
	if o.Pipelines.Dir != "" {
		var err error
		if c.folder, err = openPipelineFolder(o.Pipelines.Dir); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Blueprints is the part of a store that reads blueprints.
type Blueprints interface {
	// Document returns a version of a document: see durable.Documents.
	Document(ctx context.Context, kind, name string, version int64) (durable.Document, error)
}

// Remote makes the runners of a worker for the coordinator of another process.
type Remote struct{ c *Coordinator }

// NewRemote returns a Remote that reads blueprints from the store of a client. Host checks the hooks of agents.
func NewRemote(b Blueprints, host action.Host) *Remote {
	host.CheckVariable = CheckVariable(nil)
	return &Remote{&Coordinator{blueprints: b, host: host}}
}

// Labels returns the labels of a worker: see Coordinator.Labels.
func (r *Remote) Labels(o RunnerOptions, labels map[string]string) map[string]string {
	return r.c.Labels(o, labels)
}

// Runners returns the runners of a worker: see Coordinator.Runners. The keeper has the store of a client.
func (r *Remote) Runners(k *durable.Keeper, o RunnerOptions) map[durable.Kind]durable.Runner {
	return r.c.Runners(k, o)
}

// Store returns Options.Store.
func (c *Coordinator) Store() durable.Store { return c.store }

// CheckVariable returns a func for action.Host that allows the environment variables with some names or patterns of names.
func CheckVariable(allowed []string) func(name string) error {
	return func(name string) error {
		if slices.Contains(allowed, name) || !strings.ContainsAny(name, `*?[\`) && slices.ContainsFunc(allowed, func(pattern string) bool {
			ok, _ := path.Match(pattern, name)
			return ok
		}) {
			return nil
		}
		return fmt.Errorf("blueprints may not use this environment variable: start the process with --env %s", name)
	}
}

// CreateBlueprint stores a new blueprint, given as JSON. It returns an *InvalidError that lists everything that is wrong, and
// a *ChangedError when there is one of the name.
func (c *Coordinator) CreateBlueprint(ctx context.Context, text []byte, by string) (wire.Stored, error) {
	b, err := ParseBlueprint(text)
	if err := c.check(ctx, b, err); err != nil {
		return wire.Stored{}, err
	}
	stored, err := c.put(ctx, b, 0, by)
	if errors.Is(err, durable.ErrConflict) {
		if now, failed := c.Blueprint(ctx, b.Name, 0); failed == nil {
			err = &ChangedError{Name: b.Name, Now: savedVersion(now)}
		}
	}
	return stored, err
}

// CheckBlueprint returns the blueprint in a text and the errors of CreateBlueprint, and stores nothing. The names in assumed count as
// existing blueprints. The text may be the next version of one.
func (c *Coordinator) CheckBlueprint(ctx context.Context, text []byte, assumed ...string) (wire.Blueprint, error) {
	b, err := ParseBlueprint(text)
	err = c.check(ctx, b, err, assumed...)
	if err != nil || slices.Contains(assumed, b.Name) {
		return *b, err
	}
	switch now, err := c.Blueprint(ctx, b.Name, 0); {
	case err == nil:
		return *b, &ChangedError{Name: b.Name, Now: savedVersion(now)}
	case errors.Is(err, durable.ErrNotFound):
		return *b, nil
	default:
		return *b, err
	}
}

// check returns an *InvalidError that lists everything that is wrong with a blueprint, with the mistakes that were found before. The names
// in assumed count as existing blueprints.
func (c *Coordinator) check(ctx context.Context, b *wire.Blueprint, found error, assumed ...string) error {
	var all mistakes
	for _, err := range []error{found, c.checkPipeline(b, found), c.checkAgent(b), c.checkHooks(ctx, b, assumed)} {
		invalid, ok := errors.AsType[*InvalidError](err)
		if err != nil && !ok {
			return err
		}
		if ok {
			all = append(all, invalid.Fields...)
		}
	}
	return all.err()
}

// checkPipeline returns an *InvalidError with the mistakes in the files of a pipeline, unless their names were found wrong before.
func (c *Coordinator) checkPipeline(b *wire.Blueprint, found error) error {
	if b.Type != wire.Pipeline || b.Pipeline == nil || len(b.Pipeline.Files) == 0 {
		return nil
	}
	if wrong, ok := errors.AsType[*InvalidError](found); ok &&
		slices.ContainsFunc(wrong.Fields, func(f FieldError) bool { return strings.HasPrefix(f.Field, "pipeline.") }) {
		return nil
	}
	_, err := c.loadPipeline(b)
	return err
}

// put stores a blueprint as the version after another one.
func (c *Coordinator) put(ctx context.Context, b *wire.Blueprint, after int64, by string) (wire.Stored, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return wire.Stored{}, err
	}
	d, err := c.store.PutDocument(ctx, durable.Document{Kind: wire.KindBlueprint, Name: b.Name, Version: after, By: by, Data: text})
	if err != nil {
		return wire.Stored{}, fmt.Errorf("storing blueprint %q: %w", b.Name, err)
	}
	return wire.Stored{Blueprint: *b, Version: d.Version, Updated: d.At, By: d.By}, nil
}

// checkAgent returns an *InvalidError with the names in the definition of an agent that the registry does not know, or knows in another form.
func (c *Coordinator) checkAgent(b *wire.Blueprint) error {
	if c.registry == nil || empty(b.Agent) {
		return nil
	}
	if _, err := c.registry.Parse(b.Name+".json", b.Agent); err != nil {
		return &InvalidError{fileMistakes("agent", "agent", b.Agent, err)}
	}
	return nil
}

// Blueprint returns a version of a blueprint; zero means the newest. It returns durable.ErrNotFound for an unknown one.
func (c *Coordinator) Blueprint(ctx context.Context, name string, version int64) (wire.Stored, error) {
	d, err := c.versions.read(version, name, func() (durable.Document, error) { return c.blueprints.Document(ctx, wire.KindBlueprint, name, version) })
	if err != nil {
		return wire.Stored{}, fmt.Errorf("reading blueprint %q: %w", name, err)
	}
	return readStored(d)
}

// versions remembers versions of blueprints, which never change. Its zero value is ready for use.
type versions struct {
	mu  sync.Mutex
	all map[string]durable.Document
}

// maxVersions is the number of versions that are remembered.
const maxVersions = 100

// read returns a version of a blueprint. Zero, the newest one, is always read.
func (v *versions) read(version int64, name string, read func() (durable.Document, error)) (durable.Document, error) {
	if version == 0 {
		return read()
	}
	id := fmt.Sprintf("%d %s", version, name)
	v.mu.Lock()
	d, known := v.all[id]
	v.mu.Unlock()
	if known {
		return d, nil
	}
	d, err := read()
	if err != nil {
		return d, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil || len(v.all) >= maxVersions {
		v.all = map[string]durable.Document{}
	}
	v.all[id] = d
	return d, nil
}

func readStored(d durable.Document) (wire.Stored, error) {
	s := wire.Stored{Version: d.Version, Updated: d.At, By: d.By}
	// A member that is unknown here, such as one of a newer version, may be about hooks: without it, a run would not be guarded.
	if err := strictjson.UnmarshalStrict(d.Data, &s.Blueprint); err != nil {
		return wire.Stored{}, fmt.Errorf("reading version %d of blueprint %q from the store: %w", d.Version, d.Name, err)
	}
	return s, nil
}

// ListBlueprints returns the newest versions of at most limit blueprints, in the order of their names, those after a name.
func (c *Coordinator) ListBlueprints(ctx context.Context, after string, limit int) (all []wire.Stored, err error) {
	docs, err := c.store.ListDocuments(ctx, wire.KindBlueprint, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing blueprints: %w", err)
	}
	for _, d := range docs {
		s, err := readStored(d)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// DeleteBlueprint deletes a blueprint. Runs that were submitted keep it. It returns an *InvalidError while hooks of other blueprints
// start it, durable.ErrNotFound for an unknown one, and a *ChangedError unless its newest version is after, or after is zero.
func (c *Coordinator) DeleteBlueprint(ctx context.Context, name string, after int64) error {
	var users []string
	for after := ""; ; {
		page, err := c.ListBlueprints(ctx, after, durable.DefaultLimit)
		if err != nil {
			return err
		}
		for _, s := range page {
			agents, err := c.hookAgents(&s.Blueprint)
			if err != nil {
				return err
			}
			if s.Name != name && slices.ContainsFunc(agents, func(a hookAgent) bool { return a.name == name }) {
				users = append(users, s.Name)
			}
		}
		if len(page) < durable.DefaultLimit {
			break
		}
		after = page[len(page)-1].Name
	}
	if len(users) > 0 {
		return &InvalidError{[]FieldError{{"name", fmt.Sprintf("hooks of %q start %q: change them first", users, name)}}}
	}
	err := c.store.DeleteDocument(ctx, wire.KindBlueprint, name, after)
	if errors.Is(err, durable.ErrConflict) {
		now, err := c.Blueprint(ctx, name, 0)
		return cmp.Or(err, error(&ChangedError{name, after, savedVersion(now)}))
	}
	if err != nil {
		return fmt.Errorf("deleting blueprint %q: %w", name, err)
	}
	return nil
}

// sessionPrefix begins the IDs of sessions, hookSessionPrefix those of sessions that a hook has started.
const (
	sessionPrefix     = "ses_"
	hookSessionPrefix = "hook_"
)

// maxSeconds is the longest time of a request: ten years.
const maxSeconds = 10 * 365 * 24 * 60 * 60

// ErrKeyUsed is returned for a request with the idempotency key of another request.
var ErrKeyUsed = errors.New("the idempotency key was used for another request: use a new one")

// Submit submits a run of a blueprint. The result is the same whether the blueprint has hooks or not. It returns an *InvalidError that
// lists everything that is wrong with the request.
func (c *Coordinator) Submit(ctx context.Context, r wire.RunRequest, by string) (durable.Run, error) {
	if len(r.Parameters) == 0 {
		r.Parameters = json.RawMessage("{}")
	}
	var m mistakes
	if r.AgentName == "" {
		m.add("agent_name", "missing: name a blueprint")
	}
	if len(r.IdempotencyKey) > maxKey {
		m.add("idempotency_key", "it has more than %d bytes", maxKey)
	}
	m.addReserved("labels", r.Labels)
	m.addReserved("demands", r.Demands)
	m.addTexts("labels", r.Labels)
	m.addTexts("demands", r.Demands)
	m.addTexts("request", map[string]string{"agent_name": r.AgentName, "idempotency_key": r.IdempotencyKey})
	if r.StartWithinSeconds < 0 || r.StartWithinSeconds > maxSeconds {
		m.add("start_within_seconds", "%d: expected a number from 0 to %d", r.StartWithinSeconds, maxSeconds)
	}
	if r.TimeoutSeconds < 0 || r.TimeoutSeconds > maxSeconds {
		m.add("timeout_seconds", "%d: expected a number from 0 to %d", r.TimeoutSeconds, maxSeconds)
	}
	if err := c.checkSession(ctx, &m, r); err != nil {
		return durable.Run{}, err
	}
	if err := m.err(); err != nil {
		return durable.Run{}, err
	}
	b, err := c.Blueprint(ctx, r.AgentName, 0)
	if errors.Is(err, durable.ErrNotFound) {
		err = &InvalidError{[]FieldError{{"agent_name", fmt.Sprintf("no blueprint %q: create it first", r.AgentName)}}}
	}
	if err == nil {
		err = checkParameters(&b.Blueprint, r.Parameters)
	}
	if err != nil {
		return durable.Run{}, err
	}
	if b.Type == wire.Pipeline && len(r.Demands) > 0 {
		m.add("demands", "%q is a pipeline, which the coordinator executes: remove them", b.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Demands)) {
		if own, ok := b.Demands[name]; ok && own != r.Demands[name] {
			m.add("demands."+name, "the blueprint demands %q: remove it", own)
		}
	}
	if err := m.err(); err != nil {
		return durable.Run{}, err
	}
	jobs, err := c.jobsOf(ctx, &b, r.Parameters, durable.Job{
		Session: newSessionID(sessionPrefix), Labels: r.Labels, Priority: r.Priority, By: by, Demands: r.Demands,
		IdempotencyKey: r.IdempotencyKey, Deadline: deadlineIn(r.TimeoutSeconds),
		Traits: durable.Traits{
			Turn: durable.TurnFirst, ParentSession: r.ParentSessionID, CallsBack: r.ExecutionMode == wire.AsyncCallback,
		},
	}, true)
	if err != nil {
		return durable.Run{}, err
	}
	jobs[0].StartBy = deadlineIn(r.StartWithinSeconds)
	for _, j := range jobs {
		if _, err := j.Prepare(); err != nil {
			return durable.Run{}, &InvalidError{[]FieldError{{"body", err.Error()}}}
		}
	}
	runs, err := c.submitJobs(ctx, jobs)
	if err != nil {
		return durable.Run{}, fmt.Errorf("submitting a run of %q: %w", b.Name, err)
	}
	if runs[0].ID != jobs[0].ID {
		return runs[0], c.checkSame(ctx, runs[0], r)
	}
	return runs[0], nil
}

// deadlineIn returns the time in some seconds; zero for none.
func deadlineIn(seconds int) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(seconds) * time.Second)
}

// submitJobs submits a run with those that follow it. If the idempotency key of the first is known, nothing need follow it.
func (c *Coordinator) submitJobs(ctx context.Context, jobs []durable.Job) ([]durable.Run, error) {
	runs, err := c.store.Submit(ctx, jobs...)
	if errors.Is(err, durable.ErrNotFound) && len(jobs) > 1 { // what follows was not known when the first run with the key was submitted
		runs, err = c.store.Submit(ctx, jobs[0])
	}
	return runs, err
}

// checkSame returns ErrKeyUsed unless a run is that of an equal request.
func (c *Coordinator) checkSame(ctx context.Context, first durable.Run, r wire.RunRequest) error {
	if !isOurs(first) {
		return ErrKeyUsed
	}
	input, err := c.store.SubmittedInput(ctx, first.ID)
	if err != nil {
		return err
	}
	params, err := parametersOf(first.Kind, input)
	if err != nil {
		return err
	}
	one, err := strictjson.Canonical(string(params))
	if err != nil {
		return err
	}
	other, err := strictjson.Canonical(string(r.Parameters))
	if err != nil {
		return err
	}
	if first.Name != r.AgentName || one != other {
		return ErrKeyUsed
	}
	return nil
}

// jobsOf returns the jobs for a run of a blueprint: the run, if hooks are called when it has ended, the run that calls
// them, and if its parent session is told how it has ended, the run that does so. The given job
// has what does not depend on the blueprint. Without start, no on_run_start hook is called.
func (c *Coordinator) jobsOf(
	ctx context.Context, b *wire.Stored, params json.RawMessage, j durable.Job, start bool,
) ([]durable.Job, error) {
	points, err := c.points(&b.Blueprint)
	if err != nil {
		return nil, err
	}
	j.ID = cmp.Or(j.ID, agent.NewRunID())
	j.Traits.HasHooks, j.Traits.HoldsResult, j.Traits.Trace = len(points) > 0, points.result(), traceOf(ctx)
	demands, labels := demandsOf(&b.Blueprint), map[string]string{}
	maps.Copy(labels, j.Labels)
	if b.Type == wire.Pipeline {
		own, err := c.pipelineJob(&b.Blueprint, j.ID, params)
		if err != nil {
			return nil, err
		}
		j.Input, j.Summary, demands = own.Input, own.Summary, map[string]string{labelPipelines: c.folder.id}
		maps.Copy(labels, own.Labels) // which no label of the request replaces
	} else if j.Input, err = inputOf(kindOf(&b.Blueprint), b.Name, params); err != nil {
		return nil, err
	}
	maps.Copy(demands, j.Demands)
	j.Kind, j.Name, j.Version, j.Demands, j.Labels = kindOf(&b.Blueprint), b.Name, versionText(b.Version), demands, labels
	if start && points.before() {
		j.Phase = KindHooks
	}
	jobs := []durable.Job{j}
	if points.after() {
		jobs = append(jobs, jobAfter(j, KindHooks, "finish", j.Session))
	}
	if j.Traits.CallsBack {
		jobs = append(jobs, jobAfter(j, KindCallback, "callback", j.Traits.ParentSession))
	}
	return jobs, nil
}

// jobAfter returns a job of the coordinator that starts when another one has ended. What is the name of its idempotency key.
func jobAfter(j durable.Job, kind durable.Kind, what string, session agent.SessionID) durable.Job {
	after := durable.Job{
		ID: agent.NewRunID(), Kind: kind, Name: j.Name, Version: j.Version, Session: session, Parent: j.ID, Root: cmp.Or(j.Root, j.ID),
		Priority: j.Priority, By: j.By, After: j.ID, Traits: durable.Traits{Trace: j.Traits.Trace},
	}
	if j.IdempotencyKey != "" {
		after.IdempotencyKey = hashKey(what, j.IdempotencyKey)
	}
	return after
}
