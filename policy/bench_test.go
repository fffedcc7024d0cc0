package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/policy"
)

// hundred returns a policy of a hundred rules: ten for each of ten tools.
func hundred() string {
	var b strings.Builder
	b.WriteString("policy: hundred\nvariables: {limit: 1000}\nhooks:\n  PreToolUse:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "    - {id: r%d, match: {tool: tool%d}, when: 'args.n == %d && args.path.startsWith(\"/etc\") || args.n > vars.limit', decision: deny}\n", i, i/10, i)
	}
	return b.String()
}

// ready is an executor of calls whose arguments are read already: what is left is what
// the hooks cost.
type ready struct{}

func (ready) Prepare(_ context.Context, _ agent.State, c *agent.ToolCall) mo.Result[*agent.Prepared] {
	return mo.Ok(&agent.Prepared{Original: c, Call: c, Strict: true})
}

func (ready) Execute(_ context.Context, _ agent.State, p *agent.Prepared) mo.Result[*agent.ToolResult] {
	return mo.Ok(agent.NewResult(p))
}

// ids are the ids of calls.
var ids = []string{"1", "2", "3", "4", "5"}

// running returns a state of a run that is under way, as hooks see it.
func running(b testing.TB) agent.State {
	b.Helper()
	var s agent.State
	driver := agent.DriverFunc(func(_ context.Context, now agent.State) (agent.Step, error) {
		s = now
		return agent.Step{Message: agent.Assistant("done")}, nil
	})
	a, err := agent.New(agent.Config{Driver: driver}).Get()
	if err != nil {
		b.Fatal(err)
	}
	if _, err = a.Run(b.Context(), agent.NewState(), agent.UserText("go")).Get(); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkHundredRules measures a call under a hundred rules. Ten are for its tool, and none denies.
func BenchmarkHundredRules(b *testing.B) {
	compiled := lo.Must(set(b, load(b, hundred())).Compile("tool3", "other"))
	executor := compiled.WrapExecutor(ready{})
	for name, call := range map[string]agent.ToolCall{
		"ten rules for the tool": {ID: "1", Name: "tool3", Arguments: `{"n":-1,"path":"/srv/app/main.go"}`},
		"no rule for the tool":   {ID: "1", Name: "other", Arguments: `{"n":-1}`},
	} {
		b.Run(name, func(b *testing.B) {
			s := running(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				call.ID = ids[i%len(ids)] // each is another call
				p, err := executor.Prepare(context.Background(), s, &call).Get()
				if err != nil || p.Disposition != agent.DisposeRun {
					b.Fatal(p, err)
				}
			}
		})
	}
}

// BenchmarkLoad measures loading a hundred rules and creating their hooks.
func BenchmarkLoad(b *testing.B) {
	text := []byte(hundred())
	for b.Loop() {
		p, err := policy.Parse("p.yaml", text, policy.Options{})
		if err != nil {
			b.Fatal(err)
		}
		list, err := p.Hooks()
		if err != nil || lo.T2(hooks.NewSet(list...).Compile()).B != nil {
			b.Fatal(err)
		}
	}
}
