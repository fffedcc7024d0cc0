package adkguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	adk "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// callable and streaming are adk's interfaces of tools that run in this process.
type callable interface {
	offered
	Run(ctx adk.Context, args any) (map[string]any, error)
}

type streaming interface {
	offered
	RunStream(ctx adk.Context, args any) iter.Seq2[string, error]
}

// seal returns a tool that asks the guard before t runs. A tool that only changes the request stays as it is.
func (a *Adapter) seal(t tool.Tool) tool.Tool {
	switch inner := t.(type) {
	case streaming: // adk prefers it
		return sealedStream{base{a, inner}, inner}
	case callable:
		return sealedTool{base{a, inner}, inner}
	}
	return t
}

func (a *Adapter) sealSet(s tool.Toolset) tool.Toolset {
	set := sealedSet{s, a}
	if p, ok := s.(processor); ok {
		return sealedProcessorSet{set, p}
	}
	return set
}

// sealedSet is a toolset with sealed tools.
type sealedSet struct {
	tool.Toolset
	adapter *Adapter
}

func (s sealedSet) sealedBy() *Adapter { return s.adapter }

func (s sealedSet) Tools(ctx adk.ReadonlyContext) ([]tool.Tool, error) {
	given, err := s.Toolset.Tools(ctx)
	var out []tool.Tool
	for _, t := range given {
		out = append(out, s.adapter.seal(t))
	}
	return out, err
}

type sealedProcessorSet struct {
	sealedSet
	processor
}

// processor is adk's interface of tools and toolsets that change the request.
type processor interface {
	ProcessRequest(ctx adk.Context, request *model.LLMRequest) error
}

// base is what all sealed tools have.
type base struct {
	adapter *Adapter
	inner   offered
}

// offered is what all callable and streaming tools have.
type offered interface {
	tool.Tool
	Declaration() *genai.FunctionDeclaration
}

// isSealed reports whether an Adapter has sealed a tool or a toolset.
func isSealed(v any) bool {
	_, is := v.(interface{ sealedBy() *Adapter })
	return is
}

func (b base) sealedBy() *Adapter                      { return b.adapter }
func (b base) Name() string                            { return b.inner.Name() }
func (b base) Description() string                     { return b.inner.Description() }
func (b base) IsLongRunning() bool                     { return b.inner.IsLongRunning() }
func (b base) Declaration() *genai.FunctionDeclaration { return b.inner.Declaration() }

// pack offers sealed in the place of the tool that it seals.
func (b base) pack(ctx adk.Context, request *model.LLMRequest, sealed toolutils.Tool) error {
	p, ok := b.inner.(processor)
	if !ok {
		return toolutils.PackTool(request, sealed)
	}
	_, before := request.Tools[b.Name()]
	if err := p.ProcessRequest(ctx, request); err != nil {
		return err
	}
	if _, after := request.Tools[b.Name()]; after && !before {
		request.Tools[b.Name()] = sealed
	}
	return nil
}

type sealedTool struct {
	base
	tool callable
}

func (t sealedTool) ProcessRequest(ctx adk.Context, request *model.LLMRequest) error {
	return t.pack(ctx, request, t)
}

func (t sealedTool) Run(ctx adk.Context, args any) (map[string]any, error) {
	return t.adapter.call(ctx, t.tool, args, true)
}

type sealedStream struct {
	base
	tool streaming
}

func (t sealedStream) ProcessRequest(ctx adk.Context, request *model.LLMRequest) error {
	return t.pack(ctx, request, t)
}

// RunStream yields the whole answer as one chunk.
func (t sealedStream) RunStream(ctx adk.Context, args any) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		yield(do(t.adapter, ctx, t.Name(), args, true, guard.Text, func(ctx adk.Context, args map[string]any) (string, error) {
			var all strings.Builder
			for chunk, err := range t.tool.RunStream(ctx, args) {
				if err != nil {
					return "", err
				}
				all.WriteString(chunk)
			}
			return all.String(), nil
		}))
	}
}

// call judges the call of a tool, and runs it.
func (a *Adapter) call(ctx adk.Context, t callable, args any, again bool) (map[string]any, error) {
	return do(a, ctx, t.Name(), args, again, results, func(ctx adk.Context, args map[string]any) (map[string]any, error) {
		v, err := t.Run(ctx, args)
		if v == nil || err != nil {
			return v, err
		}
		text, err := encode(v) // a filter sees no more than JSON, so that no more is shown
		if err != nil {
			return v, nil //nolint:nilerr // it is withheld, because it cannot be read
		}
		return decode(text)
	})
}

// errPaused marks a call that waits for an answer to a question of the tool's own.
var errPaused = errors.New("the tool waits for an answer")

