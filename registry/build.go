package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

// Built is an agent that is ready to be built, with the resources that were opened for it.
type Built struct {
	// Builder contains the whole definition. Callers can add to it.
	Builder builder.AgentBuilder
	// Tools are the agent's tools, including the tools of its MCP servers, without the tools that capabilities add.
	Tools   []toolexec.Tool
	closing []func() error
}

// Agent builds the agent.
func (b *Built) Agent() mo.Result[*agent.Agent] { return b.Builder.Build() }

// Close closes the agent's resources in reverse order. Call it once, when none of the agent's runs is in progress.
func (b *Built) Close() error {
	wrong := lo.Map(slices.Collect(backward(b.closing)), func(f func() error, _ int) error { return f() })
	b.closing = nil
	return errors.Join(wrong...)
}

func backward[T any](list []T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for _, v := range slices.Backward(list) {
			if !yield(v) {
				return
			}
		}
	}
}

// Build makes the agent that a definition describes. The error joins all mistakes. After an error, everything that was
// opened is closed.
func (r Registry) Build(ctx context.Context, d Definition) (*Built, error) {
	file, err := fileOf(d)
	if err != nil {
		return nil, err
	}
	return r.BuildFile(ctx, file)
}

// BuildFile works like Build for a definition with the text that it was read from.
func (r Registry) BuildFile(ctx context.Context, file *File) (*Built, error) {
	if err := r.checkFile(file); err != nil {
		return nil, err
	}
	built := &Built{}
	m := &maker{
		Registry: r, file: file, about: &Making{Definition: file.Definition, closing: &built.closing},
		count: map[string]int{}, hookParts: map[string]hookPart{},
	}
	b, tools, err := m.buildAgent(ctx)
	if err != nil {
		return nil, errors.Join(err, built.Close())
	}
	built.Builder, built.Tools = b, tools
	return built, nil
}

// maker makes an agent and collects errors.
type maker struct {
	Registry
	file  *File
	about *Making
	count map[string]int
	wrong []error
	// hookParts maps hook names to the parts that made the hooks.
	hookParts map[string]hookPart
}

// addError adds an error about a part, with its place.
func (m *maker) addError(err error, said any, path ...any) {
	name := m.file.node(said, path...)
	if name.Kind() == yamlfile.MappingNode {
		name, _ = nameOf(name)
	}
	m.wrong = append(m.wrong, name.Place().Error(err))
}

func (m *maker) buildAgent(ctx context.Context) (builder.AgentBuilder, []toolexec.Tool, error) {
	d := m.file.Definition
	b := builder.New().WithName(d.Name).WithParallel(d.Parallel).WithInstructions(d.Instructions).WithRequest(m.file.request)
	if driver := m.driver(ctx); driver != nil {
		b = b.WithDriver(driver)
	}
	tools := m.tools(ctx)
	m.about.Tools = lo.Map(tools, func(t toolexec.Tool, _ int) string { return t.Spec().Name })
	list := m.hooks(ctx)
	policies := m.policies(ctx)
	more := m.capabilities(ctx)
	subagents := m.subagents(ctx)
	if err := errors.Join(m.wrong...); err != nil {
		return b, nil, err
	}
	b = b.With(m.First...).With(policies...)
	if d.Retry != (Retry{}) {
		b = b.With(capability.UseStepProcessor("retry", processor.Retry{Attempts: d.Retry.Attempts, Delay: d.Retry.Delay, Max: d.Retry.Max, Jitter: 0.2}))
	}
	b = b.With(capability.UseTools(tools...), capability.UseHooks(list...))
	if d.Guards != (Guards{}) {
		b = b.With(capability.UseGuards{Steps: d.Guards.Steps, Tokens: d.Guards.Tokens, Cost: d.Guards.Cost, Time: d.Guards.Time})
	}
	b = b.With(more...).With(subagents...)
	if m.idle(b) {
		b = b.With(capability.UseLater(capability.Later{
			Tools: []string{"*"}, Agents: []string{"*"}, Stages: []string{"*"}, Points: hooks.PointNames(),
		}))
	}
	return b, tools, errors.Join(m.wrong...)
}

func (m *maker) driver(ctx context.Context) agent.Driver {
	make, name, ok := m.Registry.driver(m.file.Model)
	if !ok {
		return nil // without such a capability, building the agent reports the missing model
	}
	driver, err := make(ctx, m.about.as("", "model", m.count), name)
	if err != nil {
		m.addError(err, m.file.Model, "model")
		return nil
	}
	return driver
}

// tools returns the agent's tools.
func (m *maker) tools(ctx context.Context) (tools []toolexec.Tool) {
	tools = slices.Clone(m.Given)
	for i, p := range m.file.Tools {
		made, err := part(ctx, m, m.Tools[p.Name], "tool", "tools", i, p)
		if err != nil {
			m.addError(fmt.Errorf("the tool %q: %w", p.Name, err), partValue(p), "tools", i)
		}
		tools = append(tools, made...)
	}
	for i, s := range m.file.MCP {
		made, err := m.connect(ctx, s)
		if err != nil {
			m.wrong = append(m.wrong, m.file.server(i, s).Place().Error(err))
		}
		tools = append(tools, made...)
	}
	return tools
}

