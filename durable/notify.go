package durable

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/grapnel-go/grapnel/agent"
)

// Notifier notifies people that a run waits for one of them. The run is already stored
// and waits even if the notification fails; an error is reported to the agent's observer
// as a NotifyFailed. A Notifier must be safe for concurrent use.
type Notifier interface {
	Notify(ctx context.Context, n Notice) error
}

// NotifierFunc adapts a func to a Notifier.
type NotifierFunc func(ctx context.Context, n Notice) error

// Notify calls f.
func (f NotifierFunc) Notify(ctx context.Context, n Notice) error { return f(ctx, n) }

// notifySafely calls a notifier and returns its panic as an error.
func notifySafely(ctx context.Context, x Notifier, n Notice) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the notifier panicked: %v\n\n%s", v, debug.Stack())
		}
	}()
	return x.Notify(ctx, n)
}

// Notice describes a run that waits for a person.
type Notice struct {
	Run   agent.Run
	Calls []WaitingCall
}

// WaitingCall is a call that waits for a person.
type WaitingCall struct {
	agent.Intervention

	// Token is the right to answer about this call, once: random, in letters that need
	// no escaping in a URL. The store has only its hash. Keep it out of logs.
	Token string
}

// NotifyFailed is the event for the agent's observer when a Notifier fails.
type NotifyFailed struct {
	Run agent.Run
	Err error
}

// EventName returns "notify.failed".
func (NotifyFailed) EventName() string { return "notify.failed" }

// noticeOf returns the notice of a parked run, with a new token for each call that waits.
func noticeOf(s agent.State, tokens bool) Notice {
	n := Notice{Run: s.Run()}
	for _, i := range s.Interventions() {
		call := WaitingCall{Intervention: i}
		if tokens && i.Answer() == nil {
			call.Token = newToken()
		}
		n.Calls = append(n.Calls, call)
	}
	return n
}

// forPeople returns the notice without the calls that only wait for gates.
func (n Notice) forPeople() Notice {
	n.Calls = slices.DeleteFunc(slices.Clone(n.Calls), func(c WaitingCall) bool { return len(forPeople(c.Questions)) == 0 })
	return n
}

// newToken returns 32 random bytes as text.
func newToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// TokenHash returns the hash of a token, which a store keeps instead of the token.
func TokenHash(token string) [32]byte { return sha256.Sum256([]byte(token)) }