// do judges the call of a tool, and runs it. Again says that adk makes the call again when its question is answered.
func do[T any](
	a *Adapter, ctx adk.Context, name string, args any, again bool, shape guard.Shape[T],
	inner func(ctx adk.Context, args map[string]any) (T, error),
) (T, error) {
	var none T
	r, err := a.runOf(ctx)
	if err != nil {
		return none, err
	}
	id := ctx.FunctionCallID()
	call := guard.Call{ID: id, Tool: name}
	if call.Arguments, err = encode(args); err != nil {
		return none, fmt.Errorf("tool %q: not executed: its arguments are no JSON: %w", name, err)
	}
	confirmation := ctx.ToolConfirmation()
	answered := confirmation != nil
	if answered {
		call.Token = tokenOf(id, ctx.WithDelta(&adk.CommonContextDelta{}).Session()) // the tool's context itself knows no session
	}
	asked := call.Token != ""
	if asked {
		call.Answers = []agent.Approval{answerOf(ctx.UserID(), confirmation)}
		confirmation = nil // it is not the tool's
	}
	write := func(status agent.ToolStatus, text string) T {
		return shape.Write(&agent.ToolResult{Status: status, Content: agent.TextContent(text)})
	}
	v, err := guard.Do(ctx, r.session, call, func(own context.Context, arguments string) (T, error) {
		given, err := decode(arguments)
		if err != nil {
			return none, err
		}
		n := &nested{guard: a.guard, parent: r.session, callID: id}
		own = context.WithValue(guard.WithSession(own, r.session), nestedKey{}, n)
		if asked {
			own = guard.WithAnswers(own, call.Token, call.Answers...)
		}
		v, err := inner(newToolContext(own, ctx, confirmation, asked), given)
		if _, asks := ctx.Actions().RequestedToolConfirmations[id]; asks || errors.Is(err, workflow.ErrNodeInterrupted) {
			err = guard.Pause(errors.Join(errPaused, err))
		} else if _, asks := errors.AsType[*guard.AskError](err); asks { // a func from guard.Tool in the tool
			err = guard.Pause(err)
		}
		return v, errors.Join(err, n.close(ctx))
	}, shape)
	ask, asks := errors.AsType[*guard.AskError](err)
	stop, stops := errors.AsType[*guard.StopError](err)
	switch {
	case asks && (r.stored == nil || answered || !again):
		r.add(r.refused, id)
		why := "and no person can be asked here"
		if answered {
			why = "and the answer does not count any more: make the call again, so that the question is asked again"
		}
		return write(agent.ToolNotExecuted, fmt.Sprintf("tool %q: not executed: it needs approval (%s), %s", name, ask.Questions.Reason(), why)), nil
	case asks:
		payload := map[string]any{"tool": ask.Call.Name, "arguments": ask.Call.Arguments, tokenField: ask.Token}
		if err := ctx.RequestConfirmation(ask.Questions.Reason(), payload); err != nil {
			return none, err
		}
		return write(agent.ToolUnknown, waiting), nil
	case errors.Is(err, workflow.ErrNodeInterrupted):
		return none, workflow.ErrNodeInterrupted // without a text that no filter has seen
	case errors.Is(err, errPaused):
		return write(agent.ToolUnknown, waiting), nil
	}
	if stops {
		if reflect.ValueOf(&v).Elem().IsZero() {
			v = write(agent.ToolNotExecuted, stop.Text)
		}
		return v, nil
	}
	return v, err
}

// waiting is the answer of a call that waits for an answer. The model is not asked meanwhile.
const waiting = "waits for an answer"

// answerOf returns a person's answer. Nothing proves who has given it, so that only the adk user is named. A payload of the
// client may say why, and that the run shall end.
func answerOf(user string, c *toolconfirmation.ToolConfirmation) agent.Approval {
	answer := agent.Approval{Verdict: agent.Approve, By: user}
	if c.Confirmed {
		return answer
	}
	answer.Verdict = agent.RejectAndContinue
	if payload, ok := c.Payload.(map[string]any); ok {
		answer.Reason, _ = payload["reason"].(string)
		if end, _ := payload["end"].(bool); end {
			answer.Verdict = agent.RejectAndEnd
		}
	}
	return answer
}

// newToolContext returns the context of a tool that the guard has let run. Confirmation is the answer to the tool's own
// question.
func newToolContext(own context.Context, ctx adk.Context, confirmation *toolconfirmation.ToolConfirmation, asked bool) adk.Context {
	inner := ctx.WithDelta(&adk.CommonContextDelta{InvocationContextDelta: &adk.InvocationContextDelta{Context: &own}})
	inner = adk.NewToolContext(inner, ctx.FunctionCallID(), ctx.Actions(), confirmation)
	if asked {
		return askedContext{inner}
	}
	return inner
}

// askedContext is the context of a tool about whose call the guard has asked already: adk asks once about a call.
type askedContext struct{ adk.Context }

func (askedContext) RequestConfirmation(string, any) error {
	return errors.New("adk asks once about a call, and the guard has asked: remove one of the two questions")
}

// encode returns arguments or a result as JSON. A filter must see texts as they are.
func encode(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if text == "null" {
		text = "{}"
	}
	return text, nil
}

func decode(text string) (map[string]any, error) {
	out := map[string]any{}
	if text == "" {
		return out, nil
	}
	err := json.Unmarshal([]byte(text), &out)
	return out, err
}

// results is the shape of tools' results: their JSON.
var results = guard.Shape[map[string]any]{
	Read: func(v map[string]any) (agent.Content, error) {
		if v == nil { // the answer comes later
			return agent.ContentOf(), nil
		}
		text, err := encode(v)
		return agent.TextContent(text), err
	},
	Write: func(r *agent.ToolResult) map[string]any {
		var whole map[string]any
		if json.Unmarshal([]byte(r.Text()), &whole) == nil && whole != nil {
			return whole
		}
		switch {
		case r.Status == agent.ToolUnknown:
			return map[string]any{"status": r.Text()}
		case r.IsError() || r.Status == agent.ToolNotExecuted:
			return map[string]any{"error": r.Text()}
		}
		return map[string]any{"result": r.Text()}
	},
	Failed: func(v map[string]any) bool { return v["error"] != nil },
}
