package otelsetup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/telemetry"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup"
	"github.com/grapnel-go/grapnel/telemetry/otelsetup/internal/otlp"
)

// exporter keeps what it is given.
type exporter struct {
	mu      sync.Mutex
	batches []otlp.LogBatch
	at      []time.Time
	err     error         // of every export
	hold    chan struct{} // exports wait until it is closed; nil: they do not
	closed  int
}

func (e *exporter) Export(ctx context.Context, b otlp.LogBatch) error {
	if e.hold != nil {
		select {
		case <-e.hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b.Records = append([]*otlp.LogRecord(nil), b.Records...) // the queue uses the slice again
	e.batches, e.at = append(e.batches, b), append(e.at, time.Now())
	return e.err
}

func (e *exporter) Shutdown(context.Context) error {
	e.closed++
	return nil
}

func (e *exporter) names() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return lo.Map(e.batches, func(b otlp.LogBatch, _ int) []string {
		return lo.Map(b.Records, func(r *otlp.LogRecord, _ int) string { return r.Event })
	})
}

func (e *exporter) records() []*otlp.LogRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return lo.FlatMap(e.batches, func(b otlp.LogBatch, _ int) []*otlp.LogRecord { return b.Records })
}

// handled collects what the error handler of OpenTelemetry is told.
func handled(t *testing.T) func() []string {
	t.Helper()
	var mu sync.Mutex
	var errs []string
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err.Error())
	}))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), errs...)
	}
}

// The handler keeps to the contract of log/slog.
func TestLogsAreASlogHandler(t *testing.T) {
	environment(t)
	var e *exporter
	var shutdown func(context.Context) error
	slogtest.Run(t, func(*testing.T) slog.Handler {
		e = &exporter{}
		var h slog.Handler
		h, shutdown = otelsetup.StartLogs(e, false)
		return h
	}, func(t *testing.T) map[string]any {
		t.Helper()
		require.NoError(t, shutdown(context.Background()))
		require.Len(t, e.records(), 1)
		r := e.records()[0]
		out := asMap(r.Attributes)
		if !r.Time.IsZero() {
			out[slog.TimeKey] = r.Time
		}
		out[slog.LevelKey], out[slog.MessageKey] = r.SeverityText, r.Event
		return out
	})
}

func asMap(list []attribute.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		if kv.Value.Type() == attribute.MAP {
			out[string(kv.Key)] = asMap(kv.Value.AsMap())
		} else {
			out[string(kv.Key)] = kv.Value.AsInterface()
		}
	}
	return out
}

type secretive struct{}

func (secretive) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", "7"), slog.Any("n", slog.Uint64Value(8)))
}

