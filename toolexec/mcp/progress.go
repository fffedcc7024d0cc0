package mcp

import (
	"strconv"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/agent"
)

// ProgressReported is the event for a server's progress report about a call. The run's observer receives it during the
// call. Reports are dropped after the first thousand, or when they come faster than the observer handles them. All
// content comes from the server.
type ProgressReported struct {
	Run agent.Run
	// Step is the run's number of steps when the call was made.
	Step int
	// Call is the call as it runs.
	Call agent.ToolCall
	// Server is the server's name, Tool the server's own name for the tool.
	Server, Tool string
	// Progress grows from report to report. Total is its final value, zero if unknown.
	Progress, Total float64
	// Message describes the progress. It may be empty. If the tool has controls at ToolFailed or PostToolUse, the
	// message is omitted, because no filter has seen it.
	Message string
}

var _ agent.Event = ProgressReported{}

// EventName returns "mcp.progress".
func (ProgressReported) EventName() string { return "mcp.progress" }

const (
	maxReports = 1000 // for one call
	reportRoom = 32   // reports that wait for the observer
)

// news holds unsolicited information from a server.
type news struct {
	stale   atomic.Bool // the tool list has changed since it was read
	telling atomic.Bool // the SDK is being notified of the change

	mu    sync.Mutex
	last  int
	calls map[string]chan sdk.ProgressNotificationParams
}

// follow returns the token of a new call, its reports, and a func that ends them.
func (n *news) follow() (token string, reports <-chan sdk.ProgressNotificationParams, stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	token = "call-" + strconv.Itoa(n.last)
	c := make(chan sdk.ProgressNotificationParams, reportRoom)
	if n.calls == nil {
		n.calls = map[string]chan sdk.ProgressNotificationParams{}
	}
	n.calls[token] = c
	return token, c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.calls, token)
	}
}

// forwardProgress forwards a report to its call. It never blocks.
func (n *news) forwardProgress(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case n.calls[token] <- *p: // a nil channel never accepts a value
	default:
	}
}

// toolsChanged records that the tool list has changed. It reports whether to notify the SDK, which may cache the list.
func (n *news) toolsChanged() bool {
	n.stale.Store(true)
	return !n.telling.Swap(true)
}

// toldTools records that the SDK was notified, so that it will not use a cached list.
func (n *news) toldTools() {
	n.telling.Store(false)
	n.stale.Store(true)
}
