package einoguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
)

// seal returns a tool that asks the guard before t runs. It has the same kinds, so that eino calls it in the same way.
func seal(t tool.BaseTool, name string) (tool.BaseTool, error) {
	b := base{t, name}
	i, isInvokable := t.(tool.InvokableTool)
	s, isStreamable := t.(tool.StreamableTool)
	ei, isEnhanced := t.(tool.EnhancedInvokableTool)
	es, isEnhancedStreamable := t.(tool.EnhancedStreamableTool)
	switch {
	case isInvokable && isStreamable:
		return struct {
			base
			invokable
			streamable
		}{b, invokable{i, name}, streamable{s, name}}, nil
	case isInvokable && isEnhancedStreamable:
		return struct {
			base
			invokable
			enhancedStreamable
		}{b, invokable{i, name}, enhancedStreamable{es, name}}, nil
	case isEnhanced && isStreamable:
		return struct {
			base
			enhanced
			streamable
		}{b, enhanced{ei, name}, streamable{s, name}}, nil
	case isEnhanced && isEnhancedStreamable:
		return struct {
			base
			enhanced
			enhancedStreamable
		}{b, enhanced{ei, name}, enhancedStreamable{es, name}}, nil
	case isInvokable:
		return struct {
			base
			invokable
		}{b, invokable{i, name}}, nil
	case isStreamable:
		return struct {
			base
			streamable
		}{b, streamable{s, name}}, nil
	case isEnhanced:
		return struct {
			base
			enhanced
		}{b, enhanced{ei, name}}, nil
	case isEnhancedStreamable:
		return struct {
			base
			enhancedStreamable
		}{b, enhancedStreamable{es, name}}, nil
	}
	return nil, fmt.Errorf("tool %q: einoguard cannot seal a %T: it has no method that runs it", name, t)
}

// base is what all sealed tools have.
type base struct {
	sealed tool.BaseTool
	name   string
}

func (b base) Info(ctx context.Context) (*schema.ToolInfo, error) { return b.sealed.Info(ctx) }

func (b base) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(b.sealed) }

func (b base) GetType() string {
	if name, ok := components.GetType(b.sealed); ok {
		return name
	}
	return reflect.Indirect(reflect.ValueOf(b.sealed)).Type().Name()
}

type invokable struct {
	inner tool.InvokableTool
	name  string
}

func (t invokable) InvokableRun(ctx context.Context, arguments string, opts ...tool.Option) (string, error) {
	return do(ctx, t.name, arguments, guard.Text, func(ctx context.Context, arguments string) (string, error) {
		return t.inner.InvokableRun(ctx, arguments, opts...)
	})
}

type streamable struct {
	inner tool.StreamableTool
	name  string
}

func (t streamable) StreamableRun(ctx context.Context, arguments string, opts ...tool.Option) (*schema.StreamReader[string], error) {
	text, err := do(ctx, t.name, arguments, guard.Text, func(ctx context.Context, arguments string) (string, error) {
		in, err := t.inner.StreamableRun(ctx, arguments, opts...)
		if err != nil {
			return "", err
		}
		chunks, err := readAll(in)
		return strings.Join(chunks, ""), err
	})
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]string{text}), nil
}

type enhanced struct {
	inner tool.EnhancedInvokableTool
	name  string
}

func (t enhanced) InvokableRun(ctx context.Context, argument *schema.ToolArgument, opts ...tool.Option) (*schema.ToolResult, error) {
	return do(ctx, t.name, argument.Text, results, func(ctx context.Context, arguments string) (*schema.ToolResult, error) {
		return t.inner.InvokableRun(ctx, &schema.ToolArgument{Text: arguments}, opts...)
	})
}

type enhancedStreamable struct {
	inner tool.EnhancedStreamableTool
	name  string
}

