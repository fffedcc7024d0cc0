package modeltest_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// chat is a small driver for chat completions, to try the tests on. Its fields select its faults.
type chat struct {
	url    string
	key    func() string // a func, so that printing the driver does not print the key
	client *http.Client

	// lenient accepts a stream without its end marker, tellsKey does not redact the key, sendsAll sends requests that
	// no service supports, and tries is the number of attempts.
	lenient, tellsKey, sendsAll bool
	tries                       int
}

var _ agent.Streamer = chat{}

type wireMessage struct {
	Role      string     `json:"role,omitempty"`
	Content   string     `json:"content"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type wireReply struct {
	Model   string
	Choices []struct {
		Message, Delta wireMessage
		FinishReason   agent.FinishReason `json:"finish_reason"`
	}
	Usage struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	}
	Error *struct{ Message, Type, Code string }
}

func (c chat) Features() agent.Features {
	return agent.Features{
		Provider: "openai", Model: "small", Endpoint: c.url, Streaming: true, Tools: true, ParallelCalls: true, Images: true,
	}
}

func (c chat) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	answer, err := c.ask(ctx, s, false)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return c.broken(ctx, err)
	}
	var reply wireReply
	if err := json.Unmarshal(body, &reply); err != nil || len(reply.Choices) == 0 {
		return c.broken(ctx, errors.Join(err, errors.New("not a reply")))
	}
	var step agent.Step
	c.add(&step, reply, nil)
	message := reply.Choices[0].Message
	step.Message = agent.Assistant(message.Content, calls(message.ToolCalls)...)
	return mo.Ok(step)
}

func (c chat) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	answer, err := c.ask(ctx, s, true)
	if err != nil {
		return mo.Err[agent.Step](err)
	}
	defer func() { _ = answer.Body.Close() }()
	var step agent.Step
	var text strings.Builder
	var made []wireCall
	done := false
	for lines := bufio.NewReader(answer.Body); !done; {
		line, err := lines.ReadString('\n')
		data, isData := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF")), "data:")
		data = strings.TrimSpace(data)
		if done = data == "[DONE]"; err != nil && !done {
			if c.lenient && errors.Is(err, io.EOF) {
				break
			}
			return c.broken(ctx, err)
		}
		if !isData || done {
			continue
		}
		if err := c.inside([]byte(data)); err != nil {
			return mo.Err[agent.Step](err)
		}
		var reply wireReply
		if err := json.Unmarshal([]byte(data), &reply); err != nil {
			return c.broken(ctx, err)
		}
		c.add(&step, reply, func(delta wireMessage) {
			text.WriteString(delta.Content)
			if delta.Content != "" {
				emit(agent.Delta{Text: delta.Content})
			}
			for _, piece := range delta.ToolCalls {
				if piece.Index == len(made) {
					made = append(made, wireCall{ID: piece.ID, Index: piece.Index})
				}
				call := &made[piece.Index]
				call.Function.Name += piece.Function.Name
				call.Function.Arguments += piece.Function.Arguments
				emit(agent.Delta{CallIndex: piece.Index, Call: agent.ToolCall{
					ID: piece.ID, Name: piece.Function.Name, Arguments: piece.Function.Arguments, Index: piece.Index,
				}})
			}
		})
	}
	step.Message = agent.Assistant(text.String(), calls(made)...)
	return mo.Ok(step)
}

// add adds the content of a reply or chunk to step.
func (c chat) add(step *agent.Step, reply wireReply, delta func(wireMessage)) {
	step.Model = reply.Model
	step.Usage.InputTokens += reply.Usage.Input
	step.Usage.OutputTokens += reply.Usage.Output
	for _, choice := range reply.Choices {
		step.FinishReason = lo.CoalesceOrEmpty(choice.FinishReason, step.FinishReason)
		if delta != nil {
			delta(choice.Delta)
		}
	}
}

func calls(wire []wireCall) []agent.ToolCall {
	return lo.Map(wire, func(c wireCall, _ int) agent.ToolCall {
		return agent.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
	})
}

func (c chat) ask(ctx context.Context, s agent.State, stream bool) (*http.Response, error) {
	if err := c.fits(s); err != nil && !c.sendsAll {
		return nil, &drivers.Error{Provider: "openai", Kind: agent.KindBadRequest, Err: err}
	}
	request := map[string]any{"model": "small", "stream": stream}
	if stream {
		request["stream_options"] = map[string]any{"include_usage": true}
	}
	messages := []any{wireMessage{Role: "system", Content: s.Request().Instructions}}
	for _, m := range s.Messages() {
		if !m.Content().IsText() {
			messages = append(messages, map[string]any{"role": m.Role(), "content": wireParts(m.Content())})
			continue
		}
		wire := wireMessage{Role: string(m.Role()), Content: m.Text(), CallID: m.CallID()}
		for _, call := range m.Calls() {
			made := wireCall{ID: call.ID, Type: "function"}
			made.Function.Name, made.Function.Arguments = call.Name, call.Arguments
			if call.Arguments != "" && !json.Valid([]byte(call.Arguments)) {
				made.Function.Arguments = fmt.Sprintf(`{"_malformed_arguments":%q}`, call.Arguments)
			}
			wire.ToolCalls = append(wire.ToolCalls, made)
		}
		messages = append(messages, wire)
	}
	request["messages"] = messages
	for _, tool := range s.Request().Tools.All() {
		parameters := json.RawMessage(lo.CoalesceOrEmpty(tool.Parameters, `{"type":"object"}`))
		tools, _ := request["tools"].([]any)
		request["tools"] = append(tools, map[string]any{"type": "function", "function": map[string]any{
			"name": tool.Name, "description": tool.Description, "parameters": parameters,
		}})
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	for range max(c.tries, 1) - 1 { // a wrong driver, that asks again by itself
		if answer, err := c.post(ctx, body); err == nil {
			_ = answer.Body.Close()
		}
	}
	answer, err := c.post(ctx, body)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &drivers.Error{Provider: "openai", Kind: agent.KindModel, Err: err}
	}
	if answer.StatusCode == http.StatusOK {
		if err := c.inWhole(answer); err != nil {
			_ = answer.Body.Close()
			return nil, err
		}
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	return nil, errors.Join(c.failure(answer.StatusCode, said, answer.Header), err)
}

// inWhole returns an error if the answer is an error instead of a reply or a stream.
func (c chat) inWhole(answer *http.Response) error {
	from := bufio.NewReader(answer.Body)
	begin, _ := from.Peek(8)
	answer.Body = begunBody{from, answer.Body}
	if text := bytes.TrimSpace(begin); len(text) == 0 || text[0] != '{' {
		return nil
	}
	body, err := io.ReadAll(from)
	answer.Body = begunBody{io.MultiReader(bytes.NewReader(body), failingReader{err}), answer.Body}
	return c.inside(body)
}

// begunBody is a partly read body.
type begunBody struct {
	io.Reader
	io.Closer
}

// failingReader ends with err, or with EOF if err is nil.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, cmp.Or(r.err, io.EOF) }

// inside returns the error that an answer or an event contains.
func (c chat) inside(data []byte) error {
	var said struct{ Error json.RawMessage }
	var problem struct {
		Message string
		Code    json.RawMessage
	}
	if json.Unmarshal(data, &said) != nil || said.Error == nil {
		return nil //nolint:nilerr // what is no JSON is found where it is decoded
	}
	if json.Unmarshal(said.Error, &problem) != nil {
		_ = json.Unmarshal(said.Error, &problem.Message)
	}
	code := strings.Trim(string(problem.Code), `"`)
	status, err := strconv.Atoi(code)
	if err != nil {
		status = http.StatusOK
	}
	text, err := json.Marshal(map[string]any{"error": map[string]string{"message": problem.Message, "code": code}})
	return errors.Join(c.failure(status, text, nil), err)
}