func (m *maker) connect(ctx context.Context, s Server) ([]toolexec.Tool, error) {
	if m.Connect == nil {
		return nil, fmt.Errorf("the MCP server %q: this program does not support MCP servers", s.Name)
	}
	if s.known() {
		own := s
		s = m.Servers[s.Name]
		s.Name, s.Timeout = own.Name, cmp.Or(own.Timeout, s.Timeout)
		s.Only, s.Except = append(slices.Clip(s.Only), own.Only...), append(slices.Clip(s.Except), own.Except...)
	}
	return m.Connect(ctx, m.about.as("server", s.Name, m.count), s)
}

// part makes one part.
func part[T any](ctx context.Context, m *maker, k Maker[T], what, key string, i int, p Part) (made T, err error) {
	item := m.file.node(partValue(p), key, i)
	if item.Kind() == yamlfile.AbsentNode {
		_, item = encodePart("the "+what+" "+p.Name, partValue(p))
	}
	name, settings := nameOf(item)
	return k.make(ctx, m.about.as(what, p.Name, m.count), k.readSettings(what, name, settings))
}

// policies returns the capability for the definition's policies.
func (m *maker) policies(ctx context.Context) []capability.Capability {
	if len(m.file.Policies) == 0 {
		return nil
	}
	made, err := m.Policies(ctx, m.about.as("", "policies", m.count), slices.Clone(m.file.Policies))
	switch {
	case err != nil:
		m.addError(fmt.Errorf("policies: %w", err), m.file.Policies, "policies")
		return nil
	case made == nil:
		return nil
	}
	return []capability.Capability{made}
}

func (m *maker) capabilities(ctx context.Context) []capability.Capability {
	var out []capability.Capability
	for i, p := range m.file.Capabilities {
		made, err := part(ctx, m, m.Capabilities[p.Name], "capability", "capabilities", i, p)
		if err != nil {
			m.addError(fmt.Errorf("the capability %q: %w", p.Name, err), partValue(p), "capabilities", i)
			continue
		}
		out = append(out, made)
	}
	return out
}

// subagents returns the capability for the definition's sub-agents.
func (m *maker) subagents(ctx context.Context) []capability.Capability {
	var agents []capability.Subagent
	for i, name := range m.file.Agents {
		d := m.Agents[name]
		d.Name = name
		others := m.Registry
		others.Given, others.First = nil, nil
		built, err := others.Build(ctx, d)
		if err != nil {
			m.addError(fmt.Errorf("the agent %q: %w", name, err), name, "agents", i)
			continue
		}
		m.about.Closing(built.Close)
		agents = append(agents, capability.Subagent{Agent: built.Builder, Description: d.Description})
	}
	if len(agents) == 0 {
		return nil
	}
	return []capability.Capability{capability.UseSubagents{Agents: agents}}
}

// hooks returns the agent's hooks.
func (m *maker) hooks(ctx context.Context) []hooks.Hook {
	pre := m.hooksOf(ctx, "preHooks", m.file.PreHooks, beforeRun)
	list := m.hooksOf(ctx, "hooks", m.file.Hooks, nil)
	post := m.hooksOf(ctx, "postHooks", m.file.PostHooks, afterRun)
	slices.Reverse(post) // the set calls them in reverse order
	return slices.Concat(pre, list, post)
}

func (m *maker) hooksOf(ctx context.Context, key string, parts []Part, points []hooks.PointName) []hooks.Hook {
	var out []hooks.Hook
	for i, p := range parts {
		made, err := part(ctx, m, m.Hooks[p.Name], "hook", key, i, p)
		if err == nil {
			err = checkPoints(made, key, points)
		}
		if err != nil {
			m.addError(fmt.Errorf("the hook %q: %w", p.Name, err), partValue(p), key, i)
		}
		for _, h := range made {
			m.hookParts[h.Name()] = hookPart{p, key, i}
		}
		out = append(out, made...)
	}
	return out
}

// hookPart is the part that made a hook, and its place.
type hookPart struct {
	part Part
	key  string
	i    int
}

// idle reports hooks that match none of the agent's calls. Tolerated is true if some of them were accepted.
func (m *maker) idle(b builder.AgentBuilder) (tolerated bool) {
	plan, err := b.Plan().Get()
	if err != nil {
		return false // building the agent reports the error
	}
	for _, g := range plan.Gaps() {
		from, own := m.hookParts[g.Hook]
		if !own {
			continue
		}
		err := errors.New(g.Text)
		if m.Idle != nil {
			err = m.Idle(from.part.Name, err)
		}
		if err != nil {
			m.addError(fmt.Errorf("the hook %q: %w", from.part.Name, err), partValue(from.part), from.key, from.i)
			continue
		}
		tolerated = true
	}
	return tolerated
}
