package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/term"

	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
)

// shutdownTime is the maximum time to wait at the end until telemetry is sent.
const shutdownTime = 5 * time.Second

// traced is the context key that marks runs whose spans go to a file of the user: such spans contain reasons.
type traced struct{}

// TracesRuns reports whether runs of the context report to OpenTelemetry.
func TracesRuns(ctx context.Context) bool { return ctx.Value(traced{}) != nil }

// WithTelemetry calls f with a context in which runs report to OpenTelemetry, if the environment configures
// it; it writes warnings about the configuration on w. With a path, it writes the spans to that
// file, one JSON object per line, and shows them as a tree on w when f has returned.
func WithTelemetry(ctx context.Context, path string, w io.Writer, f func(context.Context) error) (err error) {
	setup := otelsetup.Config{Service: "grapnel", Console: w}
	var tree *otelsetup.Tree
	if path != "" {
		file, opening := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if opening != nil {
			return Usagef("--trace: %w", opening)
		}
		defer func() {
			if closing := file.Close(); closing != nil {
				err = errors.Join(err, fmt.Errorf("--trace: %w", closing))
			}
		}()
		if tree, setup.Spans, err = spansTo(file); err != nil {
			return fmt.Errorf("--trace %s: %w", path, err)
		}
		ctx = context.WithValue(ctx, traced{}, true)
		setup.Bare = !telemetry.ContentFromEnv() // reasons are only for the file and the tree
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintf(w, "grapnel: warning: telemetry: %v\n", err) }))
	shutdown, err := otelsetup.Start(ctx, setup)
	if err != nil {
		return err
	}
	err = f(telemetry.FromEnviron(ctx, os.Getenv))
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if sending := shutdown(ending); sending != nil {
		fmt.Fprintf(w, "grapnel: telemetry was not sent completely: %v\n", sending)
	}
	if tree != nil {
		showTree(w, path, tree, err)
	}
	return err
}

// spansTo returns a tree of spans, and processors that add each ended span to the tree and write it to the
// file: a run that is killed leaves the spans that had ended.
func spansTo(file *os.File) (*otelsetup.Tree, []sdktrace.SpanProcessor, error) {
	lines, err := stdouttrace.New(stdouttrace.WithWriter(file))
	if err != nil {
		return nil, nil, err
	}
	tree := &otelsetup.Tree{}
	return tree, []sdktrace.SpanProcessor{tree, sdktrace.NewSimpleSpanProcessor(lines)}, nil
}

// showTree writes the tree on w, or the reason why there is none.
func showTree(w io.Writer, path string, tree *otelsetup.Tree, err error) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		tree.Width = WidthOf(f)
	}
	var spans strings.Builder
	_, _ = tree.WriteTo(&spans) // writing to a Builder cannot fail
	_, mistaken := errors.AsType[*UsageError](err)
	switch {
	case spans.Len() > 0:
		fmt.Fprintf(w, "\nThe spans of %s:\n\n%s", path, spans.String())
	case err == nil || !mistaken:
		fmt.Fprintf(w, "grapnel: --trace %s: no spans: OTEL_SDK_DISABLED, OTEL_TRACES_SAMPLER or a TRACEPARENT that is not sampled "+
			"prevents them\n", path)
	}
}
