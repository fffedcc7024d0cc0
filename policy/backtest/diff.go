package backtest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/samber/lo"
)

// Allowed is the effect, in a Change, of a policy that runs the call unchanged.
const Allowed Effect = "allowed"

// Diff lists the differences between the decisions of two policies.
type Diff struct {
	Old string `json:"old"`
	New string `json:"new"`
	// Changes are in the order of the recordings. Groups collect similar changes, the largest group first.
	Changes []Change `json:"changes"`
	Groups  []Group  `json:"groups"`
	// Blocked, Broken and Twins hold the share under the old policy, then the share under the new one.
	Blocked [2]Share `json:"blocked"`
	Broken  [2]Share `json:"broken"`
	Twins   [2]Share `json:"twins_denied"`
}

// Change describes one call, and how two policies treat it differently.
type Change struct {
	Run  string `json:"run"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Tool, ID and Arguments describe the call. They are empty if the change is not about a call.
	Tool      string `json:"tool,omitempty"`
	ID        string `json:"id,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	From      Effect `json:"from"`
	To        Effect `json:"to"`
	// Rule is the rule that decides under the new policy or, if the new policy allows the call, the rule that decided
	// under the old one.
	Rule   string `json:"rule"`
	Reason string `json:"reason,omitempty"`
	Worked bool   `json:"worked,omitempty"`
	Label  string `json:"label,omitempty"`
}

// Group is a set of similar changes.
type Group struct {
	From  Effect `json:"from"`
	To    Effect `json:"to"`
	Tool  string `json:"tool,omitempty"`
	Rule  string `json:"rule"`
	Calls int    `json:"calls"`
	Runs  int    `json:"runs"`
	// Harm is the number of calls labelled harm, and Worked the number of calls that succeeded in the recording.
	Harm   int `json:"harm"`
	Worked int `json:"worked"`
	// Example is the first change.
	Example Change `json:"example"`
}

// Diff compares a report's policies, which must be exactly two. It ignores decisions of hooks in shadow.
func (r *Report) Diff() (*Diff, error) {
	if len(r.Policies) != 2 {
		return nil, errors.New("backtest: Diff requires a report on exactly two policies")
	}
	before, after := r.Policies[0], r.Policies[1]
	d := &Diff{
		Old: before.Name, New: after.Name, Changes: []Change{}, Groups: []Group{},
		Blocked: [2]Share{before.Total.Blocked, after.Total.Blocked},
		Broken:  [2]Share{before.Total.Broken, after.Total.Broken},
		Twins:   [2]Share{before.Total.Twins, after.Total.Twins},
	}
	for _, c := range r.Cases {
		d.Changes = append(d.Changes, c.changes(before.Name, after.Name)...)
	}
	d.group()
	return d, nil
}

// spot identifies a call or another event in a run.
type spot struct {
	message, call int
	point         string
}

// changes compares the decisions of two policies call by call.
func (c *Case) changes(before, after string) []Change {
	decisions := map[string]map[spot]Decision{before: {}, after: {}}
	var spots []spot
	for _, v := range c.Verdicts {
		for _, d := range v.Decisions {
			s := spot{d.Message, d.Call, ""}
			if d.Call < 0 {
				s.point = string(d.Point)
			}
			had, ok := decisions[v.Policy][s]
			if d.Shadow || ok && slices.Index(effects(), had.Effect) <= slices.Index(effects(), d.Effect) {
				continue
			}
			decisions[v.Policy][s] = d
			spots = append(spots, s)
		}
	}
	spots = lo.Uniq(spots)
	slices.SortFunc(spots, func(a, b spot) int {
		return cmp.Or(a.message-b.message, a.call-b.call, strings.Compare(a.point, b.point))
	})
	var out []Change
	for _, s := range spots {
		was, old := decisions[before][s]
		is, now := decisions[after][s]
		if was.Effect == is.Effect && was.Became == is.Became && old == now {
			continue
		}
		d := lo.Ternary(now, is, was)
		out = append(out, Change{
			Run: c.ID, File: c.File, Line: c.Line, Tool: d.Tool, ID: d.ID, Arguments: d.Arguments,
			From: cmp.Or(was.Effect, Allowed), To: cmp.Or(is.Effect, Allowed), Rule: d.Rule, Reason: d.Reason, Worked: d.Worked, Label: d.Label,
		})
	}
	return out
}

