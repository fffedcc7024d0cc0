package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
)

// hookTypeStart is the type of the hooks that may block a run.
const hookTypeStart = "on_run_start"

// hookTypes are the names of the points around runs in blueprints and events.
var hookTypes = map[hooks.PointName]string{
	hooks.RunStart: hookTypeStart, hooks.RunFinish: "on_run_finish", hooks.RunResult: "on_result", hooks.RunFailed: "on_error",
	hooks.RunTimeout: "on_timeout", hooks.PreToolUse: "on_tool_call",
}

// calledPoints are the points at which hooks of blueprints are called.
var calledPoints = []hooks.PointName{hooks.RunStart, hooks.RunResult, hooks.RunFinish, hooks.RunFailed, hooks.RunTimeout, hooks.PreToolUse}

// decidesRun reports whether a run waits for the hooks at a point. The hooks of a blueprint that such a hook starts are not called.
func decidesRun(point hooks.PointName) bool {
	return point == hooks.RunStart || point == hooks.RunResult
}

// pointSet are the points at which a blueprint has hooks.
type pointSet []hooks.PointName

// before reports whether a hook is called before the run.
func (p pointSet) before() bool { return slices.Contains(p, hooks.RunStart) }

// result reports whether a hook is called before the result of the run is stored.
func (p pointSet) result() bool { return slices.Contains(p, hooks.RunResult) }

// after reports whether a hook is called when the run has ended.
func (p pointSet) after() bool {
	return lo.Some(p, []hooks.PointName{hooks.RunFinish, hooks.RunFailed, hooks.RunTimeout})
}

// loadRules loads the hooks of a blueprint.
func (c *Coordinator) loadRules(b *wire.Blueprint, o policy.Options) (*policy.Policy, error) {
	text, err := textOf(b)
	if err != nil {
		return nil, err
	}
	path := b.Name + ".json"
	return policy.Load([]policy.Layer{{
		Name: "agent", Kind: policy.Blueprints, Files: []string{path}, Read: func(string) ([]byte, error) { return text, nil },
	}}, o)
}

// textOf returns the text of a blueprint, in whose lines its hooks are.
func textOf(b *wire.Blueprint) ([]byte, error) { return json.MarshalIndent(b, "", "  ") }

// points returns the points at which a blueprint has hooks.
func (c *Coordinator) points(b *wire.Blueprint) (pointSet, error) {
	if empty(b.Hooks) {
		return nil, nil
	}
	rules, err := c.loadRules(b, policy.Options{Host: c.checkingHost()})
	if err != nil {
		return nil, fmt.Errorf("the hooks of blueprint %q: %w", b.Name, err)
	}
	return lo.Uniq(lo.Map(rules.Rules(), func(r policy.Rule, _ int) hooks.PointName { return r.Point })), nil
}

// hookAgent is a blueprint that a hook starts.
type hookAgent struct {
	name  string
	point hooks.PointName
}

// hookAgents returns the blueprints that the hooks of a blueprint start.
func (c *Coordinator) hookAgents(b *wire.Blueprint) ([]hookAgent, error) {
	if empty(b.Hooks) {
		return nil, nil
	}
	rules, err := c.loadRules(b, policy.Options{Host: c.checkingHost()})
	if err != nil {
		return nil, err
	}
	list, err := rules.Hooks()
	if err != nil {
		return nil, err
	}
	var agents []hookAgent
	for _, h := range list {
		if from := h.Origin(); from != nil && from.Action == (action.Agent{}).Type() {
			agents = append(agents, hookAgent{from.Target, h.Points()[0]})
		}
	}
	return agents, nil
}

// checkingHost returns the host with which hooks are checked.
func (c *Coordinator) checkingHost() action.Host {
	host := c.host
	host.Agents = noStarter{}
	return host
}

// noStarter is in place of a starter where hooks are only checked.
type noStarter struct{}

// StartAgent returns an error.
func (noStarter) StartAgent(context.Context, action.AgentStart) (string, error) {
	return "", errors.New("no run starts an agent here")
}

// checkHooks returns an *InvalidError that lists everything that is wrong with the hooks of a blueprint: what its file format forbids,
// unknown agents, and hooks that would start each other without end. The names in assumed count as existing blueprints.
func (c *Coordinator) checkHooks(ctx context.Context, b *wire.Blueprint, assumed []string) error {
	if empty(b.Hooks) && empty(b.Definitions) {
		return nil
	}
	var failed error
	_, err := c.loadRules(b, policy.Options{Host: c.checkingHost(), Check: func(r policy.Rule, a action.Declared) error {
		wrong := []error{checkPoint(b, r.Point)}
		if a != nil {
			_, lacks := a.Action(c.checkingHost())
			if lacks != nil && len(action.Fields(lacks)) == 0 {
				lacks = &action.FieldError{Field: "type", Message: lacks.Error()}
			}
			wrong = append(wrong, lacks)
		}
		if starts, ok := a.(action.Agent); ok && starts.Name != "" {
			text, err := c.checkHookAgent(ctx, b, hookAgent{starts.Name, r.Point}, assumed)
			failed = errors.Join(failed, err)
			if text != "" {
				wrong = append(wrong, &action.FieldError{Field: "agent_name", Message: text})
			}
		}
		return errors.Join(wrong...)
	}})
	if failed != nil {
		return failed
	}
	if err != nil {
		return &InvalidError{hookMistakes(b, err)}
	}
	return nil
}

