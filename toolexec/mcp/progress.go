package mcp

import (
	"strconv"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnel-go/grapnel/agent"
)

// ProgressReported is the event of a server that says how far a call has come. The run's observer is told of it while
// the call is under way; what comes faster than the observer takes it, or after the first thousand, is dropped. All of
// it is the server's word.
type ProgressReported struct {
	Run agent.Run
	// Step is the number of steps that the run had taken when the call was made.
	Step int
	// Call is the call as it runs.
	Call agent.ToolCall
	// Server and Tool are the server's name, and its own for the tool.
	Server, Tool string
	// Progress grows from report to report; Total is what it grows to, zero when that is not known.
	Progress, Total float64
	// Message is what is being done; it may be empty. Where controls at ToolFailed or PostToolUse see what the tool
	// says, it is left out: no filter has seen it.
	Message string
}

var _ agent.Event = ProgressReported{}

// EventName returns "mcp.progress".
func (ProgressReported) EventName() string { return "mcp.progress" }

const (
	maxReports = 1000 // of a call
	reportRoom = 32   // reports that wait for the observer
)

// news is what a server tells without being asked.
type news struct {
	stale   atomic.Bool // the list of tools has changed since it was read
	telling atomic.Bool // the SDK is being told so

	mu    sync.Mutex
	last  int
	calls map[string]chan sdk.ProgressNotificationParams
}

// follow returns the token of a new call, its reports, and what ends them.
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

// forwardProgress passes a report on to its call. It never waits.
func (n *news) forwardProgress(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case n.calls[token] <- *p: // a nil channel takes nothing
	default:
	}
}

// toolsChanged notes that the list of tools has changed, and reports whether the SDK, which may keep the list, is to
// be told.
func (n *news) toolsChanged() bool {
	n.stale.Store(true)
	return !n.telling.Swap(true)
}

// toldTools says that the SDK has been told: what it lists from here on is new.
func (n *news) toldTools() {
	n.telling.Store(false)
	n.stale.Store(true)
}