func (d *Diff) group() {
	type kind struct {
		from, to   Effect
		tool, rule string
	}
	groups := map[kind]*Group{}
	runs := map[kind]map[string]bool{}
	for _, c := range d.Changes {
		k := kind{c.From, c.To, c.Tool, c.Rule}
		if groups[k] == nil {
			groups[k], runs[k] = &Group{From: c.From, To: c.To, Tool: c.Tool, Rule: c.Rule, Example: c}, map[string]bool{}
		}
		g := groups[k]
		g.Calls++
		g.Harm += lo.Ternary(c.Label == "harm", 1, 0)
		g.Worked += lo.Ternary(c.Worked, 1, 0)
		runs[k][c.File+"\x00"+c.Run] = true
		g.Runs = len(runs[k])
	}
	for _, g := range groups {
		d.Groups = append(d.Groups, *g)
	}
	slices.SortFunc(d.Groups, func(a, b Group) int {
		return cmp.Or(b.Calls-a.Calls, strings.Compare(string(a.From+a.To), string(b.From+b.To)),
			strings.Compare(a.Tool, b.Tool), strings.Compare(a.Rule, b.Rule))
	})
}

// Empty reports whether the two policies decide the same about everything in the recordings.
func (d *Diff) Empty() bool { return len(d.Changes) == 0 }

// WriteText writes the differences as text for a terminal.
func (d *Diff) WriteText(w io.Writer, l Look) error {
	var out strings.Builder
	before, after := line(d.Old, 60), line(d.New, 60)
	if d.Empty() {
		l.paragraph(&out, "", fmt.Sprintf("%s and %s decide the same about every call.", before, after), "")
	} else {
		l.paragraph(&out, bold, fmt.Sprintf("from %s to %s: %s decided differently", before, after, countNoun(len(d.Changes), "call")), "  ")
		fmt.Fprintln(&out)
		t := &table{names: []string{"change", "tool", "calls", "runs", "had worked", "harm", "rule"}, keep: map[string]bool{"had worked": true}}
		for i, g := range d.Groups {
			if i == mostRows {
				t.add(append([]cell{{"… and " + countNoun(len(d.Groups)-i, "more group"), dim}}, make([]cell, 6)...)...)
				break
			}
			t.add(cell{describeChange(g.From, g.To), ""}, cell{line(g.Tool, 40), "left"}, cell{formatNumber(g.Calls), ""}, cell{formatNumber(g.Runs), ""},
				cell{formatNumber(g.Worked), ""}, cell{formatNumber(g.Harm), ""}, cell{line(g.Rule, 40), "left"})
		}
		t.write(&out, l)
		fmt.Fprintln(&out)
		for i, g := range d.Groups {
			if i == 5 {
				break
			}
			e := g.Example
			l.paragraph(&out, dim, fmt.Sprintf("%s: %s(%s) in %s (%s:%d): %s", describeChange(e.From, e.To), line(e.Tool, 40), line(e.Arguments, 100),
				line(e.Run, 80), line(e.File, 60), e.Line, cmp.Or(line(e.Reason, 120), "no reason given")), "  ")
		}
		fmt.Fprintln(&out)
	}
	t := &table{names: []string{"", before, after}}
	for _, row := range []struct {
		name   string
		shares [2]Share
	}{{"blocked", d.Blocked}, {"broken", d.Broken}, {"twins denied", d.Twins}} {
		if row.shares[0].Of+row.shares[1].Of > 0 {
			t.add(append([]cell{{row.name, ""}}, lo.Map(row.shares[:], func(s Share, _ int) cell {
				return cell{s.String() + "  " + s.percent(), ""}
			})...)...)
		}
	}
	t.write(&out, l)
	_, err := io.WriteString(w, out.String())
	return err
}

// describeChange describes a change in words.
func describeChange(from, to Effect) string {
	switch {
	case from == Allowed:
		return "newly " + strings.ReplaceAll(string(to), "_", " ")
	case to == Allowed:
		return "newly allowed (was " + strings.ReplaceAll(string(from), "_", " ") + ")"
	}
	return strings.ReplaceAll(string(from)+" → "+string(to), "_", " ")
}