func TestLogRecords(t *testing.T) {
	environment(t)
	e := &exporter{}
	h, shutdown := otelsetup.StartLogs(e, false)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithSpanContext(t.Context(), span)
	l := slog.New(h)
	l.WarnContext(ctx, "an-event", "s", "text", "i", -1, "u", uint64(math.MaxUint64), "f", 1.5, "b", true, "d", time.Second, "t", time.Unix(1, 2),
		"strings", []string{"x", "y"}, "ints", []int{1}, "int64s", []int64{2}, "floats", []float64{0.5}, "bools", []bool{true}, "bytes", []byte("z"),
		"mixed", []any{"x", 1, []any{true}}, "err", errors.New("oh no"), "nil", nil, "who", secretive{}, "odd", struct{ X int }{1})
	child := l.With("a", 1).WithGroup("g").With("b", secretive{})
	child.Info("child", "c", 3)
	child.WithGroup("empty").Info("no more")
	l.With("x", 1).WithGroup("y").Info("lone")
	for level := slog.Level(-30); level <= 30; level++ {
		l.Log(ctx, level, "level")
	}
	require.NoError(t, shutdown(context.Background()))
	records := e.records()
	r := records[0]
	assert.Equal(t, "an-event", r.Event)
	assert.Equal(t, span, r.Span)
	assert.Equal(t, "WARN", r.SeverityText)
	assert.False(t, r.Time.IsZero() || r.Observed.Before(r.Time))
	assert.Equal(t, map[string]any{
		"s": "text", "i": int64(-1), "u": "18446744073709551615", "f": 1.5, "b": true, "d": int64(1_000_000_000), "t": int64(1_000_000_002),
		"strings": []string{"x", "y"}, "ints": []int64{1}, "int64s": []int64{2}, "floats": []float64{0.5}, "bools": []bool{true}, "bytes": []byte("z"),
		"mixed": []attribute.Value{attribute.StringValue("x"), attribute.Int64Value(1), attribute.SliceValue(attribute.BoolValue(true))},
		"err":   "oh no", "nil": "<nil>", "who": map[string]any{"id": "7", "n": int64(8)}, "odd": "{X:1}",
	}, asMap(r.Attributes))
	group := map[string]any{"b": map[string]any{"id": "7", "n": int64(8)}}
	assert.Equal(t, map[string]any{"a": int64(1), "g": group}, asMap(records[2].Attributes))
	group["c"] = int64(3)
	assert.Equal(t, map[string]any{"a": int64(1), "g": group}, asMap(records[1].Attributes))
	assert.Equal(t, map[string]any{"x": int64(1)}, asMap(records[3].Attributes), "an empty group is left out")
	numbers := map[slog.Level]int{}
	for i, r := range records[4:] {
		numbers[slog.Level(i-30)] = r.Severity
	}
	assert.Equal(t, []int{5, 9, 13, 17}, []int{numbers[slog.LevelDebug], numbers[slog.LevelInfo], numbers[slog.LevelWarn], numbers[slog.LevelError]})
	assert.Equal(t, []int{1, 24}, []int{numbers[-30], numbers[30]}, "there are 24")
	assert.Equal(t, semconv.Scope, e.batches[0].Scope.Name)
	assert.Equal(t, "tester", e.batches[0].Resource.Attributes()[0].Value.AsString())
}

// A bare handler exports no sentences, not even from WithAttrs.
func TestBareLogs(t *testing.T) {
	environment(t)
	e := &exporter{}
	h, shutdown := otelsetup.StartLogs(e, true)
	reason := string(semconv.KeyReason)
	l := slog.New(h).With(reason, "a secret", "kept", 1)
	l.Info("first", reason, "another secret", "n", 2)
	l.Info("second")
	l.Info("third")
	require.NoError(t, shutdown(context.Background()))
	assert.Equal(t, map[string]any{"kept": int64(1), "n": int64(2)}, asMap(e.records()[0].Attributes))
	for _, r := range e.records()[1:] {
		assert.Equal(t, map[string]any{"kept": int64(1)}, asMap(r.Attributes), "the attributes of the handler stay as they were: %s", r.Event)
	}
}

// A batch is exported when it is full or when its first event has waited for the delay, and
// what is left when the program ends.
func TestBatchesOfLogs(t *testing.T) {
	environment(t, "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=3")
	synctest.Test(t, func(t *testing.T) {
		e := &exporter{}
		h, shutdown := otelsetup.StartLogs(e, false)
		l, begun := slog.New(h), time.Now()
		for i := range 4 {
			l.Info(fmt.Sprint(i))
		}
		synctest.Wait()
		require.Equal(t, [][]string{{"0", "1", "2"}}, e.names())
		time.Sleep(700 * time.Millisecond)
		l.Info("4")
		time.Sleep(299 * time.Millisecond)
		synctest.Wait()
		require.Len(t, e.names(), 1)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, [][]string{{"0", "1", "2"}, {"3", "4"}}, e.names())
		assert.Equal(t, time.Second, e.at[1].Sub(begun))
		time.Sleep(time.Hour)
		l.Info("5")
		assert.True(t, h.Enabled(t.Context(), slog.LevelDebug))
		require.NoError(t, shutdown(t.Context()))
		require.NoError(t, shutdown(t.Context()), "twice")
		assert.Equal(t, []string{"5"}, e.names()[2])
		assert.Equal(t, 1, e.closed)
		assert.False(t, h.Enabled(t.Context(), slog.LevelError), "nothing costs anything afterwards")
		l.Info("6")
		require.NoError(t, h.Handle(t.Context(), slog.NewRecord(time.Now(), slog.LevelInfo, "7", 0)))
		assert.Len(t, e.names(), 3)
	})
}

