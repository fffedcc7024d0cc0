package adkguard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	adk "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	adkguard "github.com/grapnel-go/grapnel/adapters/adk"
	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/guard/guardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a model that makes the script's calls.
type scripted struct {
	script [][]agent.ToolCall
	mu     sync.Mutex
	shown  []string // the tools' answers
	asked  int
}

func newModel(script ...[]agent.ToolCall) *scripted { return &scripted{script: script} }

func (*scripted) Name() string { return "scripted" }

func (m *scripted) GenerateContent(_ context.Context, request *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	m.shown = nil
	made := map[string]bool{}
	for _, c := range request.Contents {
		m.shown = append(m.shown, asJSON(c))
		for _, p := range c.Parts {
			if p.FunctionCall != nil {
				made[p.FunctionCall.ID] = true
			}
			m.shown = append(m.shown, textsIn(p.FunctionResponse)...)
		}
	}
	out := &model.LLMResponse{Content: genai.NewContentFromText("done", genai.RoleModel), TurnComplete: true}
	for _, turn := range m.script {
		if len(turn) == 0 || made[turn[0].ID] {
			continue
		}
		out.Content.Parts = nil
		for _, c := range turn {
			part := &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name}}
			if c.Arguments != "" {
				if err := json.Unmarshal([]byte(c.Arguments), &part.FunctionCall.Args); err != nil {
					panic(err)
				}
			}
			out.Content.Parts = append(out.Content.Parts, part)
		}
		break
	}
	return func(yield func(*model.LLMResponse, error) bool) { yield(out, nil) }
}

func textsIn(r *genai.FunctionResponse) (out []string) {
	if r == nil {
		return nil
	}
	for _, v := range r.Response {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func asJSON(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return out.String()
}

type runFunc = func(ctx context.Context, arguments string) (guardtest.Result, error)

// custom is a tool that someone has written without the kit's helpers.
type custom struct {
	name string
	run  runFunc
}

func (t custom) Name() string        { return t.name }
func (t custom) Description() string { return "a tool" }
func (t custom) IsLongRunning() bool { return false }
func (t custom) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: t.name}
}

func (t custom) Run(ctx adk.Context, args any) (map[string]any, error) {
	r, err := t.run(ctx, strings.TrimSpace(asJSON(args)))
	if err != nil {
		return nil, err
	}
	return map[string]any{"text": r.Text, "nested": map[string]any{"list": []string{r.Extra}}}, nil
}

type answer struct {
	Text  string `json:"text"`
	Extra string `json:"extra"`
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func function(name string, run runFunc) tool.Tool {
	return must(functiontool.New(functiontool.Config{Name: name, Description: "a tool"},
		func(ctx adk.Context, args map[string]any) (answer, error) {
			r, err := run(ctx, strings.TrimSpace(asJSON(args)))
			return answer{r.Text, r.Extra}, err
		}))
}

func stream(name string, run runFunc) tool.Tool {
	return must(functiontool.NewStreaming(functiontool.Config{Name: name, Description: "a tool"},
		func(ctx adk.Context, args map[string]any) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				r, err := run(ctx, strings.TrimSpace(asJSON(args)))
				if err != nil {
					yield("", err)
					return
				}
				for chunk := range slices.Chunk([]byte(r.Text+r.Extra), 3) {
					if !yield(string(chunk), nil) {
						return
					}
				}
			}
		}))
}

type toolset []tool.Tool

func (toolset) Name() string                                     { return "set" }
func (s toolset) Tools(adk.ReadonlyContext) ([]tool.Tool, error) { return s, nil }

var kinds = []string{"function", "stream", "custom", "toolset", "function, streamed", "stream, streamed"}

// configOf returns an agent that is not guarded yet.
func configOf(a guardtest.Agent, m model.LLM) llmagent.Config {
	c := llmagent.Config{Name: "desk", Description: "a desk", Model: m}
	for _, t := range a.Tools {
		switch strings.TrimSuffix(t.Kind, ", streamed") {
		case "stream":
			c.Tools = append(c.Tools, stream(t.Name, t.Run))
		case "custom":
			c.Tools = append(c.Tools, custom{t.Name, t.Run})
		case "toolset":
			c.Toolsets = append(c.Toolsets, toolset{function(t.Name, t.Run)})
		default:
			c.Tools = append(c.Tools, function(t.Name, t.Run))
		}
	}
	return c
}

// player plays a guardtest.Agent.
type player struct {
	agent guardtest.Agent
	model *scripted
	build func(*adkguard.Adapter, guardtest.Agent) (adk.Agent, error)
}

const user, app = "carla", "desks"

func (p player) start(ctx context.Context) guardtest.Outcome {
	return p.run(ctx, p.agent.Guard, session.InMemoryService(), genai.NewContentFromText(p.agent.Input, genai.RoleUser))
}

func (p player) runner(g *guard.Guard, saved session.Service) (*runner.Runner, error) {
	a := adkguard.New(g)
	built, err := p.build(a, p.agent)
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Config{
		AppName: app, Agent: built, SessionService: saved, AutoCreateSession: true,
		PluginConfig: a.PluginConfig(),
	})
}

