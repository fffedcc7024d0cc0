package otelsetup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnel-go/grapnel/internal/semconv"
)

// maxTree is the maximum number of spans in a tree. More spans are only counted.
const maxTree = 100_000

// A Tree collects ended spans and prints them as a tree, with their durations and the hooks' decisions. Add it to
// Config.Spans. The zero Tree is empty. It is safe for concurrent use.
type Tree struct {
	// Width, unless 0, is the maximum number of columns in a line from WriteTo. Longer lines continue below, broken
	// between words.
	Width int

	mu      sync.Mutex
	spans   []sdktrace.ReadOnlySpan
	dropped int
}

var _ sdktrace.SpanProcessor = (*Tree)(nil)

// OnStart ignores the span, because only ended spans are stored.
func (*Tree) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd stores the span.
func (t *Tree) OnEnd(s sdktrace.ReadOnlySpan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.spans) >= maxTree {
		t.dropped++
		return
	}
	t.spans = append(t.spans, s)
}

// ForceFlush returns nil, because nothing is buffered.
func (*Tree) ForceFlush(context.Context) error { return nil }

// Shutdown returns nil. The stored spans can still be written.
func (*Tree) Shutdown(context.Context) error { return nil }

// WriteTo writes the spans, one per line, in the order in which they began. It can be called at any time.
func (t *Tree) WriteTo(w io.Writer) (int64, error) {
	t.mu.Lock()
	all, dropped := slices.Clone(t.spans), t.dropped
	t.mu.Unlock()
	slices.SortStableFunc(all, func(a, b sdktrace.ReadOnlySpan) int {
		return cmp.Or(a.StartTime().Compare(b.StartTime()), a.EndTime().Compare(b.EndTime()))
	})
	there := lo.SliceToMap(all, func(s sdktrace.ReadOnlySpan) (trace.SpanID, bool) { return s.SpanContext().SpanID(), true })
	below := lo.GroupBy(all, func(s sdktrace.ReadOnlySpan) trace.SpanID {
		return lo.Ternary(there[s.Parent().SpanID()], s.Parent().SpanID(), trace.SpanID{})
	})
	var b strings.Builder
	t.writeBranch(&b, below, trace.SpanID{}, "", true)
	if dropped > 0 {
		fmt.Fprintf(&b, "… and %d more\n", dropped)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// writeBranch writes the spans below a span.
func (t *Tree) writeBranch(b *strings.Builder, below map[trace.SpanID][]sdktrace.ReadOnlySpan, id trace.SpanID, indent string, root bool) {
	for i, s := range below[id] {
		last := i == len(below[id])-1
		twig, more := lo.Ternary(last, "└─ ", "├─ "), lo.Ternary(last, "   ", "│  ")
		if root {
			twig, more = "", ""
		}
		text := fmt.Sprintf("%s  %s", harmlessText(shortenText(s.Name())), roundDuration(s.EndTime().Sub(s.StartTime())))
		if more := describeSpan(s); more != "" {
			text += "  " + more
		}
		b.WriteString(indent + twig)
		t.writeWrapped(b, text, utf8.RuneCountInString(indent+twig), indent+more+"     ")
		t.writeBranch(b, below, s.SpanContext().SpanID(), indent+more, false)
	}
}

// writeWrapped writes a text after the first column characters of its line. Further lines begin with rest.
func (t *Tree) writeWrapped(b *strings.Builder, text string, column int, rest string) {
	for i, word := range strings.Split(text, " ") { // unlike strings.Fields, Split keeps double spaces
		switch size := utf8.RuneCountInString(word); {
		case i == 0:
			column += size
		case t.Width > 0 && column+1+size > t.Width && word != "":
			b.WriteString("\n" + rest)
			column = utf8.RuneCountInString(rest) + size
		default:
			b.WriteByte(' ')
			column += 1 + size
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
}

// roundDuration rounds a duration to three digits.
func roundDuration(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// describeSpan returns a span's description.
func describeSpan(s sdktrace.ReadOnlySpan) string {
	set := attribute.NewSet(s.Attributes()...)
	has := func(key attribute.Key) string {
		v, _ := set.Value(key)
		return lo.Ternary(set.HasValue(key), harmlessText(v.String()), "")
	}
	with := func(before string, keys ...attribute.Key) string {
		values := lo.Compact(lo.Map(keys, func(k attribute.Key, _ int) string { return has(k) }))
		return lo.Ternary(len(values) > 0, before+strings.Join(values, " "), "")
	}
	parts := []string{
		with("", semconv.KeyStatus), with("", semconv.KeyOutcome),
		lo.Ternary(has(semconv.KeyHookOutcome) == "complete" || has(semconv.KeyHookOutcome) == "blocked", "", with("", semconv.KeyHookOutcome)),
		with("", semconv.KeyDecision),
		with("by ", semconv.KeyWinner), with("by ", semconv.KeyStopSource),
		lo.Ternary(has(semconv.KeyRewritten) != "", "rewritten", ""), with("result replaced by ", semconv.KeyResultBy),
	}
	why := lo.Uniq(lo.Compact([]string{
		has(semconv.KeyStopReason), has(semconv.KeyReasonCode), has(semconv.KeyHookReasonCode), has(semconv.KeyFailMode),
	}))
	if len(why) > 0 {
		parts = append(parts, "("+strings.Join(why, ", ")+")")
	}
	if in, out := has(semconv.KeyInputTokens), has(semconv.KeyOutputTokens); in+out != "" {
		parts = append(parts, cmp.Or(in, "0")+" → "+cmp.Or(out, "0")+" tokens")
	}
	v, _ := set.Value(semconv.KeyReason)
	reason := shortenText(v.AsString())
	if s.Status().Code == codes.Error {
		parts = append(parts, "ERROR", lo.Ternary(reason == "", harmlessText(shortenText(s.Status().Description)), ""))
	}
	if reason != "" {
		parts = append(parts, strconv.Quote(reason))
	}
	return strings.Join(lo.Compact(parts), " ")
}

// harmlessText sanitizes a text for a terminal, because models choose tool names and tools choose error texts.
func harmlessText(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// maxSentence is the maximum number of bytes that are shown of any text.
const maxSentence = 400

func shortenText(text string) string {
	if len(text) <= maxSentence {
		return text
	}
	return strings.ToValidUTF8(text[:maxSentence], "") + "…"
}
