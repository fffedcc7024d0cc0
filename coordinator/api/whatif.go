package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/internal/whatif"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/storedruns"
	"github.com/grapnel-go/grapnel/policy/library"
)

// WhatIf replays stored runs with other rules. Progress, unless nil, is told how far it is. When ctx ends, the result is about the runs so
// far. It returns a *coordinator.InvalidError for rules that cannot be loaded, and coordinator.ErrBusy while another replay is running.
func (l Local) WhatIf(ctx context.Context, in wire.WhatIfRequest, progress func(wire.WhatIfProgress)) (wire.WhatIf, error) {
	return whatif.Ask(ctx, l.Coordinator, in, progress)
}

// Case returns a file with a test case for the policy of a decision, or for a call, and the file's name. It returns an
// *coordinator.InvalidError for what no test case can be made of.
func (l Local) Case(ctx context.Context, id agent.RunID, in wire.CaseRequest) (name string, text []byte, err error) {
	r, err := l.ReadableRun(ctx, id)
	if err != nil {
		return "", nil, err
	}
	expected := storedruns.Expected{Call: in.Call, Decision: cmp.Or(in.Expect, "pass")}
	if in.Decision != 0 {
		if expected, err = l.expectedOf(ctx, r, in.Decision); err != nil {
			return "", nil, err
		}
		expected.Decision = cmp.Or(in.Expect, expected.Decision)
	}
	expected.Policy = cmp.Or(in.Policy, expected.Policy)
	text, err = storedruns.Case(ctx, l.Store(), r, expected)
	if err != nil && !errors.Is(err, durable.ErrNotFound) {
		err = invalidCase("%v", err)
	}
	return storedruns.CaseName(expected.Policy), text, err
}

func invalidCase(format string, args ...any) error {
	return &coordinator.InvalidError{Fields: []coordinator.FieldError{{Field: "d", Message: fmt.Sprintf(format, args...)}}}
}

// expectedOf returns what a test case of a decision expects.
func (l Local) expectedOf(ctx context.Context, r durable.Run, number int64) (storedruns.Expected, error) {
	events, err := l.Store().Events(ctx, r.ID, number-1, 1)
	if err != nil {
		return storedruns.Expected{}, err
	}
	var c coordinator.HookCall
	ok := false
	if len(events) == 1 && events[0].Seq == number {
		c, ok = coordinator.HookCallOf(events[0].Name, events[0].At, events[0].Data)
	}
	switch {
	case !ok:
		return storedruns.Expected{}, invalidCase("event %d of run %s is no decision of a hook", number, r.ID)
	case c.Subagent != "" && c.Subagent != r.ID:
		return storedruns.Expected{}, invalidCase("decision %d is about a call of sub-agent %s, whose calls are not stored", number, c.Subagent)
	case c.Point == string(hooks.PostToolUse) && (c.Decision == string(hooks.Withhold) || c.Decision == string(hooks.Replace)) && !c.Shadow:
		return storedruns.Expected{}, invalidCase("the answer that hook %s kept from the model is not stored: write the case with your own answer", c.Hook)
	case c.Origin == nil:
		return storedruns.Expected{}, invalidCase("hook %s is not a rule of a policy: it has no test cases", c.Hook)
	}
	e := storedruns.Expected{
		Call: c.Call, Point: hooks.PointName(c.Point), Decision: cmp.Or(c.Decision, "pass"), Rule: c.Origin.Rule, Reason: c.Reason,
	}
	if e.Policy = c.Origin.File; strings.HasPrefix(e.Policy, library.Prefix) {
		e.Rule = strings.TrimSuffix(e.Policy, "/") + "/" + e.Rule
	} else {
		e.Policy = path.Base(e.Policy)
	}
	switch {
	case c.HasFailed():
		e.Decision, e.Reason = "failed", ""
	case c.Shadow:
		e.Shadow = true
	}
	return e, nil
}

// addWhatIf adds replays of stored runs, and test cases of their decisions.
func (a *api) addWhatIf() {
	type whatIfInput struct {
		Accept string `header:"Accept" doc:"With text/event-stream the response is a stream: progress, and then the result."`
		Body   wire.WhatIfRequest
	}
	o := route(http.MethodPost, "/whatif", "what-if", "Replay stored runs with other rules, and say what would change", wire.Viewer, withoutAudit)
	ask := func(ctx context.Context, in *whatIfInput) (*huma.StreamResponse, error) {
		if strings.Contains(in.Accept, "text/event-stream") {
			return &huma.StreamResponse{Body: func(h huma.Context) { a.streamWhatIf(h, o, in.Body) }}, nil
		}
		out, err := Local{a.Coordinator}.WhatIf(ctx, in.Body, nil)
		if err != nil {
			return nil, a.whatIfProblem(ctx, o, err)
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			h.SetHeader("Content-Type", "application/json")
			_ = json.NewEncoder(h.BodyWriter()).Encode(out)
		}}, nil
	}
	a.register(o, func(to huma.API) {
		o := o
		schema := to.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.WhatIf](), true, "")
		o.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			"application/json": {Schema: schema}, "text/event-stream": {},
		}}}
		huma.Register(to, o, ask)
	})

	type caseInput struct {
		ID       agent.RunID `path:"id"`
		Decision int64       `query:"d" minimum:"1" doc:"The number of the event with the decision."`
		Call     string      `query:"call" maxLength:"500" doc:"In its place: the ID of a call."`
		Expect   string      `query:"expect" enum:"pass,allow,deny,ask,stop,rewrite,mock,replace,withhold,failed" doc:"What is expected."`
	}
	type caseFile struct {
		ContentType string `header:"Content-Type"`
		Disposition string `header:"Content-Disposition"`
		Body        []byte
	}
	c := route(http.MethodGet, "/runs/{id}/case", "get-test-case", "Read a test case for the policy of a decision", wire.Viewer)
	a.register(c, func(to huma.API) {
		huma.Register(to, c, func(ctx context.Context, in *caseInput) (*caseFile, error) {
			name, text, err := Local{a.Coordinator}.Case(ctx, in.ID, wire.CaseRequest{Decision: in.Decision, Call: in.Call, Expect: in.Expect})
			if err != nil {
				return nil, a.problem(ctx, c, err)
			}
			return &caseFile{"application/yaml", mime.FormatMediaType("attachment", map[string]string{"filename": name}), text}, nil
		})
	})
}

// whatIfProblem converts an error of a replay to a response.
func (a *api) whatIfProblem(ctx context.Context, o huma.Operation, err error) error {
	if errors.Is(err, coordinator.ErrBusy) {
		return huma.NewError(http.StatusTooManyRequests, err.Error())
	}
	return a.problem(ctx, o, err)
}

// streamWhatIf sends the progress of a replay, and its result or what is wrong.
func (a *api) streamWhatIf(h huma.Context, o huma.Operation, in wire.WhatIfRequest) {
	h.SetHeader("Content-Type", "text/event-stream")
	out := h.BodyWriter()
	send := func(name string, v any) {
		data, _ := json.Marshal(v) //nolint:errchkjson // numbers and texts
		_, _ = io.WriteString(out, "event: "+name+"\ndata: "+string(data)+"\n\n")
		if f, ok := out.(http.Flusher); ok {
			f.Flush()
		}
	}
	result, err := Local{a.Coordinator}.WhatIf(h.Context(), in, func(p wire.WhatIfProgress) { send("progress", p) })
	if err != nil {
		send("problem", a.whatIfProblem(h.Context(), o, err))
		return
	}
	send("result", result)
}
