package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/guard"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/hostgate"
	"github.com/grapnel-go/grapnel/policy"
)

// Config configures Run.
type Config struct {
	Host hostgate.Host
	// Policies are paths of policy files, or library:NAME. There must be one.
	Policies []string
	// Servers are names of MCP servers: see hostgate.Options.
	Servers []string
	// State is the folder for ledgers. Empty means DefaultState.
	State string
	// Deadline is the time for an answer. It must be shorter than the host's timeout. Zero means DefaultDeadline.
	Deadline time.Duration
}

// DefaultDeadline is below the shortest timeout that a host has if its configuration sets none: 30 seconds.
const DefaultDeadline = 20 * time.Second

// maxEvent is the largest event that is read.
const maxEvent = 32 << 20

// Run reads an event from stdin and writes the answer to stdout, before the deadline. It writes nothing else.
func Run(ctx context.Context, c Config, stdin io.Reader, stdout io.Writer) error {
	deadline := cmp.Or(c.Deadline, DefaultDeadline)
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errDeadline)
	defer cancel()
	var read buffer
	answered := make(chan hostgate.Output, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				answered <- c.refuse(read.bytes(), fmt.Errorf("panic: %v", v))
			}
		}()
		answered <- c.answer(ctx, &read, stdin)
	}()
	var out hostgate.Output
	select {
	case out = <-answered:
	case <-ctx.Done():
		out = c.refuse(read.bytes(), context.Cause(ctx))
	}
	_, err := stdout.Write(out)
	return err
}

var errDeadline = errors.New("the gate did not decide in time")

// buffer is a buffer that one goroutine writes and another reads.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.all.Bytes())
}

func (c Config) refuse(stdin []byte, err error) hostgate.Output {
	return hostgate.Refusal(c.Host, stdin, failureText(err))
}

// failureText tells a failure from a decision.
func failureText(err error) string { return "grapnel gate: not executed: " + err.Error() }

func (c Config) answer(ctx context.Context, read *buffer, stdin io.Reader) hostgate.Output {
	switch n, err := io.Copy(read, io.LimitReader(stdin, maxEvent+1)); {
	case err != nil:
		return c.refuse(read.bytes(), fmt.Errorf("reading the event: %w", err))
	case n > maxEvent:
		return c.refuse(read.bytes(), fmt.Errorf("reading the event: it has more than %d bytes", maxEvent))
	}
	event, err := hostgate.Decode(c.Host, read.bytes(), hostgate.Options{Servers: c.Servers})
	if err != nil {
		return c.refuse(read.bytes(), err)
	}
	answer, err := c.decide(ctx, event)
	if err != nil {
		answer = hostgate.Answer{Decision: hostgate.Deny, Reason: failureText(err)}
	}
	return event.Output(answer)
}

// decide returns the answer to an event.
func (c Config) decide(ctx context.Context, e *hostgate.Event) (hostgate.Answer, error) {
	x := &decider{Config: c, event: e}
	switch {
	case e.Point == hooks.PreToolUse && e.Unclear != "":
		return hostgate.Answer{Decision: hostgate.Deny, Reason: "grapnel gate: " + e.Unclear}, nil
	case e.Point == hooks.PreToolUse, e.IsResult():
		if err := x.loadRules(); err != nil {
			return hostgate.Answer{}, err
		}
	case e.Prompt == "":
		return hostgate.Answer{}, nil
	}
	var answer hostgate.Answer
	err := x.inSession(ctx, func(s *guard.Session) (err error) {
		switch {
		case e.IsResult():
			answer, err = x.review(ctx, s)
		case e.Point == hooks.PreToolUse:
			answer, err = x.judge(ctx, s)
		}
		return err
	})
	return answer, err
}

// decider decides on one event.
type decider struct {
	Config

	event *hostgate.Event
	rules *policy.Policy
	asked []string
}

// loadRules loads the policies, and library:controls below them, which they can disable. Their relative paths are relative
// to the process's folder. Before a call, all rules are loaded, so that a mistake in any of them is a denial. After it, the
// others would only take time.
func (x *decider) loadRules() (err error) {
	if len(x.Policies) == 0 {
		return errors.New("it has no policy: add --policy FILE")
	}
	o := policy.Options{Dir: x.event.Dir}
	if x.event.IsResult() {
		o.Points = []hooks.PointName{hooks.PostToolUse, hooks.ToolFailed}
	}
	x.rules, err = policy.Load([]policy.Layer{
		{Name: "global", Files: []string{"library:controls"}}, {Name: "run", Files: x.Policies},
	}, o)
	return err
}