// checkPoint returns an error if a hook of the blueprint at a point would never be called, because it would guard nothing.
func checkPoint(b *wire.Blueprint, point hooks.PointName) error {
	switch {
	case !slices.Contains(calledPoints, point):
		return &action.FieldError{
			Field: cmp.Or(hookTypes[point], string(point)),
			Message: "the coordinator does not call hooks there: " +
				"expected on_run_start, on_result, on_run_finish, on_error, on_timeout or on_tool_call",
		}
	case point == hooks.PreToolUse && (b.Type == wire.Procedural || b.Type == wire.Pipeline):
		return &action.FieldError{Field: hookTypes[point], Message: fmt.Sprintf("a %s blueprint calls no tools: remove it, or set the type to %s",
			b.Type, wire.Autonomous)}
	}
	return nil
}

// checkHookAgent says what is wrong with a hook that starts an agent. The text is empty if nothing is. The names in assumed count as existing
// blueprints.
func (c *Coordinator) checkHookAgent(ctx context.Context, b *wire.Blueprint, a hookAgent, assumed []string) (string, error) {
	switch {
	case a.point == hooks.PreToolUse:
		return "a hook of type agent is only for points around a run: use another type", nil
	case a.name == b.Name:
		return "a blueprint cannot be its own hook: name another one", nil
	case slices.Contains(assumed, a.name):
		return "", nil
	}
	if _, err := c.Blueprint(ctx, a.name, 0); errors.Is(err, durable.ErrNotFound) {
		return fmt.Sprintf("no blueprint %q: create it first", a.name), nil
	} else if err != nil {
		return "", err
	}
	cycle, err := c.findCycle(ctx, b.Name, a, []string{b.Name})
	if cycle != nil {
		return "the hooks would start each other without end: " + strings.Join(cycle, " → "), nil
	}
	return "", err
}

// findCycle returns the names along which hooks lead from an agent back to a blueprint; nil if they do not.
func (c *Coordinator) findCycle(ctx context.Context, to string, a hookAgent, path []string) ([]string, error) {
	path = append(slices.Clip(path), a.name)
	if a.name == to {
		return path, nil
	}
	if slices.Contains(path[:len(path)-1], a.name) {
		return nil, nil // a cycle that does not contain the blueprint
	}
	if decidesRun(a.point) { // its own hooks are not called
		return nil, nil
	}
	b, err := c.Blueprint(ctx, a.name, 0)
	if errors.Is(err, durable.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	next, err := c.hookAgents(&b.Blueprint)
	if err != nil {
		return nil, err
	}
	for _, n := range next {
		if cycle, err := c.findCycle(ctx, to, n, path); err != nil || cycle != nil {
			return cycle, err
		}
	}
	return nil, nil
}

// hookMistakes converts the errors of the rules of a blueprint.
func hookMistakes(b *wire.Blueprint, err error) []FieldError {
	text, _ := textOf(b) // it was loaded
	return fileMistakes("", "hooks", text, err)
}

// fileMistakes converts the errors of a text, with the members that they are about. Those that are about no member are about
// another one, and all are below a member of the request.
func fileMistakes(below, other string, text []byte, err error) []FieldError {
	problems, more := yamlfile.Problems(err)
	paths := pathsIn(text, below)
	all := lo.Map(problems, func(p yamlfile.Problem, _ int) FieldError {
		return FieldError{cmp.Or(pathAt(paths, p.Line, p.Column), other), p.Text}
	})
	return append(all, lo.Map(more, func(err error, _ int) FieldError { return FieldError{other, err.Error()} })...)
}

// pathsIn returns the paths of the members of a text, in its order.
func pathsIn(text []byte, below string) []placedPath {
	root, ok := yamlfile.Parse("", text).Root()
	if !ok {
		return nil
	}
	return pathsOf(root, below, nil)
}

// pathAt returns the path of the last member that begins at or before a place.
func pathAt(paths []placedPath, line, column int) (path string) {
	for _, one := range paths {
		if one.at.Line > line || one.at.Line == line && one.at.Column > column {
			break
		}
		path = one.path
	}
	return path
}

// placedPath is the path of a member and its place in a text.
type placedPath struct {
	at   yamlfile.Position
	path string
}

// pathsOf appends the paths of a node and what is in it.
func pathsOf(n yamlfile.Node, path string, all []placedPath) []placedPath {
	all = append(all, placedPath{n.Place().Position, path})
	switch n.Kind() {
	case yamlfile.MappingNode:
		for _, e := range n.Entries() {
			below := strings.TrimPrefix(path+"."+e.Key.Raw(), ".")
			all = pathsOf(e.Value, below, append(all, placedPath{e.Key.Place().Position, below}))
		}
	case yamlfile.ListNode:
		for i, item := range n.Items() {
			all = pathsOf(item, fmt.Sprintf("%s.%d", path, i), all)
		}
	case yamlfile.AbsentNode, yamlfile.NullNode, yamlfile.TextNode, yamlfile.NumberNode, yamlfile.BoolNode:
	}
	return all
}
