package condition

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/hooks/hookstest"
)

const benchArguments = `{"command":"git status --short && go test ./...","cwd":"/srv/app","timeout":120,"flags":{"force":false}}`

// typical lists conditions as they occur in policies.
var typical = []string{
	`args.command.startsWith("rm ")`,
	`args.command.contains("--force") && !args.command.contains("--dry-run")`,
	`has(args.timeout) && args.timeout > 600`,
	`agent == "release" || args.cwd != vars.workspace`,
	`args.flags.force`,
	`${ITERATION} > 5 && ${STAGE} == 'work'`,
	`usage.tokens > 100000`,
	`args.cwd in vars.places`,
	`glob(args.command, "curl *")`,
	`call.index > 10 && run.depth == 0`,
}

func benchLanguage(tb testing.TB) []*Condition {
	tb.Helper()
	l, err := New(Options{Variables: map[string]any{"workspace": "/srv/app", "places": []any{"/", "/etc"}}})
	require.NoError(tb, err)
	var out []*Condition
	for _, text := range typical {
		c, err := l.Compile(text, hooks.PreToolUse)
		require.NoError(tb, err)
		out = append(out, c)
	}
	return out
}

// inCall calls f with the context of a tool call.
func inCall(tb testing.TB, arguments string, f func(ctx context.Context, c hooks.ToolContext)) {
	tb.Helper()
	hook := hooks.On(hooks.AtPreToolUse, "here", func(ctx context.Context, c hooks.ToolContext) hooks.Result {
		f(ctx, c)
		return c.Pass()
	})
	fired, err := hookstest.ToolCall("bash", arguments).Fire(context.Background(), hooks.NewSet(hook)).Get()
	require.NoError(tb, err)
	require.Contains(tb, fired.Called, "here")
}

// another returns the input for a new call.
func another(c hooks.ToolContext) Input {
	now, _ := calledAt(c)
	return Input{new(memory).callEvent(c, now)}
}

func BenchmarkDecide(b *testing.B) {
	conditions := benchLanguage(b)
	test := func(b *testing.B, ctx context.Context, c *Condition, in Input) { //nolint:thelper // Helper would take measured time
		if yes, err := c.Test(ctx, in); yes || err != nil {
			b.Fatal(c, yes, err)
		}
	}
	for i, c := range conditions {
		b.Run(fmt.Sprint("one/", i), func(b *testing.B) {
			inCall(b, benchArguments, func(ctx context.Context, at hooks.ToolContext) {
				b.ReportAllocs()
				for b.Loop() {
					test(b, ctx, c, Of(at))
				}
			})
		})
	}
	b.Run("first of a call", func(b *testing.B) {
		inCall(b, benchArguments, func(ctx context.Context, at hooks.ToolContext) {
			b.ReportAllocs()
			for b.Loop() {
				test(b, ctx, conditions[0], another(at))
			}
		})
	})
	b.Run("ten of a hundred", func(b *testing.B) {
		inCall(b, benchArguments, func(ctx context.Context, at hooks.ToolContext) {
			b.ReportAllocs()
			for b.Loop() {
				in := another(at)
				for _, c := range conditions {
					test(b, ctx, c, in)
				}
			}
		})
	})
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	l, err := New(Options{Variables: map[string]any{"workspace": "/srv/app", "places": []any{"/", "/etc"}}})
	require.NoError(b, err)
	for b.Loop() {
		for _, text := range typical {
			if _, err := l.Compile(text, hooks.PreToolUse); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		l, err := New(Options{})
		if err == nil {
			_, err = l.dialectAt(hooks.PreToolUse)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