// Agents never wait for an exporter: events that find the queue full are dropped, and the
// program is told how many.
func TestAFullQueueOfLogs(t *testing.T) {
	environment(t, "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=2", "OTEL_BLRP_MAX_QUEUE_SIZE=5")
	errs := handled(t)
	synctest.Test(t, func(t *testing.T) {
		e := &exporter{hold: make(chan struct{})}
		h, shutdown := otelsetup.StartLogs(e, false)
		l := slog.New(h)
		l.Info("0")
		l.Info("1")
		synctest.Wait() // the exporter has these, and hangs
		for i := 2; i < 10; i++ {
			l.Info(fmt.Sprint(i))
		}
		assert.Empty(t, errs())
		close(e.hold)
		synctest.Wait()
		assert.Equal(t, []string{"log events: dropped 3 because the queue of 5 was full: raise OTEL_BLRP_MAX_QUEUE_SIZE"}, errs())
		require.NoError(t, shutdown(t.Context()))
		assert.Equal(t, [][]string{{"0", "1"}, {"2", "3"}, {"4", "5"}, {"6"}}, e.names())
		assert.Len(t, errs(), 1, "they are told once")
	})
}

// An exporter that hangs is cancelled after its time, and a shutdown does not wait for it
// longer than its context.
func TestAnExporterThatHangs(t *testing.T) {
	environment(t)
	errs := handled(t)
	synctest.Test(t, func(t *testing.T) {
		e := &exporter{hold: make(chan struct{})}
		h, shutdown := otelsetup.StartLogs(e, false)
		begun := time.Now()
		slog.New(h).Info("lost")
		time.Sleep(31*time.Second - time.Nanosecond)
		synctest.Wait()
		require.Empty(t, errs())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, []string{context.DeadlineExceeded.Error()}, errs(), "a second of delay and thirty of time")

		slog.New(h).Info("lost, too")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, 36*time.Second, time.Since(begun))
		synctest.Wait()
		assert.Equal(t, 1, e.closed, "the goroutine has ended")
		assert.Empty(t, e.names())
	})
}

// Errors go to the error handler of OpenTelemetry while the program runs, and to the caller of
// shutdown in the end.
func TestErrorsOfLogs(t *testing.T) {
	environment(t)
	errs := handled(t)
	synctest.Test(t, func(t *testing.T) {
		e := &exporter{err: errors.New("out of paper")}
		h, shutdown := otelsetup.StartLogs(e, false)
		slog.New(h).Info("one")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"out of paper"}, errs())
		slog.New(h).Info("two")
		require.ErrorContains(t, shutdown(t.Context()), "out of paper")
		assert.Len(t, errs(), 1)
	})
}

func TestLimitsOfLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs        []string
		queue, batch int
		delay        time.Duration
		timeout      time.Duration
		told         string
	}{
		"usual": {nil, 2048, 512, time.Second, 30 * time.Second, ""},
		"set": {[]string{"OTEL_BLRP_MAX_QUEUE_SIZE=10", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE= 4 ", "OTEL_BLRP_SCHEDULE_DELAY=20", "OTEL_BLRP_EXPORT_TIMEOUT=30"},
			10, 4, 20 * time.Millisecond, 30 * time.Millisecond, ""},
		"a batch above the queue": {[]string{"OTEL_BLRP_MAX_QUEUE_SIZE=10"}, 10, 10, time.Second, 30 * time.Second, ""},
		"no number":               {[]string{"OTEL_BLRP_SCHEDULE_DELAY=soon"}, 2048, 512, time.Second, 30 * time.Second, `OTEL_BLRP_SCHEDULE_DELAY: expected a number from 1 to 1099511627776, got "soon"`},
		"zero":                    {[]string{"OTEL_BLRP_EXPORT_TIMEOUT=0"}, 2048, 512, time.Second, 30 * time.Second, `OTEL_BLRP_EXPORT_TIMEOUT: expected a number from 1 to 1099511627776, got "0"`},
		"below":                   {[]string{"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=-1"}, 2048, 512, time.Second, 30 * time.Second, `_BATCH_SIZE: expected a number from 1 to 1048576, got "-1"`},
		"more than memory":        {[]string{"OTEL_BLRP_MAX_QUEUE_SIZE=999999999999999"}, 2048, 512, time.Second, 30 * time.Second, `from 1 to 1048576, got "999999999999999": using 2048`},
		"longer than a clock":     {[]string{"OTEL_BLRP_EXPORT_TIMEOUT=9223372036854775"}, 2048, 512, time.Second, 30 * time.Second, `using 30000`},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, tc.pairs...)
			errs := handled(t)
			queue, batch, delay, timeout := otelsetup.LogLimits()
			assert.Equal(t, []any{tc.queue, tc.batch, tc.delay, tc.timeout}, []any{queue, batch, delay, timeout})
			if tc.told == "" {
				assert.Empty(t, errs())
			} else {
				assert.Contains(t, strings.Join(errs(), "\n"), tc.told)
			}
		})
	}
}

