package pipeline

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// PlannedStage is a stage as a session would run it.
type PlannedStage struct {
	*Stage

	// Variables are the first iteration's variables, as far as they are known before.
	Variables map[string]string
	// Hooks are the stage's, the pipeline's and the user's hooks, in the order in which points fire and hooks are called.
	Hooks []policy.Rule
}

// Plan returns the stages as a session would run them, without running anything. The session has the name and the directory in o.
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

// planStage returns a stage as the session would run it.
func (s *session) planStage(host action.Host, stage int, files *policy.Files) (PlannedStage, error) {
	m := &machine{session: s, at: position{cursor: cursor{Phase: phaseStart, Stage: stage, Iteration: 1}}}
	out := PlannedStage{Stage: &s.Stages[stage], Variables: m.variables(nil)}
	delete(out.Variables, "TIMESTAMP")
	loaded, err := s.rulesOf(out.Stage, host, files)
	if err != nil {
		return out, err
	}
	order := []hooks.PointName{
		hooks.SessionStart, hooks.IterationStart, hooks.IterationComplete, hooks.IterationFailed, hooks.StageComplete, hooks.SessionComplete,
	}
	out.Hooks = slices.DeleteFunc(loaded.Rules(), func(r policy.Rule) bool { // session points fire in the first and the last stage
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
