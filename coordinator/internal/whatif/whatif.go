// Package whatif tells what rules would do to stored runs: it replays them through the real hook engine.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/storedruns"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/backtest"
	"github.com/grapnel-go/grapnel/policy/policytest"
	"github.com/grapnel-go/grapnel/policy/recorded"
)

// running has room for one replay.
var running = make(chan struct{}, 1)

// defaultLimit is how many runs are replayed if the request does not say.
const defaultLimit = 10_000

// The names of the two sets of rules.
const (
	nameBefore = "before"
	nameAfter  = "policy"
)

// progressEvery is how often progress is reported.
const progressEvery = 250 * time.Millisecond

// Ask replays the runs of a request. Progress, unless nil, is told how far it is. When ctx ends, the result is about the runs so far. It returns
// a *coordinator.InvalidError for rules that cannot be loaded, durable.ErrNotFound for an unknown run, and coordinator.ErrBusy.
func Ask(ctx context.Context, c *coordinator.Coordinator, in wire.WhatIfRequest, progress func(wire.WhatIfProgress)) (wire.WhatIf, error) {
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	default:
		return wire.WhatIf{}, coordinator.ErrBusy
	}
	before, wrong := load(nameBefore, in.Before)
	after, more := load(nameAfter, in.Policy)
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return wire.WhatIf{}, &coordinator.InvalidError{Fields: wrong}
	}
	found, runs, cut, err := storedruns.Find(ctx, c.Store(), storedruns.Filter{
		Run: in.RunID, Agent: in.AgentName, Since: in.Since, Until: in.Until, Selects: c.IsReadable, Most: cmp.Or(in.Limit, defaultLimit),
	})
	if errors.Is(err, storedruns.ErrKind) {
		err = &coordinator.InvalidError{Fields: []coordinator.FieldError{{Field: "run_id", Message: err.Error()}}}
	}
	if err != nil {
		return wire.WhatIf{}, err
	}
	denials := watchDenied(found)
	told, done := time.Now(), 0
	report, err := backtest.Run(ctx, found, backtest.Options{
		Policies: []backtest.Policy{before.policy, after.policy}, Keep: -1,
		Progress: func(p backtest.Progress) {
			if done++; progress != nil && time.Since(told) >= progressEvery {
				told = time.Now()
				progress(wire.WhatIfProgress{Runs: done, Of: runs, StoppedBefore: p.Stopped[0], StoppedAfter: p.Stopped[1]})
			}
		},
	})
	if err != nil {
		return wire.WhatIf{}, err
	}
	out, err := resultOf(report)
	out.Cut = cut
	out.NotJudged = append(out.NotJudged, after.notJudged()...)
	if n := denials.countOthers(report); n > 0 {
		out.NotJudged = append(out.NotJudged, wire.NotJudged{
			Why:  "Other rules were in force when these runs were recorded, or people decided: the rules as they are deny other calls.",
			Runs: n,
		})
	}
	return out, err
}

// recordedDenials are the calls that were denied when the runs were recorded, by run.
type recordedDenials struct {
	mu  sync.Mutex
	all map[string][]string
}

// watchDenied notes the denied calls of runs when they are read.
func watchDenied(found []backtest.Recording) *recordedDenials {
	d := &recordedDenials{all: map[string][]string{}}
	for i := range found {
		read := found[i].Runs
		found[i].Runs = func(ctx context.Context) iter.Seq2[*recorded.Run, error] {
			return func(yield func(*recorded.Run, error) bool) {
				for run, err := range read(ctx) {
					if err == nil {
						d.note(run)
					}
					if !yield(run, err) {
						return
					}
				}
			}
		}
	}
	return d
}

func (d *recordedDenials) note(r *recorded.Run) {
	if calls := storedruns.DeniedCalls(r); len(calls) > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all[r.ID] = calls
	}
}

// countOthers returns in how many runs other calls were denied than the rules as they are deny or ask about.
func (d *recordedDenials) countOthers(report *backtest.Report) (n int) {
	denied := map[string][]string{}
	for _, c := range report.Cases {
		for _, one := range c.Verdicts[0].Decisions {
			if one.Effect == backtest.Denied && !one.Shadow {
				denied[c.ID] = append(denied[c.ID], one.ID)
			}
		}
	}
	for id := range lo.Assign(denied, d.all) {
		if !lo.ElementsMatch(lo.Uniq(denied[id]), lo.Uniq(d.all[id])) {
			n++
		}
	}
	return n
}

// rules are loaded rules.
type rules struct {
	policy backtest.Policy
	// around are the rules that are asked around the run, and so not in a replay.
	around []string
}

