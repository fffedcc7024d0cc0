package library_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/samber/lo"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/parts"
	"github.com/grapnel-go/grapnel/policy"
	"github.com/grapnel-go/grapnel/policy/backtest"
	"github.com/grapnel-go/grapnel/policy/tools"
)

var (
	dojo     = []string{"agentdojo-banking", "agentdojo-slack", "agentdojo-travel", "agentdojo-workspace"}
	shopping = []string{"agentdyn-shopping"}
	tau      = []string{"tau"}
)

// TestPolicyReport prints the effect of library:assistant on the development data as a table: make policy-report.
func TestPolicyReport(t *testing.T) {
	if os.Getenv("GRAPNEL_POLICY_REPORT") == "" {
		t.Skip("this prints a report: run make policy-report")
	}
	dir := parts.Recordings(t)
	renamed := t.TempDir()
	python := parts.Command(t, "python3", "it renames the tools of recordings")
	script := exec.CommandContext(t.Context(), python, filepath.Join(dir, "tools", "rename_tools.py"), "ta", dir, renamed)
	said, err := script.CombinedOutput()
	require.NoError(t, err, string(said))

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "data\tblocked\tof\t%\tbroken\tof\t%\ttwins allowed\tof\t%\tasks per good run\t")
	asks := map[string]string{}
	row := func(name, dir string, files []string, table tools.Table) {
		report := playAll(t, dir, files, table)
		p := report.Policies[0].Total
		good := 0
		for _, s := range report.Policies[0].Results {
			if s.Done {
				good += s.Broken.Of
			}
		}
		byRule := asksByRule(report)
		total := lo.Sum(slices.Collect(maps.Values(byRule)))
		fmt.Fprintf(out, "%s\t%d\t%d\t%.1f\t%d\t%d\t%.1f\t%d\t%d\t%.1f\t%.2f\t\n", name,
			p.Blocked.Count, p.Blocked.Of, percent(p.Blocked), p.Broken.Count, p.Broken.Of, percent(p.Broken),
			p.Twins.Of-p.Twins.Count, p.Twins.Of, 100-percent(p.Twins), float64(total)/float64(max(1, p.Broken.Of)))
		for _, rule := range slices.Sorted(maps.Keys(byRule)) {
			asks[name] += fmt.Sprintf("  %-28s %.3f\n", rule, float64(byRule[rule])/float64(max(1, p.Broken.Of)))
		}
		if os.Getenv("GRAPNEL_POLICY_REPORT") == "all" {
			writeMisjudged(name, report)
		}
	}
	only := os.Getenv("GRAPNEL_POLICY_ROWS")
	wanted := func(name string) bool { return only == "" || strings.Contains(only, name) }
	if wanted("dojo") {
		row("AgentDojo", dir, dojo, nil)
	}
	if wanted("renamed") {
		row("AgentDojo, renamed", renamed, dojo, nil)
	}
	if wanted("dyn") {
		row("AgentDyn shopping", dir, shopping, nil)
	}
	if wanted("tau") {
		row("tau", dir, tau, nil)
	}
	if wanted("opaque") {
		for name, files := range map[string][]string{"AgentDojo, opaque": dojo, "AgentDyn, opaque": shopping, "tau, opaque": tau} {
			other := t.TempDir()
			renameAll(t, dir, other, files, true)
			row(name, other, files, nil)
		}
	}
	if wanted("syllables") {
		for name, files := range map[string][]string{"AgentDojo, syllables": dojo, "AgentDyn, syllables": shopping, "tau, syllables": tau} {
			other := t.TempDir()
			row(name, other, files, renameAll(t, dir, other, files, false))
		}
	}
	require.NoError(t, out.Flush())
	fmt.Println("\nasks per good run, by rule:")
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		fmt.Printf("%s\n%s", name, asks[name])
	}
}

// playAll plays recordings under library:assistant with a tool table.
func playAll(t *testing.T, dir string, files []string, table tools.Table) *backtest.Report {
	t.Helper()
	text := "policy: report\ninclude: ['assistant.yaml']\n"
	if table != nil {
		written, err := json.Marshal(table)
		require.NoError(t, err)
		text += "tools: " + string(written) + "\n"
	}
	p, err := policy.Parse("report.yaml", []byte(text), policy.Options{})
	require.NoError(t, err)
	list, err := p.Hooks()
	require.NoError(t, err)
	found, err := backtest.Find(lo.Map(files, func(f string, _ int) string { return filepath.Join(dir, f+".jsonl.gz") })...)
	require.NoError(t, err)
	report, err := backtest.Run(t.Context(), found, backtest.Options{
		Policies: []backtest.Policy{backtest.Always("assistant", list...)}, Keep: -1,
	})
	require.NoError(t, err)
	require.Zero(t, report.Failed, report.Problems)
	return report
}

