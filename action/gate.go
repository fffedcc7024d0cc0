package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/callback"
	"github.com/grapnel-go/grapnel/internal/runctx"
)

// GateBy names what opens a gate.
type GateBy string

// The kinds of gate.
const (
	// GatePerson asks a person through Host.Approver. At PreToolUse it asks as a hook does, so that the run can park.
	GatePerson GateBy = "person"
	// GateCallback waits for a POST to a URL that it creates. Webhook tells a person about that URL.
	GateCallback GateBy = "callback"
	// GateFile waits until a file appears or changes.
	GateFile GateBy = "file"
	// GateCommand runs a command repeatedly until it gives an answer.
	GateCommand GateBy = "command"
)

// Gate waits until it is approved or rejected. The answer is the action's output.
type Gate struct {
	// By is the kind of gate. Required.
	By GateBy
	// Reason is a sentence for the person who is asked. ${NAME} in it stands for a variable.
	Reason string
	// Approvers and Quorum, for persons, say who may answer and how many must approve, as in agent.Question. They
	// require a gate at PreToolUse.
	Approvers []string
	Quorum    int
	// Webhook, for callbacks, is sent once the gate listens, with CALLBACK_URL among its variables. It must succeed,
	// but its response body is ignored. Required for callbacks.
	Webhook *HTTP
	// Port, for callbacks, is the loopback port to listen on. Zero means any free port.
	Port int
	// File, for files, is the file to wait for, relative to Host.Dir. A file that already exists is ignored until it
	// changes, unless Existing is set.
	File     string
	Existing bool
	// Argv, for commands, is the command. Exit code 0 approves, or gives the answer that the command prints. Exit code
	// 1 means not yet.
	Argv []string
	// Every is the interval between two checks by a file or command gate. Zero means one second.
	Every time.Duration
	// Timeout is the time limit. Zero means one hour. OnTimeout is the answer when the limit passes: "reject" or
	// "approve". Empty makes it a failure.
	Timeout   time.Duration
	OnTimeout string
}

const defaultGateEvery = time.Second

var _ Declared = Gate{}

// Type returns "gate".
func (Gate) Type() string { return "gate" }

// Limit returns the longest time that Do may take.
func (g Gate) Limit() time.Duration { return g.maxWait() + ending }

// Validate returns an error for each invalid field.
func (g Gate) Validate() error {
	var p problems
	uses := map[GateBy][]string{
		GatePerson: {"approvers", "quorum"}, GateCallback: {"webhook", "port"}, GateFile: {"file", "existing", "every"}, GateCommand: {"argv", "every"},
	}
	mine, known := uses[g.By]
	if !known {
		p.say("by", "unknown gate %q: expected person, callback, file or command", g.By)
	}
	has := map[string]bool{
		"webhook": g.Webhook != nil, "port": g.Port != 0, "file": g.File != "", "existing": g.Existing, "argv": len(g.Argv) > 0, "every": g.Every != 0,
		"approvers": len(g.Approvers) > 0, "quorum": g.Quorum != 0,
	}
	for _, field := range slices.Sorted(maps.Keys(has)) {
		if known && has[field] && !slices.Contains(mine, field) {
			p.say(field, "not allowed in a gate by %s", g.By)
		}
	}
	needs := map[GateBy]string{GateCallback: "webhook", GateFile: "file", GateCommand: "argv"}
	if field, ok := needs[g.By]; ok && !has[field] {
		p.say(field, "missing: a gate by %s requires it", g.By)
	}
	if g.Webhook != nil {
		for _, f := range Fields(g.Webhook.Validate()) {
			p.say("webhook."+f.Field, "%s", f.Message)
		}
	}
	if g.Quorum < 0 {
		p.say("quorum", "%d is negative: expected how many people must approve", g.Quorum)
	}
	if slices.ContainsFunc(g.Approvers, func(name string) bool { return strings.TrimSpace(name) == "" }) {
		p.say("approvers", "an empty text names no person and no role")
	}
	if g.Port < 0 || g.Port > 65535 {
		p.say("port", "%d is not a port: expected 0 to 65535", g.Port)
	}
	if strings.Contains(g.File+strings.Join(g.Argv, ""), "\x00") {
		p.say("file", "contains a NUL byte")
	}
	if _, ok := callback.Approves(g.OnTimeout); !ok && g.OnTimeout != "" {
		p.say("on_timeout", "unknown value %q: expected reject (or abort) or approve (or continue); omit it to fail", g.OnTimeout)
	}
	p.times(map[string]time.Duration{"timeout": g.Timeout, "every": g.Every})
	return p.join()
}

