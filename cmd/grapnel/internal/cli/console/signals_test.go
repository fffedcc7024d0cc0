//go:build unix

package console

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first signal cancels with a cause that says which it was; what was released
// hears nothing more.
func TestInterruptible(t *testing.T) {
	told := make(chan struct{}, 1)
	ctx, release := WithInterrupt(t.Context(), func() { told <- struct{}{} }, func() { t.Error("this was no second signal") })
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	<-ctx.Done()
	<-told
	release()
	assert.Equal(t, &SignalError{os.Interrupt}, context.Cause(ctx))

	ctx, release = WithInterrupt(t.Context(), func() { t.Error("there was no signal") }, func() {})
	release()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)

	never := func() { t.Error("there was no signal") }
	ExitOnSignal(never, never)()
}