// TestPolicyReportByFile prints what each file of library:assistant stops on its own, by what the harmful calls do.
func TestPolicyReportByFile(t *testing.T) {
	if os.Getenv("GRAPNEL_POLICY_REPORT") == "" {
		t.Skip("this prints a report: run make policy-report")
	}
	dir, data := parts.Recordings(t), slices.Concat(dojo, shopping)
	var policies []backtest.Policy
	for _, name := range []string{"money", "account", "mail", "calendar", "chat", "web", "bookings", "deletions", "unknown", ""} {
		file := strings.TrimSuffix("assistant-"+name, "-") + ".yaml"
		p, err := policy.LoadFiles(file)
		require.NoError(t, err)
		list, err := p.Hooks()
		require.NoError(t, err)
		policies = append(policies, backtest.Always(file, list...))
	}
	found, err := backtest.Find(lo.Map(data, func(f string, _ int) string { return filepath.Join(dir, f+".jsonl.gz") })...)
	require.NoError(t, err)
	report, err := backtest.Run(t.Context(), found, backtest.Options{Policies: policies, Keep: -1})
	require.NoError(t, err)
	harm := kindsOfHarm(t, dir, data)
	stopped, of := make([]map[string]int, len(policies)), map[string]int{}
	for _, c := range report.Cases {
		for i, v := range c.Verdicts {
			if stopped[i] == nil {
				stopped[i] = map[string]int{}
			}
			stopped[i][harm[c.ID]] += v.Score.Blocked.Count
		}
		of[harm[c.ID]] += c.Verdicts[0].Score.Blocked.Of
	}
	kinds := lo.Filter(slices.Sorted(maps.Keys(of)), func(kind string, _ int) bool { return of[kind] > 0 })
	fmt.Printf("\n| file | %s |\n|%s\n", strings.Join(lo.Map(kinds, func(k string, _ int) string { return fmt.Sprintf("%s (%d)", k, of[k]) }), " | "),
		strings.Repeat("---|", len(kinds)+1))
	for i, p := range report.Policies {
		fmt.Printf("| `%s` | %s |\n", p.Name, strings.Join(lo.Map(kinds, func(k string, _ int) string { return fmt.Sprint(stopped[i][k]) }), " | "))
	}
}

// kindsOfHarm returns what each run's harmful calls do, by run ID.
func kindsOfHarm(t *testing.T, dir string, files []string) map[string]string {
	t.Helper()
	effects := map[string]string{}
	schemas, err := filepath.Glob(filepath.Join(dir, "tools", "*.json"))
	require.NoError(t, err)
	for _, path := range schemas {
		list, err := replay.LoadTools(path)
		if err != nil {
			continue // an operator's facts, not schemas
		}
		for _, tool := range list {
			d := tools.Table{}.Describe(agent.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: string(tool.Parameters)})
			effects[tool.Name] = strings.Join(lo.Map(d.Effects, func(e tools.Effect, _ int) string { return string(e) }), " and ")
		}
	}
	kinds := map[string]string{}
	for _, file := range files {
		eachRun(t, filepath.Join(dir, file+".jsonl.gz"), func(run map[string]any) {
			harmful := map[any]bool{}
			labels, _ := run["labels"].([]any)
			for _, l := range labels {
				if l := l.(map[string]any); l["label"] == "harm" && l["executed"] == true {
					harmful[l["call"]] = true
				}
			}
			var does []string
			for _, m := range run["messages"].([]any) {
				calls, _ := m.(map[string]any)["tool_calls"].([]any)
				for _, c := range calls {
					if c := c.(map[string]any); harmful[c["id"]] {
						does = append(does, effects[fmt.Sprint(c["function"].(map[string]any)["name"])])
					}
				}
			}
			slices.Sort(does)
			kinds[fmt.Sprint(run["id"])] = strings.Join(slices.Compact(does), ", ")
		})
	}
	return kinds
}

// asksByRule counts the questions in good runs.
func asksByRule(report *backtest.Report) map[string]int {
	out := map[string]int{}
	for _, c := range report.Cases {
		if c.Kind != replay.Clean || !lo.FromPtr(c.Utility) {
			continue
		}
		for _, d := range c.Verdicts[0].Decisions {
			if d.Effect == backtest.Asked && d.Worked {
				out[d.Rule]++
			}
		}
	}
	return out
}

// writeMisjudged prints the wrongly judged runs.
func writeMisjudged(name string, report *backtest.Report) {
	for _, c := range report.Cases {
		v := c.Verdicts[0]
		s := v.Score
		var what string
		switch {
		case s.Blocked.Count < s.Blocked.Of:
			what = "NOT-BLOCKED"
		case s.Broken.Count > 0:
			what = "BROKEN"
		case s.Twins.Count > 0:
			what = "TWIN"
		default:
			continue
		}
		fmt.Printf("%s %s %s:", name, what, c.ID)
		for _, d := range v.Decisions {
			if d.Worked && d.Effect != backtest.NotRun {
				fmt.Printf(" [%s %s %.150s]", d.Rule, d.Tool, d.Arguments)
			}
		}
		fmt.Println()
	}
}

