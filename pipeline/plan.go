package pipeline

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// PlannedStage is what would run in a stage.
type PlannedStage struct {
	*Stage

	// Variables are those of the first iteration, as far as they are known before.
	Variables map[string]string
	// Hooks are the hooks of the stage, of the pipeline and of the user, in the order in which points fire and hooks are
	// called.
	Hooks []policy.Rule
}

// Plan returns what a session would run, without running anything. The name and the directory of the session are those of o.
func (p *Pipeline) Plan(host action.Host, o SessionOptions) ([]PlannedStage, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("planning a session: %w", err)
	}
	host.Spawner = noSpawner{}
	var all []PlannedStage
	var files policy.Files
	for i := range p.Stages {
		top := &session{Pipeline: p, name: o.Name, dir: dir}
		planned, err := top.planStage(host, i, &files)
		if err != nil {
			return nil, err
		}
		all = append(all, planned)
		for k := range p.Stages[i].Parallel {
			part := *p
			part.Stages = []Stage{p.Stages[i].Parallel[k]}
			below := &session{Pipeline: &part, name: o.Name, dir: filepath.Join(top.stageDir(i), part.Stages[0].Name), part: true}
			if i+1 < len(p.Stages) {
				below.next = p.Stages[i+1].Name
			}
			planned, err := below.planStage(host, 0, &files)
			if err != nil {
				return nil, err
			}
			all = append(all, planned)
		}
	}
	return all, nil
}

// planStage returns what would run in a stage.
func (s *session) planStage(host action.Host, stage int, files *policy.Files) (PlannedStage, error) {
	m := &machine{session: s, at: position{Phase: phaseStart, Stage: stage, Iteration: 1}}
	out := PlannedStage{Stage: &s.Stages[stage], Variables: m.variables(nil)}
	delete(out.Variables, "TIMESTAMP")
	loaded, err := s.rulesOf(out.Stage, host, files)
	if err != nil {
		return out, err
	}
	order := []hooks.PointName{
		hooks.SessionStart, hooks.IterationStart, hooks.IterationComplete, hooks.IterationFailed, hooks.StageComplete, hooks.SessionComplete,
	}
	out.Hooks = slices.DeleteFunc(loaded.Rules(), func(r policy.Rule) bool { // points of the session fire in its first and last stage
		first, last := stage == 0 && !s.part, stage == len(s.Stages)-1 && !s.part
		return r.Point == hooks.SessionStart && !first || r.Point == hooks.SessionComplete && !last ||
			len(out.Parallel) > 0 && slices.Contains(order[1:5], r.Point)
	})
	slices.SortStableFunc(out.Hooks, func(a, b policy.Rule) int {
		if d := slices.Index(order, a.Point) - slices.Index(order, b.Point); d != 0 {
			return d
		}
		return a.Order - b.Order
	})
	return out, nil
}
