package telemetry

import (
	"net/url"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

// spans caches the names and initial options of spans.
type spans struct {
	agents cache[string, *beginning]
	chats  cache[target, *beginning]
	tools  cache[toolOf, *beginning]
	hooks  cache[hookAt, *beginning]
}

// beginning is a span's name and initial attributes, which a sampler sees.
type beginning struct {
	name    string
	options []trace.SpanStartOption
}

func begin(name string, kind trace.SpanKind, attributes ...attribute.KeyValue) *beginning {
	attributes = lo.FilterMap(attributes, func(kv attribute.KeyValue, _ int) (attribute.KeyValue, bool) {
		if kv.Value.Type() == attribute.STRING {
			kv = kv.Key.String(valid(kv.Value.AsString()))
		}
		return kv, kv.Value.Type() != attribute.STRING || kv.Value.AsString() != ""
	})
	return &beginning{valid(name), []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...)}}
}

// valid replaces bytes that are not UTF-8, because one such byte would prevent the export of the whole batch.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// maxName is the maximum number of bytes in a tool's name, because models can invent long names.
const maxName = 128

// toolName returns a tool's name, shortened to maxName.
func toolName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}

// spanTitle returns an operation and the name of its target, if it has one.
func spanTitle(operation, name string) string {
	if name == "" {
		return operation
	}
	return operation + " " + name
}

func (b *spans) agent(name string) *beginning {
	return b.agents.of(name, func(name string) *beginning {
		return begin(spanTitle(semconv.OperationInvokeAgent, name), trace.SpanKindInternal,
			semconv.KeyOperation.String(semconv.OperationInvokeAgent), semconv.KeyAgentName.String(name))
	})
}

// target is the service and model that a call goes to.
type target struct {
	provider, model, server string

	port int
}

// targetOf returns a driver's target for requests that do not name a model.
func targetOf(d agent.Driver) target {
	f := agent.FeaturesOf(d)
	t := target{provider: f.Provider, model: f.Model}
	if t.provider == "" {
		t.provider = semconv.Other
	}
	if u, err := url.Parse(f.Endpoint); err == nil && u.Hostname() != "" {
		t.server = u.Hostname()
		t.port, _ = strconv.Atoi(u.Port())
		if t.port == 0 {
			t.port = map[string]int{"http": 80, "https": 443}[u.Scheme]
		}
	}
	return t
}

// withModel returns the target for a request that names a model.
func (t target) withModel(model string) target {
	if model != "" {
		t.model = model
	}
	return t
}

func (b *spans) chat(t target) *beginning {
	return b.chats.of(t, func(t target) *beginning {
		attributes := []attribute.KeyValue{
			semconv.KeyOperation.String(semconv.OperationChat), semconv.KeyProvider.String(t.provider), semconv.KeyRequestModel.String(t.model),
			semconv.KeyServerAddress.String(t.server),
		}
		if t.server != "" {
			attributes = append(attributes, semconv.KeyServerPort.Int(t.port))
		}
		return begin(spanTitle(semconv.OperationChat, t.model), trace.SpanKindClient, attributes...)
	})
}

// toolOf is an agent's tool.
type toolOf struct{ agent, tool string }

func (b *spans) tool(agentName, tool string) *beginning {
	return b.tools.of(toolOf{agentName, toolName(tool)}, func(t toolOf) *beginning {
		return begin(spanTitle(semconv.OperationExecuteTool, t.tool), trace.SpanKindInternal,
			semconv.KeyOperation.String(semconv.OperationExecuteTool), semconv.KeyToolName.String(t.tool), semconv.KeyToolType.String("function"),
			semconv.KeyAgentName.String(t.agent))
	})
}

// hookAt is a hook at one of its points.
type hookAt struct{ point, hook, kind, mode string }

func (b *spans) hook(h hookAt) *beginning {
	return b.hooks.of(h, func(h hookAt) *beginning {
		return begin(semconv.OperationHook+" "+h.point+" "+h.hook, trace.SpanKindInternal,
			semconv.KeyHook.String(h.hook), semconv.KeyPoint.String(h.point), semconv.KeyHookType.String(h.kind), semconv.KeyHookMode.String(h.mode))
	})
}

// attributes is a list of attributes that is being built. Spans copy their attributes, so lists are reused.
type attributes struct{ list []attribute.KeyValue }

var lists = sync.Pool{New: func() any { return &attributes{make([]attribute.KeyValue, 0, 24)} }}

func someAttributes() *attributes { return lists.Get().(*attributes) } //nolint:forcetypeassert // the pool contains only this type

func (a *attributes) add(kv attribute.KeyValue) { a.list = append(a.list, kv) }

func (a *attributes) text(key attribute.Key, value string) {
	if value != "" {
		a.list = append(a.list, key.String(valid(value)))
	}
}

func (a *attributes) number(key attribute.Key, value int64) {
	if value != 0 {
		a.list = append(a.list, key.Int64(value))
	}
}

func (a *attributes) flag(key attribute.Key, value bool) {
	if value {
		a.list = append(a.list, key.Bool(true))
	}
}

// on sets the attributes on a span and returns the list to the pool.
func (a *attributes) on(span trace.Span) {
	span.SetAttributes(a.list...)
	a.release()
}

func (a *attributes) release() {
	clear(a.list) // so that the pool does not keep texts in memory
	a.list = a.list[:0]
	lists.Put(a)
}
