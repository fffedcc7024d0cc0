package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/runctx"
)

// keyVariable is the environment variable that passes the request's IdempotencyKey to processes. keyHeader is the
// header that passes it to web services.
const (
	keyVariable = "GRAPNEL_IDEMPOTENCY_KEY"
	keyHeader   = "Idempotency-Key"
)

// keptPrefix is the prefix of action names in a run's journal.
const keptPrefix = "action "

// Kept reports whether a name in a run's journal belongs to an action. durable.Options.Again receives such names.
func Kept(name string) bool { return strings.Contains("/"+name, "/"+keptPrefix) }

// Keep returns an action that runs at most once for the request r, if the run is durable. The run's journal records the
// action's start and answer. A run may reach the same place again, when it resumes after a crash or a wait. A finished
// action does not run again then: its recorded answer is used. An unfinished or failed action runs again, with the same
// IdempotencyKey. At points where filters apply, Keep does not record controls' answers, because no filter has seen
// them.
//
// The same place means the same hook and Edition, at the same point, step and call, with the same request except for
// times and attempts. If a process asks the same question twice, the second one is a separate action. If the first one
// failed, the second one is a retry.
//
// At a point around runs, the same place means the same hook and Edition in the same Firing, regardless of the request.
// There Keep also records a failure, unless the action was cancelled or killed by a signal. This keeps the
// LAST_HOOK_STATUS of later actions the same.
//
// In a run that is not durable, Keep returns the action unchanged.
func Keep(ctx context.Context, a Action, r *Request) Action {
	j := runctx.JournalOf(ctx)
	if j == nil {
		return a
	}
	cursor, ok := r.cursor()
	if !ok {
		return a // a itself reports the request's error
	}
	at := kept.Get(r.state)
	name, nth := cursor, at.take(r, cursor)
	if nth > 0 {
		name = fmt.Sprintf("%s #%d", cursor, nth+1)
	}
	var tries atomic.Int64
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		full := name
		if r.isFiring() { // failures are recorded, so each try needs its own name
			if try := tries.Add(1); try > 1 {
				full = fmt.Sprintf("%s try %d", name, try)
			}
		}
		var unwritten *Answer
		data, err := j.Once(ctx, r.state, full, true, func(ctx context.Context, key string) ([]byte, error) {
			told := *r
			told.IdempotencyKey = shortHash(key)
			answer, err := a.Do(ctx, &told)
			if fault := r.finalFault(ctx, err); fault != nil {
				return json.Marshal(written{Fault: fault})
			}
			if err != nil || answer == nil {
				return nil, err
			}
			if r.beforeFilters() {
				unwritten = answer
				return nil, errUnwritten
			}
			return json.Marshal(writtenAnswer(answer))
		})
		if !r.isFiring() {
			at.release(r.Step, cursor, nth, err == nil || unwritten != nil)
		}
		if unwritten != nil {
			return unwritten, nil
		}
		if err != nil {
			return nil, err
		}
		return readWritten(full, data)
	})
}

// readWritten returns the answer or failure that was recorded under a name.
func readWritten(name string, data []byte) (*Answer, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("reading the recorded answer of %s: %w", name, err)
	}
	if w.Fault != nil {
		return nil, &Error{Type: w.Fault.Type, Fault: w.Fault.Fault, Err: errors.New(w.Fault.Text)}
	}
	if d := w.Decision; d != nil {
		d.Approvers, d.Quorum, d.Gate = w.Approvers, w.Quorum, w.Gate
	}
	return &Answer{w.Decision, w.Output, w.Truncated, w.Off}, nil
}

// isFiring reports whether the request is about a point around runs.
func (r *Request) isFiring() bool { return r.firing != hooks.Firing{} }

// finalFault returns the failure of an action at a point around runs, in its recorded form. It returns nil if the
// action may not have ended by itself.
func (r *Request) finalFault(ctx context.Context, err error) *writtenFault {
	fault, ok := errors.AsType[*Error](err)
	if !ok || !r.isFiring() || ctx.Err() != nil || fault.Fault == FaultCancelled || fault.Fault == FaultSignal {
		return nil
	}
	return &writtenFault{fault.Type, fault.Fault, fault.Err.Error()}
}

