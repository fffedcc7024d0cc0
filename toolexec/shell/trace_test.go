package shell_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/toolexec/shell"
)

// A command knows which span it is part of, and not one of this program's own start.
func TestACommandIsPartOfItsTrace(t *testing.T) {
	t.Setenv("TRACEPARENT", "00-ff000000000000000000000000000000-ff00000000000000-01")
	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	with := func(flags trace.TraceFlags) context.Context {
		return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, TraceState: state,
		}))
	}
	show := shell.Command{Text: `echo "$TRACEPARENT/$TRACESTATE"`}
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // a case of the table
		change func(*shell.Config)
		want   string
	}{
		"sampled":               {with(trace.FlagsSampled), nil, "00-01000000000000000000000000000000-0200000000000000-01/vendor=1\n"},
		"not sampled":           {with(0), nil, "/\n"},
		"no span":               {t.Context(), nil, "/\n"},
		"before the inherited":  {with(trace.FlagsSampled), func(c *shell.Config) { c.Env = []string{"*"} }, "00-01000000000000000000000000000000-0200000000000000-01/vendor=1\n"},
		"behind the configured": {with(trace.FlagsSampled), func(c *shell.Config) { c.Vars = map[string]string{"TRACEPARENT": "mine"} }, "mine/vendor=1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newShell(t, c.change).Run(c.ctx, show)
			require.NoError(t, err)
			assert.Equal(t, c.want, r.Stdout.Text)
		})
	}
}
