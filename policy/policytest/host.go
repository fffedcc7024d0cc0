package policytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/agent"
)

// host returns a case's action.Host. Commands and web services are real; the fixtures answer for tools, agents,
// pipelines, funcs, the model and the person.
func (f fixtures) host(w *world) action.Host {
	return action.Host{
		Dir:     w.workspace,
		Secrets: action.Secrets{Env: lo.Keys(f.Env), File: w.secrets()},
		Funcs:   lo.MapValues(f.Funcs, func(v Value, _ string) action.Body { return saying(v) }),
		Tools:   told{f.Tools, "tool"}, Agents: told{f.Agents, "agent"}, Spawner: told{f.Pipelines, "pipeline"},
		Driver: agent.DriverFunc(func(context.Context, agent.State) (agent.Step, error) {
			if f.Model == "" {
				return agent.Step{}, errors.New("the fixtures have no answer from the model: add model: …")
			}
			return agent.Step{Message: agent.Assistant(f.Model), FinishReason: agent.FinishStop}, nil
		}),
		Approver: agent.ApproverFunc(func(context.Context, agent.State, *agent.Prepared) (agent.Approval, error) {
			if f.Person == "" {
				return agent.Approval{}, errors.New("the fixtures have no answer from the person: add person: approve")
			}
			verdict, err := verdictOf(f.Person)
			return agent.Approval{Verdict: verdict, By: "a person"}, err
		}),
	}
}

// saying returns a func that answers with a value. An empty object is no opinion.
func saying(v Value) action.Body {
	return func(context.Context, *action.Request) (*action.Decision, error) {
		d, err := action.ParseDecision(v)
		return d, err
	}
}

// told answers calls to tools, agents and pipelines, which do not exist in a test.
type told struct {
	answers map[string]string
	what    string
}

func (t told) answer(name string) (string, error) {
	text, ok := t.answers[name]
	if !ok {
		return "", fmt.Errorf("the fixtures have no answer from the %s %q: add %ss: {%s: …}", t.what, name, t.what, name)
	}
	return text, nil
}

// CallTool answers for a tool, found by server/tool or by its name.
func (t told) CallTool(_ context.Context, server, tool string, _ json.RawMessage) (string, error) {
	if _, ok := t.answers[server+"/"+tool]; ok {
		return t.answer(server + "/" + tool)
	}
	return t.answer(tool)
}

// StartAgent answers for an agent.
func (t told) StartAgent(_ context.Context, start action.AgentStart) (string, error) {
	return t.answer(start.Agent)
}

// Spawn answers for a pipeline.
func (t told) Spawn(_ context.Context, s action.SpawnStart) (string, error) {
	return t.answer(s.Pipeline)
}
