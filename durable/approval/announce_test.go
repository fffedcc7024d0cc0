package approval_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// A run of a process without a notifier gets a link as well, once, however many announcers there are.
func TestAnnounce(t *testing.T) {
	d := park(t, scenario{question: soon, silent: true, calls: []agent.ToolCall{call("c1", carol), call("c2", "{}")}})
	require.Empty(t, d.notice.Calls)
	ctx, cancel := context.WithCancel(t.Context())
	notices := make(chan durable.Notice, 10)
	note := durable.NotifierFunc(func(_ context.Context, n durable.Notice) error { notices <- n; return nil })
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			ended <- approval.Announcer{Store: d.store, Notify: []durable.Notifier{note}, Every: time.Millisecond}.Run(ctx)
		}()
	}
	for len(d.notice.Calls) < 2 { // each announcer may have got one of the two
		n := <-notices
		d.notice.Run = n.Run
		d.notice.Calls = append(d.notice.Calls, n.Calls...)
	}
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	assert.Empty(t, notices, "each wait is announced once")
	assert.Equal(t, "clerk", d.notice.Run.Agent)
	for i, c := range d.notice.Calls {
		assert.Equal(t, http.StatusOK, postOnce(t, d.link(i), d.form(i, "approve")).StatusCode, c.CallID())
	}
	assert.Equal(t, agent.StatusDone, d.goOn(t).Status())
}
