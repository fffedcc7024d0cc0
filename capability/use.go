package capability

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/continuation"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/processor"
	"github.com/grapnel-go/grapnel/toolexec"
)

// newPart returns a capability that cannot go wrong by itself: what is wrong with what
// it adds is found when the agent is built.
func newPart(add func(Plan) Plan) Capability {
	return Func(func(p Plan) (Plan, error) { return add(p), nil })
}

// newSinglePart returns newPart for what an agent can have only one of: a second one would take
// the place of the first.
func newSinglePart(name string, add func(Plan) Plan) Capability {
	return named{name, newPart(add)}
}

type named struct {
	name string
	Capability
}

func (n named) Name() string { return n.name }

// UseTools gives the agent tools, in the order in which the model is told of them.
func UseTools(tools ...toolexec.Tool) Capability {
	return newPart(func(p Plan) Plan { return p.WithTools(tools...) })
}

// UseToolOptions says how tools are run that do not say so themselves. Its name is
// "tool-options".
func UseToolOptions(o toolexec.Options) Capability {
	return newSinglePart("tool-options", func(p Plan) Plan { return p.WithToolOptions(o) })
}

// UseHooks gives the agent hooks: processors around run and step, an
// executor around its tools, a criterion around its criteria, and a wrapper
// around its driver. An agent can use it several times:
// all hooks come together in one set, in the order they were given, and their
// names must be unique.
func UseHooks(list ...hooks.Hook) Capability {
	return newPart(func(p Plan) Plan { return p.WithHooks(list...) })
}

// UseCriteria lets more criteria judge whether to go on.
func UseCriteria(criteria ...agent.Criterion) Capability {
	return newPart(func(p Plan) Plan { return p.WithCriteria(criteria...) })
}

// UseErrorPolicy says what failures end a run, are tried again, or do not matter.
// Its name is "error-policy".
func UseErrorPolicy(policy continuation.ErrorPolicy) Capability {
	return newSinglePart("error-policy", func(p Plan) Plan { return p.WithCriteria(policy) })
}

// UseApproval gives the agent an approver, which is asked when a hook wants
// approval. Without it, such a call is denied. Its name is "approval".
func UseApproval(approver agent.Approver) Capability {
	return newSinglePart("approval", func(p Plan) Plan { return p.WithApprover(approver) })
}

// UseInstructions adds to the system prompt, behind what is there already and an
// empty line.
func UseInstructions(text string) Capability {
	return newPart(func(p Plan) Plan {
		return p.WithRequest(func(r agent.Request) agent.Request { return addInstructions(r, text) })
	})
}

// addInstructions returns a request with a text behind its instructions and an empty line.
func addInstructions(r agent.Request, text string) agent.Request {
	r.Instructions = strings.Join(lo.Compact([]string{r.Instructions, text}), "\n\n")
	return r
}

// UseInstructionsFunc adds to the system prompt as UseInstructions does, with a text that f makes
// for each model call: from the state that the model is to be shown, or from anything else that
// changes, such as who asks. An empty text adds nothing. Model services charge less for a request
// that begins as the one before did: return the same text until there is something new to say.
//
// Hooks at PreInference see the text and may rewrite it. Where a step is tried again, f is
// called again; where a run goes on behind a reply that it waited with, the model is not asked, nor
// is f. An error ends the run before the model is asked. Runs call f at the same time: it must
// be safe for concurrent use.
func UseInstructionsFunc(f func(ctx context.Context, s agent.State) (string, error)) Capability {
	add := processor.Before(func(ctx context.Context, s agent.State) (agent.State, error) {
		if agent.Checkpoint(s).StepOpen() {
			return s, nil
		}
		text, err := f(ctx, s)
		if err != nil {
			return s, fmt.Errorf("making the instructions: %w", err)
		}
		if text == "" {
			return s, nil
		}
		return s.WithRequest(addInstructions(s.Request(), text)), nil
	})
	return Func(func(p Plan) (Plan, error) {
		if f == nil {
			return p, errors.New("the func that makes the instructions is nil")
		}
		return p.AroundStep(Inside, "instructions", add), nil
	})
}

// UseObserver adds an observer, which is told of everything that happens. An agent can have
// several, which are told one after the other, in the order they were given.
func UseObserver(o agent.Observer) Capability {
	return newPart(func(p Plan) Plan { return p.WithObserver(o) })
}

// UseStepProcessor puts middleware around each step, inside of the hooks.
func UseStepProcessor(name string, processor agent.Processor) Capability {
	return newPart(func(p Plan) Plan { return p.AroundStep(Inside, name, processor) })
}

// UseRunProcessor puts middleware around the run, inside of the hooks.
func UseRunProcessor(name string, processor agent.Processor) Capability {
	return newPart(func(p Plan) Plan { return p.AroundRun(Inside, name, processor) })
}