func (p player) run(ctx context.Context, g *guard.Guard, saved session.Service, message *genai.Content) (out guardtest.Outcome) {
	r, err := p.runner(g, saved)
	if err != nil {
		return guardtest.Outcome{Err: err}
	}
	mode := adk.StreamingModeNone
	if strings.HasSuffix(p.agent.Tools[0].Kind, ", streamed") {
		mode = adk.StreamingModeSSE
	}
	var questions []string
	for e, err := range r.Run(ctx, user, p.agent.Conversation, message, adk.RunConfig{StreamingMode: mode}) {
		out.Err = errors.Join(out.Err, err)
		if e == nil || e.Content == nil {
			continue
		}
		out.Shown = append(out.Shown, asJSON(e))
		for _, part := range e.Content.Parts {
			out.Shown = append(append(out.Shown, part.Text), textsIn(part.FunctionResponse)...)
			if part.FunctionCall == nil || part.FunctionCall.Name != toolconfirmation.FunctionCallName {
				continue
			}
			questions = append(questions, part.FunctionCall.ID)
			call := must(toolconfirmation.OriginalCallFrom(part.FunctionCall))
			out.Asked = append(out.Asked, agent.ToolCall{ID: call.ID, Name: call.Name, Arguments: asJSON(call.Args)})
		}
	}
	p.model.mu.Lock()
	out.Shown = append(out.Shown, p.model.shown...)
	p.model.mu.Unlock()
	if questions == nil {
		return out
	}
	stored := copyOf(ctx, saved, p.agent.Conversation)
	out.Resume = func(ctx context.Context, g *guard.Guard, given agent.Approval) guardtest.Outcome {
		response := map[string]any{"confirmed": given.Verdict == agent.Approve}
		if given.Reason != "" {
			response["payload"] = map[string]any{"reason": given.Reason, "end": given.Verdict == agent.RejectAndEnd}
		}
		message := &genai.Content{Role: genai.RoleUser}
		for _, id := range questions {
			message.Parts = append(message.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
				ID: id, Name: toolconfirmation.FunctionCallName, Response: response,
			}})
		}
		return p.run(ctx, g, copyOf(ctx, stored, p.agent.Conversation), message)
	}
	return out
}

// copyOf returns a copy of what a service has stored, as another process would read it.
func copyOf(ctx context.Context, from session.Service, id string) session.Service {
	to := session.InMemoryService()
	was := must(from.Get(ctx, &session.GetRequest{AppName: app, UserID: user, SessionID: id})).Session
	is := must(to.Create(ctx, &session.CreateRequest{AppName: app, UserID: user, SessionID: id})).Session
	for e := range was.Events().All() {
		var read session.Event
		if err := json.Unmarshal([]byte(asJSON(e)), &read); err != nil {
			panic(err)
		}
		if err := to.AppendEvent(ctx, is, &read); err != nil {
			panic(err)
		}
	}
	return to
}

// start runs an agent. Change changes its config after the guard.
func start(ctx context.Context, a guardtest.Agent, change func(*llmagent.Config)) guardtest.Outcome {
	m := newModel(a.Script...)
	return player{a, m, func(guarded *adkguard.Adapter, a guardtest.Agent) (adk.Agent, error) {
		return newAgent(guarded, a, m, change)
	}}.start(ctx)
}

func newAgent(guarded *adkguard.Adapter, a guardtest.Agent, m model.LLM, change func(*llmagent.Config)) (adk.Agent, error) {
	c := configOf(a, m)
	if err := guarded.Install(&c); err != nil {
		return nil, err
	}
	if change != nil {
		change(&c)
	}
	return llmagent.New(c)
}

// startChild runs the agent as a tool of another one.
func startChild(ctx context.Context, a guardtest.Agent) guardtest.Outcome {
	m := newModel(a.Script...)
	outer := newModel([]agent.ToolCall{{ID: "outer-1", Name: "desk", Arguments: `{"request":"pay"}`}})
	return player{a, m, func(guarded *adkguard.Adapter, a guardtest.Agent) (adk.Agent, error) {
		child, err := newAgent(guarded, a, m, nil)
		if err != nil {
			return nil, err
		}
		c := llmagent.Config{Name: "outer", Description: "an agent", Model: outer, Tools: []tool.Tool{agenttool.New(child, nil)}}
		if err := guarded.Install(&c); err != nil {
			return nil, err
		}
		return llmagent.New(c)
	}}.start(ctx)
}

// tamper replaces the arguments of every call.
func tamper(c *llmagent.Config) {
	c.BeforeToolCallbacks = append(c.BeforeToolCallbacks, func(_ adk.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
		clear(args)
		return nil, json.Unmarshal([]byte(guardtest.TamperedArguments), &args)
	})
}

func TestContract(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Host{
		Kinds: kinds, Asks: true, Restarts: true, StartChild: startChild,
		Start:         func(ctx context.Context, a guardtest.Agent) guardtest.Outcome { return start(ctx, a, nil) },
		StartTampered: func(ctx context.Context, a guardtest.Agent) guardtest.Outcome { return start(ctx, a, tamper) },
	})
}
