package builder

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
)

// An AgentBuilder builds an agent. It is an immutable value: each method returns a new builder and does not change the
// receiver. The zero AgentBuilder is an empty builder, like the result of New.
type AgentBuilder struct {
	plan         capability.Plan
	capabilities []capability.Capability
}

// New returns an empty builder. Its agents are instrumented with OpenTelemetry's global providers, if there are any:
// see capability.UseTelemetry.
func New() AgentBuilder { return AgentBuilder{} }

// WithName names the agent in events, spans and errors.
func (b AgentBuilder) WithName(name string) AgentBuilder {
	b.plan = b.plan.WithName(name)
	return b
}

// WithDriver sets the driver. Every agent needs one.
func (b AgentBuilder) WithDriver(d agent.Driver) AgentBuilder {
	b.plan = b.plan.WithDriver(d)
	return b
}

// WithModel names the model for the driver.
func (b AgentBuilder) WithModel(name string) AgentBuilder {
	return b.WithRequest(func(r agent.Request) agent.Request { r.Model = name; return r })
}

// WithInstructions sets the system prompt. Capabilities can append text to it.
func (b AgentBuilder) WithInstructions(text string) AgentBuilder {
	return b.WithRequest(func(r agent.Request) agent.Request { r.Instructions = text; return r })
}

// WithRequest changes the request to the model.
func (b AgentBuilder) WithRequest(change func(agent.Request) agent.Request) AgentBuilder {
	b.plan = b.plan.WithRequest(change)
	return b
}

// WithObserver adds an observer, which receives all events.
func (b AgentBuilder) WithObserver(o agent.Observer) AgentBuilder {
	b.plan = b.plan.WithObserver(o)
	return b
}

// WithParallel sets how many of a step's tool calls run at the same time. Zero means one.
func (b AgentBuilder) WithParallel(n int) AgentBuilder {
	b.plan = b.plan.WithParallel(n)
	return b
}

// With adds capabilities. The first one is outermost.
func (b AgentBuilder) With(capabilities ...capability.Capability) AgentBuilder {
	b.capabilities = append(slices.Clip(b.capabilities), capabilities...)
	return b
}

// Plan installs the capabilities and returns the plan, whose String method prints the composed stack. The error joins
// all the capabilities' mistakes.
func (b AgentBuilder) Plan() mo.Result[capability.Plan] {
	plan, err := b.install()
	if err != nil {
		return mo.Err[capability.Plan](b.naming(err))
	}
	return mo.Ok(plan)
}

// String prints the composed stack, as Plan does, followed by the capabilities' errors, if any.
func (b AgentBuilder) String() string {
	plan, err := b.install()
	if err != nil {
		return plan.String() + b.naming(err).Error() + "\n"
	}
	return plan.String()
}

// Build returns the agent, or an error that joins all mistakes, one line for each. Building the same builder twice
// gives two agents that share no mutable data.
func (b AgentBuilder) Build() mo.Result[*agent.Agent] {
	plan, installing := b.install()
	built, building := plan.Agent().Get()
	if err := errors.Join(installing, building); err != nil {
		return mo.Err[*agent.Agent](b.naming(err))
	}
	return mo.Ok(built)
}

func (b AgentBuilder) naming(err error) error {
	if name := b.plan.Name(); name != "" {
		return fmt.Errorf("building agent %q:\n%w", name, err)
	}
	return fmt.Errorf("building the agent:\n%w", err)
}

// seen is the telemetry of every agent that has no other UseTelemetry.
var seen capability.UseTelemetry

// install installs the capabilities in order. A capability that fails leaves the plan unchanged, so that the others can
// be checked, too.
func (b AgentBuilder) install() (capability.Plan, error) {
	ordered, wrong := inOrder(b.capabilities)
	plan := b.plan
	if !slices.ContainsFunc(ordered, func(p part) bool { return p.name() == seen.Name() }) {
		plan = seen.Install(plan).OrElse(plan)
	}
	for _, part := range ordered {
		next, err := part.Install(plan).Get()
		if err != nil {
			wrong = append(wrong, part.each(err)...)
			continue
		}
		plan = next
	}
	return plan, errors.Join(wrong...)
}
