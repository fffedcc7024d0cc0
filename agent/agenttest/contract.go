package agenttest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

// atOnce is the number of goroutines in a contract test for concurrent use.
const atOnce = 8

// patience is how long a contract test waits for something that must happen soon. A test waits that long only when the
// contract is broken.
var patience = 10 * time.Second

// soon fails the test when f does not return within patience.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		require.FailNow(t, what+" did not return", "waited for %v", patience)
	}
}

// together calls f on several goroutines at the same time and waits for all of them.
func together(f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range atOnce {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// marker is a value in a state. Contract tests use it to check whether the state is kept.
type marker struct {
	_    [64]byte // large enough not to share its memory with other objects
	self *marker
}

var markerKey = agent.SessionKey[*marker]("agenttest.marker")

// checkForgets fails the test if something still references the state after use has returned.
func checkForgets(t *testing.T, what string, use func(s agent.State)) {
	t.Helper()
	held := useMarked(use)
	for range 10 {
		runtime.GC()
		if held.Value() == nil {
			return
		}
	}
	require.FailNow(t, what+" keeps the state", "the state is still reachable after the call returned: keep what "+
		"you need of it, or nothing")
}

//go:noinline
func useMarked(use func(s agent.State)) weak.Pointer[marker] {
	m := &marker{}
	m.self = m
	use(markerKey.In(agent.NewState(agent.UserText("hello")), m))
	return weak.Make(m)
}

// newCancelledContext returns a context that is done.
func newCancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
