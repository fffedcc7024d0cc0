package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
)

// shutdownTime is how long is waited for telemetry to be sent at the end.
const shutdownTime = 5 * time.Second

// traced is the key of a context under which spans are written to a file of the user's:
// they say why, not only what.
type traced struct{}

func tracing(ctx context.Context) bool { return ctx.Value(traced{}) != nil }

// telemetered calls f with a context under which runs are seen through OpenTelemetry,
// where the environment says so. With a path, the spans are written to that file, a
// JSON object a line, and shown as a tree on w when f has returned.
func telemetered(ctx context.Context, path string, w io.Writer, f func(context.Context) error) (err error) {
	setup := otelsetup.Config{Service: "grapnel", Console: w}
	var tree *otelsetup.Tree
	if path != "" {
		file, opening := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if opening != nil {
			return &usageError{fmt.Errorf("--trace: %w", opening)}
		}
		defer func() {
			if closing := file.Close(); closing != nil {
				err = errors.Join(err, fmt.Errorf("--trace: %w", closing))
			}
		}()
		lines, making := stdouttrace.New(stdouttrace.WithWriter(file))
		if making != nil {
			return fmt.Errorf("--trace %s: %w", path, making)
		}
		tree = &otelsetup.Tree{}
		ctx = context.WithValue(ctx, traced{}, true)
		setup.Spans = []sdktrace.SpanProcessor{tree, sdktrace.NewBatchSpanProcessor(lines)}
	}
	shutdown, err := otelsetup.Start(ctx, setup)
	if err != nil {
		return &usageError{err}
	}
	err = f(telemetry.FromEnviron(ctx, os.Getenv))
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if sending := shutdown(ending); sending != nil {
		fmt.Fprintf(w, "grapnel: telemetry was not sent whole: %v\n", sending)
	}
	if tree != nil {
		fmt.Fprintf(w, "\nThe spans of %s:\n\n", path)
		if _, showing := tree.WriteTo(w); showing != nil && err == nil {
			return showing
		}
	}
	return err
}