// errUnwritten is returned so that the answer is not recorded.
var errUnwritten = errors.New("the answer is not recorded")

// beforeFilters reports whether filters have yet to process the request's data. The answer is then not recorded. If the
// run is interrupted before the point ends, the action runs again with the same IdempotencyKey.
func (r *Request) beforeFilters() bool {
	switch r.Point {
	case hooks.ToolFailed, hooks.PostToolUse, hooks.PostInference, hooks.PostSubagent:
		return !r.Observer
	}
	return false
}

// written is an Answer's recorded form. It is encoded as it is shown to others, with secrets removed.
type written struct {
	Decision *Decision `json:"decision,omitempty"`
	// Approvers, Quorum and Gate belong to the decision, whose own JSON form omits them.
	Approvers []string    `json:"approvers,omitempty"`
	Quorum    int         `json:"quorum,omitempty"`
	Gate      *agent.Gate `json:"gate,omitempty"`
	Output    string      `json:"output,omitempty"`
	Truncated bool        `json:"truncated,omitempty"`
	Off       bool        `json:"off,omitempty"`
	// Fault is the action's failure. It is nil when the action succeeded.
	Fault *writtenFault `json:"fault,omitempty"`
}

// writtenFault is an Error's recorded form.
type writtenFault struct {
	Type  string `json:"type"`
	Fault Fault  `json:"fault"`
	Text  string `json:"text"`
}

func writtenAnswer(a *Answer) written {
	w := written{Decision: a.Decision, Output: a.Output, Truncated: a.Truncated, Off: a.Off}
	if d := a.Decision; d != nil {
		w.Approvers, w.Quorum, w.Gate = d.Approvers, d.Quorum, d.Gate
	}
	return w
}

// cursor returns the journal name of r's question. A recorded answer is used only for the same question: other
// arguments or rules give another name.
func (r *Request) cursor() (name string, ok bool) {
	if r.isFiring() { // the firing records its request
		return fmt.Sprintf("%s%s %s %s", keptPrefix, r.Hook, r.firing, shortHash(r.Edition)), true
	}
	about := r.sameAgain()
	about.Run, about.Deadline, about.Attempt = agent.Run{}, time.Time{}, 0 // the journal belongs to one run, and times do not matter
	about.Variables.Session, about.SessionID, about.RunID = "", "", ""
	about.Variables.Timestamp, about.Variables.LastHookStatus = "", "" // a second try would see the status of the first
	text, err := about.json()
	if err != nil {
		return "", false
	}
	place := fmt.Sprintf("%s%s %s step %d", keptPrefix, r.Point, r.Hook, r.Step)
	if r.CallID != "" {
		place += fmt.Sprintf(" call %q", r.CallID)
	}
	return place + " " + shortHash(r.Edition+"\n"+string(text)), true
}

// shortHash returns a text's hash as 32 hexadecimal digits.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// askedActions counts how often this process has asked each question in the current step or firing.
type askedActions struct {
	mu    sync.Mutex
	step  int
	asked map[string]int
}

var kept = agent.NewScratch[askedActions](nil)

// take returns the number of earlier equal questions in this step or firing.
func (k *askedActions) take(r *Request, name string) int {
	if r.isFiring() {
		return r.firing.CountUse(name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked == nil || k.step != r.Step {
		k.step, k.asked = r.Step, map[string]int{}
	}
	k.asked[name]++
	return k.asked[name] - 1
}

// release frees the number after a failure, so that the next try reuses it.
func (k *askedActions) release(step int, name string, nth int, well bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.step != step:
	case well:
		k.asked[name] = max(k.asked[name], nth+1)
	case k.asked[name] == nth+1:
		k.asked[name] = nth
	}
}

type idempotencyKey struct{}

// IdempotencyKey returns the IdempotencyKey of the request for which a tool is called, for implementations of
// ToolCaller. It is empty if the request has none.
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}