// Lint returns warnings about probable mistakes.
func (g Gate) Lint() []Warning {
	if g.Webhook == nil {
		return nil
	}
	warnings := g.Webhook.Lint()
	for i := range warnings {
		warnings[i].Field = "webhook." + warnings[i].Field
	}
	told := false
	look := func(name string) (string, bool) { told = told || name == "CALLBACK_URL"; return "", false }
	plain, _ := plainJSON(g.Webhook.Body)
	fillValue(plain, look)
	for _, header := range g.Webhook.Headers {
		expandNames(header, look)
	}
	expandNames(g.Webhook.URL, look)
	told = told || g.Webhook.Body == nil && (len(g.Webhook.Fields) == 0 || slices.Contains(g.Webhook.Fields, "variables"))
	if !told {
		warnings = append(warnings, Warning{Field: "webhook.body", Message: "the message does not tell where to answer: add ${CALLBACK_URL}"})
	}
	return warnings
}

// Action returns the action, ready to run with h.
func (g Gate) Action(h Host) (Action, error) {
	var p problems
	if g.By == GatePerson && h.Approver == nil {
		p.say("by", "no approver configured: set Host.Approver")
	}
	if err := errors.Join(g.Validate(), p.join()); err != nil {
		return nil, err
	}
	var webhook *sender
	if g.By == GateCallback {
		var err error
		if webhook, err = g.Webhook.sender(g.Type(), h); err != nil {
			for _, f := range Fields(err) {
				p.say("webhook."+f.Field, "%s", f.Message)
			}
			return nil, cmp.Or(p.join(), err)
		}
	}
	return actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		asks, place := r.Decides && slices.Contains(r.Decisions, hooks.Ask), runctx.PlaceOf(ctx)
		var what callback.Answer
		var err error
		switch stores := h.Parks && !IsStarted(ctx); {
		case asks && g.By == GatePerson:
			return &Answer{Decision: g.question(r)}, nil
		case asks && stores && runctx.JournalOf(ctx) != nil:
			return g.ask(h, r)
		case stores && place != nil && r.isFiring() && r.Decides:
			what, err = g.awaitStored(ctx, place, h, r)
		default:
			what, err = g.awaitHere(ctx, webhook, h, r)
		}
		if err != nil {
			return nil, err
		}
		return r.verdict(g.Type(), what.Approved, what.Message, what.Text)
	}), nil
}

// ownCallbacks serves gates whose host has no Callbacks. All gates of the process use it, so that they can share ports.
var ownCallbacks Callbacks

// awaitHere returns the answer to a gate that this process waits for.
func (g Gate) awaitHere(ctx context.Context, webhook *sender, h Host, r *Request) (what callback.Answer, err error) {
	limit, cancel := withLimit(ctx, g.maxWait())
	defer cancel()
	if g.By == GatePerson {
		what, err = g.askPerson(limit, h.Approver, r)
	} else {
		var w *WaitingGate
		if w, err = g.newWaiting(h, r); err == nil {
			w.sender = webhook
			what, err = w.await(limit, cmp.Or(h.Callbacks, &ownCallbacks))
		}
	}
	if late, ok := errors.AsType[*Error](err); ok && late.Fault == FaultTimeout && ctx.Err() == nil && limit.Err() != nil {
		return g.afterTimeout()
	}
	return what, err
}

// maxWait returns how long the gate waits for an answer.
func (g Gate) maxWait() time.Duration { return cmp.Or(g.Timeout, defaultGateTimeout) }

// afterTimeout returns the answer when no answer came in time. Without OnTimeout, it returns an error.
func (g Gate) afterTimeout() (callback.Answer, error) {
	text := fmt.Sprintf("no answer within %s", g.maxWait())
	if g.By == GateFile {
		text = fmt.Sprintf("no answer in %s within %s", g.File, g.maxWait())
	}
	if g.OnTimeout == "" {
		return callback.Answer{}, newFault(g.Type(), FaultTimeout, "%s", text)
	}
	return callback.Say(g.OnTimeout, text)
}

// reason returns the sentence that tells the person why the gate asks.
func (g Gate) reason(r *Request) string { return expandNames(g.Reason, r.lookup) }

// question returns the decision that asks a person, at a point where hooks can ask.
func (g Gate) question(r *Request) *Decision {
	d := &Decision{Decision: hooks.Ask, Reason: g.reason(r), Within: g.Timeout.Seconds(), Approvers: g.Approvers, Quorum: g.Quorum}
	if yes, ok := callback.Approves(g.OnTimeout); ok {
		d.OnTimeout = map[bool]string{true: "approve", false: "reject"}[yes]
	}
	return d
}
