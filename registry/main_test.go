package registry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/registry"
	"github.com/grapnel-go/grapnel/toolexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a registry and what the parts of it wrote down.
type world struct {
	registry.Registry
	lines []string
}

func (w *world) add(line string) { w.lines = append(w.lines, line) }

type logSettings struct {
	File  string        `key:"file,required"`
	Every time.Duration `key:"every,positive"`
}

// newWorld knows a little of everything.
func newWorld() *world {
	w := &world{}
	pay := toolexec.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
	look := toolexec.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	pre := func(name string) registry.Maker[[]hooks.Hook] {
		return registry.UseHooks(hooks.On(hooks.AtExecutionStart, name, func(_ context.Context, c hooks.ExecutionContext) hooks.Result {
			w.add(name)
			return c.Allow()
		}))
	}
	post := func(name string) registry.Maker[[]hooks.Hook] {
		return registry.UseHooks(hooks.Observe(hooks.AtExecutionEnd, name, func(_ context.Context, c hooks.EndContext) error {
			w.add(name + " " + string(c.State().Status()))
			return nil
		}))
	}
	onTool := func(name, tool string) hooks.Hook {
		return hooks.On(hooks.AtPreToolUse, name, func(_ context.Context, c hooks.ToolContext) hooks.Result {
			w.add(name)
			return c.Allow()
		}, hooks.ToolNamed(tool))
	}
	w.Registry = registry.Registry{
		Drivers: map[string]registry.DriverMaker{
			"scripted/": func(_ context.Context, m *registry.Making, model string) (agent.Driver, error) {
				switch model {
				case "broken":
					return nil, errors.New("the wire is cut")
				case "fails":
					return agenttest.Script(agenttest.Fail(errors.New("no more tokens"))), nil
				case "boss":
					return agenttest.Script(agenttest.Call("task", `{"agent":"helper","instruction":"look"}`), agenttest.Say("Done.")).EachRun(), nil
				}
				return agenttest.Script(agenttest.Call("pay", `{}`), agenttest.Say(m.Definition.Name+" with "+model)).EachRun(), nil
			},
			"scripted/deep/": func(context.Context, *registry.Making, string) (agent.Driver, error) {
				return agenttest.Script(agenttest.Say("deep")), nil
			},
		},
		Tools: map[string]registry.Maker[[]toolexec.Tool]{
			"pay": registry.UseTools(pay), "look": registry.UseTools(look),
			"disk": registry.With(func(_ context.Context, m *registry.Making, s logSettings) ([]toolexec.Tool, error) {
				m.Closing(func() error { w.add("closed " + s.File); return nil })
				if s.File == "bad" {
					return nil, errors.New("no such file")
				}
				return []toolexec.Tool{toolexec.Func("read", "Reads.", func(context.Context, struct{}) (string, error) { return s.File, nil })}, nil
			}),
		},
		Hooks: map[string]registry.Maker[[]hooks.Hook]{
			"first": pre("first"), "second": pre("second"), "bill": post("bill"), "thanks": post("thanks"),
			"guard": registry.UseHooks(onTool("guard", "pay")), "lost": registry.UseHooks(onTool("lost", "play")),
			"log": registry.With(func(_ context.Context, m *registry.Making, s logSettings) ([]hooks.Hook, error) {
				w.add(m.Name + " to " + s.File + " every " + s.Every.String())
				return []hooks.Hook{onTool(m.Name, "pay")}, nil
			}),
		},
		Capabilities: map[string]registry.Maker[capability.Capability]{
			"polite": registry.With(func(context.Context, *registry.Making, struct{}) (capability.Capability, error) {
				return capability.UseInstructions("Be polite."), nil
			}),
		},
		Agents: map[string]registry.Definition{
			"helper": {Model: "scripted/x", Tools: registry.Tools{{Name: "look"}}},
			"loop":   {Model: "scripted/x", Agents: registry.Names{"hoop"}},
			"hoop":   {Model: "scripted/x", Agents: registry.Names{"loop"}},
		},
		Servers: map[string]registry.Server{"fs": {Command: []string{"serve"}}},
		Connect: func(_ context.Context, m *registry.Making, s registry.Server) ([]toolexec.Tool, error) {
			w.add("connected " + s.Name + " by " + s.Command[0])
			m.Closing(func() error { w.add("left " + s.Name); return nil })
			return nil, nil
		},
	}
	return w
}
