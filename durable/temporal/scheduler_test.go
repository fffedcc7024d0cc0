package temporal_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
	"github.com/grapnel-go/grapnel/durable/memory"
	"github.com/grapnel-go/grapnel/durable/temporal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T) durable.Store {
	t.Helper()
	store := memory.New()
	return store
}

func openScheduler(t *testing.T, address string, o temporal.Options) *temporal.Scheduler {
	t.Helper()
	s, err := temporal.Open(t.Context(), address, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// fixedQueues returns the same queues each time: those of jobs with the names.
func fixedQueues(names ...string) func(context.Context) ([]durable.Needs, error) {
	return func(context.Context) ([]durable.Needs, error) {
		var queues []durable.Needs
		for _, name := range names {
			queues = append(queues, needs(name))
		}
		return queues, nil
	}
}

func needs(name string) durable.Needs { return durable.Needs{Kind: durable.KindAgent, Name: name} }

func offer(run string, seq int64, name string) durable.Offer {
	return durable.Offer{OfferID: durable.OfferID{Run: agent.RunID(run), Seq: seq}, Key: needs(name).Key()}
}

var anyWorker = durable.WorkerInfo{Owner: "one", TTL: time.Minute, Serves: func(durable.Needs) bool { return true }}

// next waits for a delivery.
func next(t *testing.T, s *temporal.Scheduler) durable.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	d, err := s.Next(ctx, anyWorker)
	require.NoError(t, err)
	return d
}

// nextNone checks that there is no delivery for a while.
func nextNone(t *testing.T, s *temporal.Scheduler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	d, err := s.Next(ctx, anyWorker)
	require.ErrorIs(t, err, context.DeadlineExceeded, "%v", d)
}

// inBothModes runs a test with workflows and with activities.
func inBothModes(t *testing.T, test func(t *testing.T, f *fakeServer)) {
	t.Helper()
	for _, activities := range []bool{false, true} {
		t.Run(fmt.Sprintf("activities=%t", activities), func(t *testing.T) { test(t, startFake(t, activities)) })
	}
}

func TestScheduler(t *testing.T) {
	inBothModes(t, func(t *testing.T, f *fakeServer) {
		t.Helper()
		count := 0
		durabletest.TestScheduler(t, func(t *testing.T, s durable.Store) durable.Scheduler {
			t.Helper()
			count++
			opened := openScheduler(t, f.address, temporal.Options{Queues: s.Queues, Prefix: strconv.Itoa(count)})
			assert.Equal(t, f.activities, temporal.UsesActivities(opened))
			return opened
		}, openStore)
	})
}

func TestWorkflowsOnRequest(t *testing.T) {
	s := openScheduler(t, startFake(t, true).address, temporal.Options{Queues: fixedQueues(), Workflows: true})
	assert.False(t, temporal.UsesActivities(s))
}

func TestOpenErrors(t *testing.T) {
	f := startFake(t, true)
	queues := fixedQueues("a")
	for want, try := range map[string]struct {
		address string
		options temporal.Options
	}{
		`"localhost" is not HOST:PORT`:        {"localhost", temporal.Options{Queues: queues}},
		"no queues":                           {f.address, temporal.Options{}},
		"an API key requires TLS":             {f.address, temporal.Options{Queues: queues, APIKey: "key"}},
		`namespace "other"`:                   {f.address, temporal.Options{Queues: queues, Namespace: "other"}},
		"connecting to Temporal at 127.0.0.1": {"127.0.0.1:1", temporal.Options{Queues: queues}},
	} {
		_, err := temporal.Open(t.Context(), try.address, try.options)
		assert.ErrorContains(t, err, want)
	}
}

// An offer is one execution, however often it is made, and also one whose execution an operator has ended.
func TestOfferStartsOneExecution(t *testing.T) {
	inBothModes(t, func(t *testing.T, f *fakeServer) {
		t.Helper()
		s := openScheduler(t, f.address, temporal.Options{Queues: fixedQueues("a")})
		first, second := offer("r", 1, "a"), offer("r", 2, "a")
		require.NoError(t, s.Offer(t.Context(), first, first))
		require.NoError(t, s.Offer(t.Context(), first))
		require.Len(t, f.requests(), 1)
		require.NoError(t, s.Offer(t.Context(), second))
		require.NoError(t, s.Offer(t.Context(), first), "late")
		require.Len(t, f.requests(), 2)
		assert.Equal(t, int64(2), temporal.RequestSeq(f.requests()[1]))
		assert.Equal(t, second.OfferID, next(t, s).ID())

		f.deleteAll()
		require.NoError(t, s.Offer(t.Context(), second))
		d := next(t, s)
		assert.Equal(t, second.OfferID, d.ID())
		require.NoError(t, d.Ack(t.Context()))
		nextNone(t, s)
	})
}

// A delivery that another offer has replaced, or that the server has forgotten, can be acknowledged and returned.
func TestForgottenDelivery(t *testing.T) {
	inBothModes(t, func(t *testing.T, f *fakeServer) {
		t.Helper()
		s := openScheduler(t, f.address, temporal.Options{Queues: fixedQueues("a")})
		require.NoError(t, s.Offer(t.Context(), offer("r", 1, "a")))
		d := next(t, s)
		require.NoError(t, s.Offer(t.Context(), offer("r", 2, "a")))
		require.NoError(t, d.Return(t.Context()))
		require.NoError(t, d.Ack(t.Context()))
		d = next(t, s)
		assert.Equal(t, int64(2), d.ID().Seq)
		f.failMethod("RespondWorkflowTaskCompleted", connect.NewError(connect.CodeUnavailable, errors.New("no server")))
		f.failMethod("RespondActivityTaskCompleted", connect.NewError(connect.CodeUnavailable, errors.New("no server")))
		require.ErrorContains(t, d.Ack(t.Context()), "acknowledging the delivery of run r")
	})
}

// A scheduler polls each queue once for all workers, and only while one of them waits.
func TestPolls(t *testing.T) {
	f := startFake(t, true)
	s := openScheduler(t, f.address, temporal.Options{Queues: fixedQueues("a", "b")})
	a, b := temporal.TaskQueue("grapnel", needs("a").Key()), temporal.TaskQueue("grapnel", needs("b").Key())
	assert.Empty(t, f.waitingPolls())
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			_, err := s.Next(ctx, anyWorker)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	each := map[string]int{a: 1, b: 1}
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(each, f.waitingPolls()) }, 10*time.Second, time.Millisecond)
	time.Sleep(2 * fakePoll) // they poll again
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(each, f.waitingPolls()) }, 10*time.Second, time.Millisecond)
	cancel()
	group.Wait()
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(map[string]int{a: 0, b: 0}, f.waitingPolls()) }, 10*time.Second, time.Millisecond)
}

