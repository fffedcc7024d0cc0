package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/mo"

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
func (g Gate) Limit() time.Duration { return cmp.Or(g.Timeout, defaultGateTimeout) + ending }

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
func (g Gate) Action(h Host) mo.Result[Action] {
	var p problems
	if g.By == GatePerson && h.Approver == nil {
		p.say("by", "no approver configured: set Host.Approver")
	}
	if err := errors.Join(g.Validate(), p.join()); err != nil {
		return mo.Err[Action](err)
	}
	var wait func(ctx context.Context, r *Request) (callback.Answer, error)
	switch g.By {
	case GatePerson:
		wait = func(ctx context.Context, r *Request) (callback.Answer, error) { return g.askPerson(ctx, h.Approver, r) }
	case GateCallback:
		s, err := g.Webhook.sender(g.Type(), h)
		if err != nil {
			for _, f := range Fields(err) {
				p.say("webhook."+f.Field, "%s", f.Message)
			}
			return mo.Err[Action](cmp.Or(p.join(), err))
		}
		callbacks := h.Callbacks
		if callbacks == nil {
			callbacks = &ownCallbacks
		}
		wait = func(ctx context.Context, r *Request) (callback.Answer, error) {
			return g.awaitCallback(ctx, callbacks, s, r)
		}
	case GateFile:
		path, err := filepath.Abs(h.directory(g.File))
		if err != nil {
			return mo.Err[Action](&FieldError{"file", err.Error()})
		}
		wait = func(ctx context.Context, _ *Request) (callback.Answer, error) {
			f, err := g.newFileCheck(path)
			if err != nil {
				return callback.Answer{}, err
			}
			return g.await(ctx, func(context.Context) (*callback.Answer, error) { return f.checkFile() })
		}
	case GateCommand:
		run := g.program(h.Dir)
		wait = func(ctx context.Context, r *Request) (callback.Answer, error) {
			return g.await(ctx, func(ctx context.Context) (*callback.Answer, error) { return g.checkCommand(ctx, run, r) })
		}
	}
	return mo.Ok[Action](actionFunc(func(ctx context.Context, r *Request) (*Answer, error) {
		if h.Parks && g.By != GatePerson && canPark(ctx, r) {
			return g.park(h, r)
		}
		if place := runctx.PlaceOf(ctx); h.Parks && place != nil && r.isFiring() && r.Decides && !IsStarted(ctx) {
			return g.parkFiring(ctx, place, h, r)
		}
		return g.answerFor(ctx, r, wait)
	}))
}

// ownCallbacks serves gates whose host has no Callbacks. All gates of the process use it, so that they can share ports.
var ownCallbacks Callbacks

func (g Gate) answerFor(ctx context.Context, r *Request, wait func(ctx context.Context, r *Request) (callback.Answer, error)) (*Answer, error) {
	if g.By == GatePerson && slices.Contains(r.Decisions, hooks.Ask) && r.Decides {
		return &Answer{Decision: g.question(r)}, nil
	}
	limit, cancel := withLimit(ctx, cmp.Or(g.Timeout, defaultGateTimeout))
	defer cancel()
	what, err := wait(limit, r)
	if late, ok := errors.AsType[*Error](err); ok && late.Fault == FaultTimeout && ctx.Err() == nil && limit.Err() != nil && g.OnTimeout != "" {
		what, err = callback.Say(g.OnTimeout, fmt.Sprintf("no answer within %s", cmp.Or(g.Timeout, defaultGateTimeout)))
	}
	if err != nil {
		return nil, err
	}
	return r.verdict(g.Type(), what.Approved, what.Message, what.Text)
}

// canPark reports whether the run can wait for a gate in its store: the run is durable, and hooks can ask at the point.
func canPark(ctx context.Context, r *Request) bool {
	return r.Decides && slices.Contains(r.Decisions, hooks.Ask) && runctx.JournalOf(ctx) != nil && !IsStarted(ctx)
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

// awaitCallback listens, sends the URL with the webhook, and waits for the answer.
func (g Gate) awaitCallback(ctx context.Context, callbacks *Callbacks, s *sender, r *Request) (callback.Answer, error) {
	t, url, err := callbacks.open(g.Port, callback.About{Hook: r.Hook, Agent: r.Run.Agent, Reason: g.reason(r)})
	if err != nil {
		return callback.Answer{}, &Error{g.Type(), FaultStart, err}
	}
	defer callbacks.shut(g.Port, t)
	deadline, _ := ctx.Deadline()
	told := r.until(deadline)
	told.Variables.CallbackURL, told.Question, told.Decides = url, cmp.Or(g.reason(r), r.Question), false
	if _, _, err := s.send(ctx, told); err != nil {
		return callback.Answer{}, err
	}
	select {
	case what := <-t.said:
		return what, nil
	case <-ctx.Done():
		return callback.Answer{}, contextError(ctx, g.Type())
	}
}

// await checks for an answer at each interval until ctx is done. A nil answer means not yet.
func (g Gate) await(ctx context.Context, check func(ctx context.Context) (*callback.Answer, error)) (callback.Answer, error) {
	for {
		switch what, err := check(ctx); {
		case err != nil:
			return callback.Answer{}, err
		case what != nil:
			return *what, nil
		}
		if !sleepFor(ctx, cmp.Or(g.Every, defaultGateEvery)) {
			return callback.Answer{}, contextError(ctx, g.Type())
		}
	}
}