// load loads rules, whose actions are not executed.
func load(name, text string) (rules, []coordinator.FieldError) {
	if strings.TrimSpace(text) == "" {
		if name == nameBefore {
			return rules{policy: backtest.Always(name)}, nil
		}
		return rules{}, []coordinator.FieldError{{Field: name, Message: "missing: add the rules to try"}}
	}
	file := name + ".yaml"
	layer := policy.Layer{Name: "run", Files: []string{file}, Kind: kindOf(text)}
	if one := strings.TrimSpace(text); strings.HasPrefix(one, "library:") && len(strings.Fields(one)) == 1 {
		layer.Files = []string{one}
	}
	layer.Read = func(path string) ([]byte, error) {
		if path != file {
			return nil, fmt.Errorf("%s: only the text of the rules is read here, no other file", path)
		}
		return []byte(text), nil
	}
	p, err := policy.Load([]policy.Layer{layer}, policy.Options{Wrap: policytest.NoActions, Host: policytest.IdleHost(), Read: layer.Read})
	var list []hooks.Hook
	if err == nil {
		list, err = p.Hooks()
	}
	if err != nil {
		return rules{}, loadMistakes(name, err)
	}
	out := rules{}
	isPlayed := func(h hooks.Hook, _ int) bool {
		return layer.Kind != policy.Blueprints || slices.Contains(h.Points(), hooks.PreToolUse)
	}
	out.around = lo.Map(lo.Reject(list, isPlayed), func(h hooks.Hook, _ int) string { return h.Name() })
	list = lo.Filter(list, isPlayed)
	out.policy = backtest.Always(name, list...)
	acts := map[string]bool{}
	for _, r := range p.Rules() {
		acts[r.Hook()] = r.Action != ""
	}
	out.policy.Undone = lo.FilterMap(list, func(h hooks.Hook, _ int) (string, bool) { return h.Name(), acts[h.Name()] })
	return out, nil
}

// kindOf returns the kind of a text with rules: a blueprint has a type.
func kindOf(text string) policy.Kind {
	f := yamlfile.Parse("rules.yaml", []byte(text))
	root, ok := f.Root()
	if ok && root.Find("type").Kind() == yamlfile.TextNode && root.Find("name").Kind() == yamlfile.TextNode {
		return policy.Blueprints
	}
	return policy.Policies
}

// loadMistakes returns what is wrong with rules.
func loadMistakes(field string, err error) (all []coordinator.FieldError) {
	problems, more := yamlfile.Problems(err)
	for _, p := range problems {
		all = append(all, coordinator.FieldError{Field: field, Message: fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Text)})
	}
	for _, one := range more {
		all = append(all, coordinator.FieldError{Field: field, Message: one.Error()})
	}
	if len(all) == 0 {
		all = []coordinator.FieldError{{Field: field, Message: err.Error()}}
	}
	return all
}

// notJudged says which rules a replay cannot judge.
func (r rules) notJudged() (all []wire.NotJudged) {
	if len(r.policy.Undone) > 0 {
		all = append(all, wire.NotJudged{Why: "Actions are not executed: rules with an action have no opinion.", Rules: r.policy.Undone})
	}
	if len(r.around) > 0 {
		all = append(all, wire.NotJudged{Why: "Hooks around a run are not asked when it is replayed.", Rules: r.around})
	}
	return all
}

// resultOf compares the two sets of rules.
func resultOf(report *backtest.Report) (wire.WhatIf, error) {
	diff, err := report.Diff()
	if err != nil {
		return wire.WhatIf{}, err
	}
	before, after := report.Policies[0].Total, report.Policies[1].Total
	out := wire.WhatIf{
		Runs: report.Runs, Calls: after.Calls, Interrupted: report.Interrupted, Good: after.Broken.Of,
		Before: countsOf(before), After: countsOf(after), Groups: []wire.WhatIfGroup{}, NotJudged: []wire.NotJudged{}, Seconds: report.Seconds,
	}
	for _, g := range diff.Groups {
		if g.Tool != "" {
			switch {
			case g.To == backtest.Denied || g.To == backtest.Stopped || g.To == backtest.NotReached:
				out.NewlyDenied += g.Calls
			case g.To == backtest.Asked:
				out.NewlyAsked += g.Calls
			case g.From == backtest.Denied || g.From == backtest.Asked || g.From == backtest.Stopped || g.From == backtest.NotReached:
				out.NewlyAllowed += g.Calls
			default:
				out.Changed += g.Calls
			}
		}
		out.Groups = append(out.Groups, wire.WhatIfGroup{
			From: string(g.From), To: string(g.To), Tool: g.Tool, Rule: g.Rule, Calls: g.Calls, Runs: g.Runs, Worked: g.Worked,
			RunID: agent.RunID(g.Example.Run), CallID: g.Example.ID, Arguments: g.Example.Arguments, Reason: g.Example.Reason,
		})
	}
	for _, c := range report.Cases {
		was, is := c.Verdicts[0].Score.Broken.Count, c.Verdicts[1].Score.Broken.Count
		out.Broken += max(0, is-was)
		out.Mended += max(0, was-is)
	}
	for _, lack := range report.Lacks {
		out.NotJudged = append(out.NotJudged, wire.NotJudged{Why: "Stored runs do not have " + lack.What + ": rules cannot see them.", Runs: lack.Runs})
	}
	if report.Failed > 0 {
		out.NotJudged = append(out.NotJudged, wire.NotJudged{Why: "They could not be read or replayed, the first: " + report.Problems[0], Runs: report.Failed})
	}
	if out.NewlyDenied > 0 {
		out.NotJudged = append(out.NotJudged, wire.NotJudged{
			Why: "After the first denied call the recorded agent goes on as if it had run. A live one would be told, and might do something else.",
		})
	}
	return out, nil
}

func countsOf(s backtest.Score) wire.WhatIfCounts {
	return wire.WhatIfCounts{
		Denied: s.Denied, Asked: s.Asked, Rewritten: s.Rewritten, Mocked: s.Mocked, Redacted: s.Redacted, Stopped: s.Stopped,
		Failed: s.Failed, Shadow: s.Shadow,
	}
}
