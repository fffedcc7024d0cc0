package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnel-go/grapnel/bench"
	"github.com/grapnel-go/grapnel/capability"
)

// What is called the same is the same: grapnel and the loop that is instrumented by
// hand make spans of the same names below the same parents, and a chat or a tool call
// of grapnel says no less.
func TestSpansByHandAreThoseOfGrapnel(t *testing.T) {
	job := bench.Job{Steps: 3}
	ours := record(t, job, func(p sdktrace.SpanProcessor) bench.Contender {
		return variant("grapnel", "", capability.UseTelemetry{Tracers: recording(p)})
	})
	theirs := record(t, job, func(p sdktrace.SpanProcessor) bench.Contender { return byHand("bare", recording(p)) })

	assert.Len(t, theirs, 1+2*job.Steps+1) // the run, each step, the answer
	require.Len(t, ours, len(theirs))
	for i, span := range theirs {
		assert.Equal(t, span.name, ours[i].name)
		assert.Equal(t, span.parent, ours[i].parent, span.name)
		assert.Subset(t, ours[i].keys, span.keys, span.name)
		t.Logf("%-16s by hand %d attributes, grapnel %d", span.name, len(span.keys), len(ours[i].keys))
	}
}

type seen struct {
	name, parent string
	keys         []string
}

func record(t *testing.T, job bench.Job, with func(sdktrace.SpanProcessor) bench.Contender) []seen {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	run, err := with(recorder).Prepare(job)
	require.NoError(t, err)
	_, err = run(t.Context())
	require.NoError(t, err)
	names := map[string]string{}
	for _, span := range recorder.Started() {
		names[span.SpanContext().SpanID().String()] = span.Name()
	}
	var all []seen
	for _, span := range recorder.Ended() {
		keys := map[string]bool{}
		for _, kv := range span.Attributes() {
			keys[string(kv.Key)] = true
		}
		all = append(all, seen{span.Name(), names[span.Parent().SpanID().String()], slices.Sorted(maps.Keys(keys))})
	}
	return all
}