func (t enhancedStreamable) StreamableRun(
	ctx context.Context, argument *schema.ToolArgument, opts ...tool.Option,
) (*schema.StreamReader[*schema.ToolResult], error) {
	r, err := do(ctx, t.name, argument.Text, results, func(ctx context.Context, arguments string) (*schema.ToolResult, error) {
		in, err := t.inner.StreamableRun(ctx, &schema.ToolArgument{Text: arguments}, opts...)
		if err != nil {
			return nil, err
		}
		chunks, err := readAll(in)
		if err != nil {
			return nil, err
		}
		return schema.ConcatToolResults(chunks)
	})
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.ToolResult{r}), nil
}

func readAll[T any](in *schema.StreamReader[T]) (out []T, err error) {
	defer in.Close()
	for {
		v, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// do judges the call of a tool, and runs it.
func do[T any](
	ctx context.Context, name, arguments string, shape guard.Shape[T], inner func(ctx context.Context, arguments string) (T, error),
) (T, error) {
	var none T
	r, err := runOf(ctx)
	if err != nil {
		return none, err
	}
	s, err := r.open(ctx)
	if err != nil {
		return none, err
	}
	call := guard.Call{ID: compose.GetToolCallID(ctx), Tool: name, Arguments: arguments}
	if err := resume(ctx, &call); err != nil {
		return none, err
	}
	v, err := guard.Do(ctx, s, call, func(ctx context.Context, arguments string) (T, error) {
		// The tool's own interrupts have an address of their own, so that they keep their own state.
		v, err := inner(guard.WithSession(compose.AppendAddressSegment(ctx, "guarded", name), s), arguments)
		if err != nil && isPause(err) {
			return v, guard.Pause(err)
		}
		return v, err
	}, shape)
	ask, asks := errors.AsType[*guard.AskError](err)
	switch {
	case asks:
		q := &Question{ask.Call.Name, ask.Call.Arguments, ask.Questions.Reason()}
		return none, tool.StatefulInterrupt(ctx, q, &held{Token: ask.Token})
	case err != nil && isPause(err):
		answers, failed := json.Marshal(call.Answers)
		if failed != nil {
			return none, failed
		}
		return none, compose.CompositeInterrupt(ctx, nil, &held{call.Token, string(answers)}, err)
	case err != nil:
		return none, err
	}
	return v, nil
}

// resume gives a call that waited its token and its answers.
func resume(ctx context.Context, call *guard.Call) (err error) {
	_, has, h := tool.GetInterruptState[*held](ctx)
	if !has {
		return nil
	}
	call.Token = h.Token
	if h.Answers != "" {
		if err := json.Unmarshal([]byte(h.Answers), &call.Answers); err != nil {
			return fmt.Errorf("tool %q: not executed: reading its answers from the checkpoint: %w", call.Tool, err)
		}
		return nil
	}
	call.Answers, err = answersOf(ctx, call.Tool)
	return err
}

// notes names the parts that hold the Extra of the part before.
const notes = "extra"

// results is the shape of enhanced tools' results. Parts other than texts are their JSON.
var results = guard.Shape[*schema.ToolResult]{
	Read: func(v *schema.ToolResult) (agent.Content, error) {
		var parts []agent.Part
		if v == nil {
			return agent.ContentOf(), nil
		}
		for _, p := range v.Parts {
			name := "part"
			if p.Type == schema.ToolPartTypeText {
				parts = append(parts, agent.Text(p.Text))
				if len(p.Extra) == 0 {
					continue
				}
				name, p.Text = notes, ""
			}
			text, err := json.Marshal(p)
			if err != nil {
				return agent.Content{}, err
			}
			parts = append(parts, agent.Part{Kind: agent.PartText, Name: name, Text: string(text)})
		}
		return agent.ContentOf(parts...), nil
	},
	Write: func(r *agent.ToolResult) *schema.ToolResult {
		out := new(schema.ToolResult)
		for _, part := range r.Content.Parts() {
			p := schema.ToolOutputPart{Type: schema.ToolPartTypeText, Text: part.Text}
			if part.Name == notes {
				continue // what a filter has changed loses it
			}
			if part.Name == "part" {
				var whole schema.ToolOutputPart
				if json.Unmarshal([]byte(part.Text), &whole) == nil {
					p = whole
				}
			}
			out.Parts = append(out.Parts, p)
		}
		return out
	},
}
