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
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/once"
)

// keyVariable is the environment variable that carries the request's IdempotencyKey to processes, keyHeader the header
// that carries it to web services.
const (
	keyVariable = "GRAPNEL_IDEMPOTENCY_KEY"
	keyHeader   = "Idempotency-Key"
)

// keptPrefix is the prefix of the names of actions in the journal of a run.
const keptPrefix = "action "

// Kept reports whether a name in the journal of a run, such as the names passed to durable.Options.Again, belongs to an
// action.
func Kept(name string) bool { return strings.Contains("/"+name, "/"+keptPrefix) }

// Keep returns an action that runs at most once for the request r, if the run is durable. The journal of the run records
// the start of the action and its answer. When the run resumes after a crash or a wait and reaches the same place, a
// finished action does not run again: its recorded answer is used. An unfinished or failed action runs again, with the
// same IdempotencyKey. At points where filters apply, Keep does not record the answers of controls, because no filter has
// seen them.
//
// The same place means the same hook of the same Edition, at the same point, step and call, with the same request except
// for times and attempts. If a process asks the same again, that is a separate action, unless the earlier one failed:
// then it is another try of it.
//
// In a run that is not durable, Keep returns the action unchanged.
func Keep(ctx context.Context, a Action, r *Request) Action {
	j := once.From(ctx)
	if j == nil {
		return a
	}
	name, ok := r.cursor()
	if !ok {
		return a // a itself reports what is wrong with the request
	}
	at := kept.Get(r.state)
	nth := at.take(r.Step, name)
	full := name
	if nth > 0 {
		full = fmt.Sprintf("%s #%d", name, nth+1)
	}
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		var unwritten *Answer
		data, err := j.Once(ctx, r.state, full, true, func(ctx context.Context, key string) ([]byte, error) {
			told := *r
			told.IdempotencyKey = shortHash(key)
			answer, err := a.Do(ctx, &told).Get()
			if err != nil || answer == nil {
				return nil, err
			}
			if r.beforeFilters() {
				unwritten = answer
				return nil, errUnwritten
			}
			return json.Marshal(written(*answer))
		})
		at.release(r.Step, name, nth, err == nil || unwritten != nil)
		if unwritten != nil {
			return unwritten, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			return nil, nil
		}
		var answer written
		if err := json.Unmarshal(data, &answer); err != nil {
			return nil, fmt.Errorf("reading the recorded answer of %s: %w", full, err)
		}
		return (*Answer)(&answer), nil
	})
}

// errUnwritten keeps an answer from being recorded.
var errUnwritten = errors.New("the answer is not recorded")

// beforeFilters reports whether filters have yet to process the data in the request. The answer is then not recorded: if
// the run is interrupted before the point ends, the action runs again, with the same IdempotencyKey.
func (r *Request) beforeFilters() bool {
	switch r.Point {
	case hooks.ToolFailed, hooks.PostToolUse, hooks.PostInference, hooks.PostSubagent:
		return !r.Observer
	}
	return false
}

// written is the recorded form of an Answer: encoded as it is shown to others, with secrets removed.
type written struct {
	Decision  *Decision `json:"decision,omitempty"`
	Output    string    `json:"output,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Off       bool      `json:"off,omitempty"`
}

// cursor returns the journal name of the question that r asks. A recorded answer is used only for the same question:
// other arguments or other rules give another name.
func (r *Request) cursor() (name string, ok bool) {
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

// shortHash returns a hash of a text: 32 hexadecimal digits.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// keptActions counts how often this process has asked each question in the current step of a run.
type keptActions struct {
	mu    sync.Mutex
	step  int
	asked map[string]int
}

var kept = agent.NewScratch[keptActions](nil)

// take returns the number of earlier equal questions in this step.
func (k *keptActions) take(step int, name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked == nil || k.step != step {
		k.step, k.asked = step, map[string]int{}
	}
	k.asked[name]++
	return k.asked[name] - 1
}

// release frees the number after a failure, so that the next try reuses it.
func (k *keptActions) release(step int, name string, nth int, well bool) {
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

// IdempotencyKey returns the IdempotencyKey of the request that a tool is called for. It is for implementations of
// ToolCaller. It is empty where the request has none.
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}