// fits returns an error if the request cannot be sent.
func (c chat) fits(s agent.State) error {
	r := s.Request()
	if choice := r.ToolChoice; choice != agent.ToolsAuto && choice != agent.ToolsNone && r.Tools.Len() == 0 {
		return fmt.Errorf("the tool choice is %q, and there are no tools", choice)
	}
	for _, tool := range r.Tools.All() {
		if parameters := map[string]any{}; tool.Parameters != "" && json.Unmarshal([]byte(tool.Parameters), &parameters) != nil {
			return fmt.Errorf("the parameters of tool %q are not a JSON object", tool.Name)
		}
	}
	if r.Output != nil && !json.Valid([]byte(r.Output.Schema)) {
		return errors.New("the schema of the output is not JSON")
	}
	for name := range r.Options.All() {
		return fmt.Errorf("there is no option %q", name)
	}
	for _, m := range s.Messages() {
		if m.Role() == "" {
			return errors.New("a message has no role")
		}
		for _, part := range m.Content().Parts() {
			if part.Kind == agent.PartImage && (part.Data == "" || part.MediaType == "") {
				return errors.New("an image has no bytes, or no type")
			}
		}
	}
	return nil
}

func wireParts(c agent.Content) (parts []any) {
	for _, part := range c.Parts() {
		if part.Kind == agent.PartText {
			parts = append(parts, map[string]any{"type": "text", "text": part.Text})
			continue
		}
		url := "data:" + part.MediaType + ";base64," + base64.StdEncoding.EncodeToString([]byte(part.Data))
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}})
	}
	return parts
}

func (c chat) post(ctx context.Context, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key())
	return c.client.Do(r)
}

// failure returns the error for an error answer.
func (c chat) failure(status int, body []byte, header http.Header) error {
	e := &drivers.Error{Provider: "openai", Model: "small", Status: status, Kind: drivers.KindOfStatus(status)}
	var said wireReply
	if json.Unmarshal(body, &said) == nil && said.Error != nil {
		e.Code, e.Message = said.Error.Code, said.Error.Message
	}
	if !c.tellsKey {
		e.Message = drivers.Redact(e.Message, c.key())
	}
	e.Message = e.Message[:min(len(e.Message), 1000)]
	if status >= 300 && status < 400 {
		e.Advice = "redirects are not followed"
	}
	switch e.Code {
	case "context_length_exceeded":
		e.Kind = agent.KindContextLength
	case "server_is_overloaded":
		e.Kind = agent.KindOverloaded
	}
	e.After, e.Retry = drivers.RetryAfter(header, time.Now()), drivers.ShouldRetry(header)
	return e
}

func (c chat) broken(ctx context.Context, err error) mo.Result[agent.Step] {
	if ctx.Err() != nil {
		return mo.Err[agent.Step](context.Cause(ctx))
	}
	return mo.Err[agent.Step](&drivers.Error{Provider: "openai", Model: "small", Kind: agent.KindBrokenStream, Err: err})
}

func key() string { return modeltest.Key }