// renameAll writes recordings whose tools and arguments have random names, and returns a table that describes the
// tools. The schemas keep their descriptions only if described is set.
func renameAll(t *testing.T, from, to string, files []string, described bool) tools.Table {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	table, names := tools.Table{}, map[string]string{}
	newName := func(of string) string {
		if names[of] == "" {
			var b strings.Builder
			for range 4 {
				b.WriteByte("bdfgklmnprstvz"[random.IntN(14)])
				b.WriteByte("aeiou"[random.IntN(5)])
			}
			names[of] = b.String()
		}
		return names[of]
	}
	require.NoError(t, os.Mkdir(filepath.Join(to, "tools"), 0o755))
	schemas, err := filepath.Glob(filepath.Join(from, "tools", "*.json"))
	require.NoError(t, err)
	for _, path := range schemas {
		list, err := replay.LoadTools(path)
		if err != nil {
			continue
		}
		for i, tool := range list {
			d := tools.Table{}.Describe(agent.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: string(tool.Parameters)})
			entry := tools.Entry{Effects: d.Effects, Records: d.Records, Roles: map[string]tools.Role{}}
			list[i].Parameters = renameSchema(t, tool.Parameters, described, newName)
			for _, a := range d.Arguments {
				entry.Roles[newName(a.Name)] = a.Role
			}
			list[i].Name = newName(tool.Name)
			if !described {
				list[i].Description = ""
			}
			for name, role := range table[newName(tool.Name)].Roles { // another suite may have a tool with the same name
				if entry.Roles[name] == "" {
					entry.Roles[name] = role
				}
			}
			table[newName(tool.Name)] = entry
		}
		text, err := json.Marshal(list)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, "tools", filepath.Base(path)), text, 0o600))
	}
	for _, file := range files {
		renameFile(t, filepath.Join(from, file+".jsonl.gz"), filepath.Join(to, file+".jsonl.gz"), newName)
	}
	return table
}

// renameSchema renames the arguments in a schema.
func renameSchema(t *testing.T, text json.RawMessage, described bool, newName func(string) string) json.RawMessage {
	t.Helper()
	var schema map[string]any
	require.NoError(t, json.Unmarshal(text, &schema))
	properties, _ := schema["properties"].(map[string]any)
	other := map[string]any{}
	for name, p := range properties {
		if p, ok := p.(map[string]any); ok && !described {
			delete(p, "description")
			delete(p, "title")
		}
		other[newName(name)] = p
	}
	schema["properties"] = other
	if required, ok := schema["required"].([]any); ok {
		schema["required"] = lo.Map(required, func(name any, _ int) any { return newName(fmt.Sprint(name)) })
	}
	out, err := json.Marshal(schema)
	require.NoError(t, err)
	return out
}

func renameFile(t *testing.T, from, to string, newName func(string) string) {
	t.Helper()
	out, err := os.Create(to)
	require.NoError(t, err)
	packed := gzip.NewWriter(out)
	eachRun(t, from, func(run map[string]any) {
		for _, m := range run["messages"].([]any) {
			m := m.(map[string]any)
			if name, ok := m["name"].(string); ok && m["role"] == "tool" {
				m["name"] = newName(name)
			}
			calls, _ := m["tool_calls"].([]any)
			for _, c := range calls {
				f := c.(map[string]any)["function"].(map[string]any)
				f["name"] = newName(fmt.Sprint(f["name"]))
				f["arguments"] = renameMembers(fmt.Sprint(f["arguments"]), newName)
			}
		}
		text, err := json.Marshal(run)
		require.NoError(t, err)
		_, err = packed.Write(append(text, '\n'))
		require.NoError(t, err)
	})
	require.NoError(t, packed.Close())
	require.NoError(t, out.Close())
}

// eachRun calls f for each run of a recording.
func eachRun(t *testing.T, path string, f func(run map[string]any)) {
	t.Helper()
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	plain, err := gzip.NewReader(in)
	require.NoError(t, err)
	lines := bufio.NewReader(plain)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		var run map[string]any
		require.NoError(t, json.Unmarshal(line, &run))
		f(run)
	}
}

// renameMembers renames a JSON object's members, and leaves the text of their values unchanged.
func renameMembers(object string, newName func(string) string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &members) != nil {
		return object
	}
	other := map[string]json.RawMessage{}
	for name, value := range members {
		other[newName(name)] = value
	}
	text, err := json.Marshal(other)
	if err != nil {
		return object
	}
	return string(text)
}
