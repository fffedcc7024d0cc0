package durable_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// agesIn returns the values of grapnel.approval.age, by the kind of wait.
func agesIn(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	ages := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "grapnel.approval.age" {
				continue
			}
			assert.Equal(t, "s", m.Unit)
			for _, p := range m.Data.(metricdata.Gauge[float64]).DataPoints {
				kind, _ := p.Attributes.Value(attribute.Key("grapnel.wait.kind"))
				ages[kind.AsString()] = p.Value
			}
		}
	}
	return ages
}

// waiting begins a run that waits for answers since some hours.
func waiting(t *testing.T, s durable.Store, id agent.RunID, kind durable.WaitKind, hours int) {
	t.Helper()
	l, err := s.Begin(t.Context(), durable.Job{ID: id}, "one", time.Hour)
	require.NoError(t, err)
	w := durable.Wait{ID: "c", Kind: kind, Subject: "h", Asked: time.Now().Add(-time.Duration(hours) * time.Hour)}
	require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{w}}}))
	require.NoError(t, s.Release(t.Context(), l, 0))
}

// The gauge grows while no person answers, and falls with the answer. It needs no key of an encrypted store.
func TestMeasureApprovals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	store := openEncrypted(t, path, durable.Encryption{Key: keyA})
	reader := sdkmetric.NewManualReader()
	measure := durable.ApprovalMeter(openEncrypted(t, path, durable.Encryption{Key: keyB}), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	require.NoError(t, measure(t.Context()))
	assert.Equal(t, map[string]float64{"approval": 0, "doubt": 0, "input": 0}, agesIn(t, reader))

	waiting(t, store, "newer", durable.WaitApproval, 1)
	waiting(t, store, "oldest", durable.WaitApproval, 5)
	waiting(t, store, "form", durable.WaitInput, 3)
	waiting(t, store, "file", durable.WaitFile, 9)
	waiting(t, store, "later", durable.WaitDoubt, -1) // the clock of another machine
	const hour, slack = 3600, 60
	require.NoError(t, measure(t.Context()))
	ages := agesIn(t, reader)
	assert.InDelta(t, 5*hour, ages["approval"], slack)
	assert.InDelta(t, 3*hour, ages["input"], slack)
	assert.Zero(t, ages["doubt"])
	assert.Len(t, ages, 3, "people do not answer other waits")

	require.NoError(t, store.Answer(t.Context(), "oldest", durable.Answers(durable.Answer{Wait: "c"})))
	require.NoError(t, store.Answer(t.Context(), "form", durable.Answers(durable.Answer{Wait: "c"})))
	require.NoError(t, measure(t.Context()))
	ages = agesIn(t, reader)
	assert.InDelta(t, hour, ages["approval"], slack)
	assert.Zero(t, ages["input"])

	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, durable.ApprovalMeter(brokenWaits{store}, nil)(ctx), "without a provider nothing is read")
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	durable.MeasureApprovals(ctx, brokenWaits{store}, provider, func(err error) { cancel(err) })
	require.ErrorIs(t, context.Cause(ctx), errBrokenWaits)
}

var errBrokenWaits = errors.New("no waits today")

// brokenWaits fails to list waits.
type brokenWaits struct{ durable.Store }

func (brokenWaits) OpenWaits(context.Context, durable.WaitFilter) ([]durable.Wait, error) {
	return nil, errBrokenWaits
}