// Approve asks the host's user where the host can ask. Otherwise the reason for the rejection is the question.
func (x *decider) Approve(_ context.Context, _ agent.State, pending []*agent.Prepared) ([]agent.Approval, error) {
	out := make([]agent.Approval, len(pending))
	for i, p := range pending {
		var reasons []string
		for _, q := range p.Questions() {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", cmp.Or(q.Reason, "approval needed"), q.By))
		}
		question := strings.Join(reasons, "; ")
		x.asked = append(x.asked, question)
		if out[i] = (agent.Approval{Verdict: agent.Approve, By: "the user of " + string(x.Host)}); !x.event.CanAsk() {
			out[i] = agent.Approval{
				Verdict: agent.RejectAndContinue, By: "grapnel gate",
				Reason: question + ": this needs a person's approval, and " + string(x.Host) + " cannot ask for it here: tell the user",
			}
		}
	}
	return out, nil
}

// judge decides on a call and on the calls that it hides. These come first, so that a denial leaves the call itself uncounted.
func (x *decider) judge(ctx context.Context, s *guard.Session) (hostgate.Answer, error) {
	var answer hostgate.Answer
	var added []string
	for i, call := range slices.Backward(x.event.Calls) {
		id := x.event.CallID
		if i > 0 && id != "" {
			id = fmt.Sprintf("%s#%d", id, i)
		}
		v, err := s.Decide(ctx, guard.Call{ID: id, Tool: call.Tool, Arguments: call.Arguments})
		if stop, ok := errors.AsType[*guard.StopError](err); ok {
			return hostgate.Answer{Decision: hostgate.Deny, Reason: stop.Text}, nil
		}
		switch {
		case err != nil:
			return hostgate.Answer{}, err
		case v.Answer != nil && v.Answer.Mocked():
			return hostgate.Answer{Decision: hostgate.Deny, Reason: "not executed, because a rule answers instead: " + v.Answer.Text()}, nil
		case v.Answer != nil:
			return hostgate.Answer{Decision: hostgate.Deny, Reason: v.Answer.Text()}, nil
		case v.Call.Arguments == call.Arguments:
		case i > 0:
			return hostgate.Answer{Decision: hostgate.Deny, Reason: "a rule changes a part of this call that cannot be changed: call " + call.Tool}, nil
		default:
			answer.Arguments = v.Call.Arguments
		}
		for _, effect := range v.Effects.All() {
			if text, ok := effect.Context(); ok {
				added = append(added, text)
			}
		}
	}
	answer.Context = strings.Join(added, "\n")
	if len(x.asked) > 0 {
		answer.Decision, answer.Reason = hostgate.Ask, strings.Join(x.asked, "\n")
	}
	return answer, nil
}

// review filters a result.
func (x *decider) review(ctx context.Context, s *guard.Session) (hostgate.Answer, error) {
	e := x.event
	parts := make([]agent.Part, len(e.Texts))
	for i, text := range e.Texts {
		parts[i] = agent.Text(text)
	}
	content := agent.ContentOf(parts...)
	var failure error
	if e.Failed {
		failure = errors.New(content.Text())
		content = agent.TextContent(fmt.Sprintf("tool %q: failed: %v", e.Calls[0].Tool, failure)) // the guard's text
	}
	r, err := s.Complete(ctx, guard.Call{ID: e.CallID, Tool: e.Calls[0].Tool, Arguments: e.Calls[0].Arguments}, content, failure)
	if r == nil {
		return hostgate.Answer{}, err
	}
	if r.Content.Equal(content) {
		return hostgate.Answer{}, nil
	}
	if note, ok := strings.CutSuffix(r.Text(), content.Text()); ok && r.Rewritten() {
		return hostgate.Answer{Context: strings.TrimSpace(note)}, nil
	}
	if r.Content.Len() != len(e.Texts) || e.Failed {
		return hostgate.Answer{Texts: []string{r.Text()}}, nil
	}
	var answer hostgate.Answer
	for _, part := range r.Content.Parts() {
		answer.Texts = append(answer.Texts, part.Text)
	}
	return answer, nil
}