// What arrives while no worker waits is kept for a moment, and then returned, so that other workers get it.
func TestSurplus(t *testing.T) {
	inBothModes(t, func(t *testing.T, f *fakeServer) {
		t.Helper()
		s := openScheduler(t, f.address, temporal.Options{Queues: fixedQueues("a", "b", "c")})
		other := openScheduler(t, f.address, temporal.Options{Queues: fixedQueues("a", "b", "c")})
		var group sync.WaitGroup
		group.Go(func() {
			assert.NoError(t, next(t, s).Ack(t.Context())) // polls all three
		})
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, s.Offer(t.Context(), offer("1", 1, "a"), offer("2", 1, "b"), offer("3", 1, "c")))
		group.Wait()
		for range 2 {
			require.NoError(t, next(t, other).Ack(t.Context()))
		}
		nextNone(t, s)
	})
}

func TestNextErrors(t *testing.T) {
	f := startFake(t, true)
	failing := errors.New("no database")
	s := openScheduler(t, f.address, temporal.Options{Queues: func(context.Context) ([]durable.Needs, error) { return nil, failing }})
	_, err := s.Next(t.Context(), anyWorker)
	require.ErrorIs(t, err, failing)

	s = openScheduler(t, f.address, temporal.Options{Queues: fixedQueues("a")})
	f.failMethod("PollActivityTaskQueue", connect.NewError(connect.CodeResourceExhausted, errors.New("too many polls")))
	_, err = s.Next(t.Context(), anyWorker)
	require.ErrorContains(t, err, "too many polls")
	f.failMethod("PollActivityTaskQueue", nil)
	require.NoError(t, s.Offer(t.Context(), offer("r", 1, "a")))
	require.NoError(t, next(t, s).Ack(t.Context()))

	var group sync.WaitGroup
	group.Go(func() {
		_, err := s.Next(t.Context(), anyWorker)
		assert.ErrorContains(t, err, "closed")
	})
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, s.Close())
	group.Wait()
	_, err = s.Next(t.Context(), anyWorker)
	require.ErrorContains(t, err, "closed")
}

func TestTLS(t *testing.T) {
	f := startFake(t, true)
	var keys []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"), r.Header.Get("Temporal-Namespace"))
		f.handler.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s := openScheduler(t, server.Listener.Addr().String(), temporal.Options{
		Queues: fixedQueues("a"), TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, APIKey: "secret",
	})
	require.NoError(t, s.Offer(t.Context(), offer("r", 1, "a")))
	assert.Equal(t, []string{"Bearer secret", "default"}, keys[:2])
	require.NoError(t, s.Close())
}

// The server refuses long IDs and IDs that are not UTF-8.
func TestExecutionID(t *testing.T) {
	assert.Equal(t, "p-run", temporal.ExecutionID("p", "run"))
	for _, run := range []string{string(make([]byte, 5000)), "\xff"} {
		assert.Regexp(t, `^p-[0-9a-f]{64}$`, temporal.ExecutionID("p", run))
	}
	assert.Equal(t, int64(12), temporal.RequestSeq(temporal.RequestID(12)))
	assert.Equal(t, int64(-1), temporal.RequestSeq("of another program"))
}