// A line of the console says all that a record has. One that JSON cannot express does not keep
// the others back.
func TestConsoleLogs(t *testing.T) {
	environment(t, "OTEL_LOGS_EXPORTER=console", "OTEL_SERVICE_NAME=mine")
	var out bytes.Buffer
	shutdown, err := otelsetup.Start(t.Context(), otelsetup.Config{Console: &out})
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	tell(trace.ContextWithSpanContext(t.Context(), span), "first")
	tell(t.Context(), "second")
	require.NoError(t, shutdown(context.Background()))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	var line struct {
		Timestamp, ObservedTimestamp time.Time

		EventName, SeverityText, TraceID, SpanID, TraceFlags string

		Severity             int
		Attributes, Resource []struct {
			Key   string
			Value struct{ Type, Value any }
		}
		Scope struct{ Name string }
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	assert.Equal(t, "grapnel.run.ended", line.EventName)
	assert.Equal(t, 9, line.Severity)
	assert.Equal(t, "INFO", line.SeverityText)
	assert.Equal(t, "01000000000000000000000000000000 0200000000000000 01", line.TraceID+" "+line.SpanID+" "+line.TraceFlags)
	assert.Equal(t, semconv.Scope, line.Scope.Name)
	assert.False(t, line.Timestamp.IsZero() || line.ObservedTimestamp.Before(line.Timestamp))
	text := fmt.Sprint(line.Attributes, line.Resource)
	for _, want := range []string{"{gen_ai.agent.name {STRING first}}", "{grapnel.run.steps {INT64 1}}", "{service.name {STRING mine}}"} {
		assert.Contains(t, text, want)
	}
	assert.Contains(t, lines[1], "second")
	assert.Contains(t, lines[1], `"TraceID":"00000000000000000000000000000000"`)
}

func TestConsoleLogsThatAreNoJSON(t *testing.T) {
	environment(t)
	errs := handled(t)
	var out bytes.Buffer
	h, shutdown := otelsetup.StartLogs(otelsetup.ConsoleLogs(&out), false)
	l := slog.New(h)
	l.Info("one", "f", math.NaN())
	l.Info("two", "s", "\xff<")
	require.ErrorContains(t, shutdown(context.Background()), "log event one")
	assert.Contains(t, out.String(), `"EventName":"two"`)
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	assert.Empty(t, errs())
}

// alone is a writer that notes whether two write at once.
type alone struct {
	writing, together atomic.Int64
}

func (a *alone) Write(p []byte) (int, error) {
	if a.writing.Add(1) > 1 {
		a.together.Add(1)
	}
	for range 10 {
		runtime.Gosched()
	}
	a.writing.Add(-1)
	return len(p), nil
}

func TestConsoleExportersWriteOneAtATime(t *testing.T) {
	var to alone
	w := otelsetup.LockWriter(&to)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				_, _ = w.Write([]byte("x"))
			}
		})
	}
	all.Wait()
	assert.Zero(t, to.together.Load())
}

// What is told after the shutdown goes nowhere, until the program sets another handler.
func TestLogsAfterTheEnd(t *testing.T) {
	environment(t, "OTEL_LOGS_EXPORTER=console")
	var out, own bytes.Buffer
	stop := start(t, otelsetup.Config{Console: &out})
	stop()
	tell(t.Context(), "late")
	assert.Empty(t, out.String())
	telemetry.SetDefaultLogs(slog.NewJSONHandler(&own, nil))
	tell(t.Context(), "later")
	assert.Contains(t, own.String(), "later")
}
