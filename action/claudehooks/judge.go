package claudehooks

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// answer is a handler's answer, after the rules for exit codes and failures.
type answer struct {
	*handler
	output
	// isBlocked reports that exit code 2, or a failure that counts as it, blocks for a reason.
	isBlocked bool
	why       string
	// failure describes a failure; empty if there was none. hasFailed reports that it blocks.
	failure   string
	hasFailed bool
}

// missing is how shells and interpreters complain about a script that is not there.
var missing = regexp.MustCompile(`(?i)no such file or directory|cannot find module|can't open file|command not found`)

// judge applies the rules for exit codes, output and failures to an execution.
func (s *Set) judge(h *handler, f *firing, x execution) answer {
	a := answer{handler: h}
	matched := ""
	if len(f.values) > 0 {
		matched = ":" + f.values[0]
	}
	where := fmt.Sprintf("%s%s hook error: [%s]: ", h.event, matched, h.label())
	var failed string
	switch {
	case x.timedOut:
		failed = "timed out"
	case x.err != nil:
		failed, x.stderr = "failed", x.err.Error()
	default:
		a.output = readOutput(h.event, x.stdout)
		blocking, blocks := a.blocks(h.event)
		excused := h.event == stopEvent || h.event == subagentStop || h.event == userPromptSubmit && h.plugin != ""
		switch {
		case x.exit == 2 && excused && strings.TrimSpace(x.stdout) == "" && missing.MatchString(x.stderr):
			failed = "failed"
		case x.exit == 2:
			a.isBlocked, a.why = true, where+strings.TrimSpace(x.stderr)
			if blocks && blocking != "" {
				a.why = blocking
			} else if h.event == stopEvent || h.event == subagentStop || h.event == userPromptSubmit {
				a.why = strings.TrimSpace(x.stderr)
			}
			if missing.MatchString(x.stderr) && x.stdout == "" {
				a.failure = where + "exit code 2 denies, but the script seems to be missing: " + firstLineOf(x.stderr)
			}
			return a
		case a.broken != "":
			failed, x.stderr = "failed", strings.TrimSpace(a.broken+"\n"+x.stderr)
		case x.exit == 0:
			return a
		case a.isJSON && (blocks || !s.closes(h)):
			return a
		default:
			failed = "failed"
			if strings.TrimSpace(x.stderr) == "" {
				x.stderr = fmt.Sprintf("exit code %d", x.exit)
			}
		}
	}
	a.output = output{hints: a.hints}
	if s.closes(h) {
		a.isBlocked, a.hasFailed = true, true
		a.why = strings.TrimSpace(fmt.Sprintf("%s%s; blocking because onFailure is \"block\"\n%s", where, failed, x.stderr))
		if h.onFailure == "" {
			a.why = strings.Replace(a.why, `because onFailure is "block"`, "because hooks that cannot decide block", 1)
		}
		a.failure = a.why
		return a
	}
	a.failure = where + failed + ": " + firstLineOf(x.stderr)
	return a
}

// closes reports whether the handler's failure blocks.
func (s *Set) closes(h *handler) bool {
	return (h.onFailure == "block" || h.onFailure == "" && !s.options.Compat) && !h.isAsync && !events[h.event].ignoresFailure
}

// matching returns the event's handlers that match, each once.
func (s *Set) matching(f *firing) (out []*handler) {
	seen := map[string]bool{}
	for _, h := range s.handlers[f.event] {
		if seen[h.key] || len(f.values) > 0 && !h.matcher.matches(f.values...) || !h.only.holds(f.tool, f.input, s.options.Dir, s.options.Dir) {
			continue
		}
		seen[h.key] = true
		out = append(out, h)
	}
	return out
}

// fire runs the handlers together, waits for them, and returns their answers in configuration order.
func (s *Set) fire(ctx context.Context, f *firing, list []*handler) ([]answer, error) {
	answers := make([]answer, len(list))
	var wait sync.WaitGroup
	for i, h := range list {
		wait.Go(func() { answers[i] = s.run(ctx, h, f) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err() // a cancellation is no answer
	}
	for _, a := range answers {
		s.tell(f, a)
	}
	return slices.DeleteFunc(answers, func(a answer) bool { return a.handler == nil }), nil
}

// run runs one handler. For a handler in the background it returns the zero answer.
func (s *Set) run(ctx context.Context, h *handler, f *firing) answer {
	limit := h.timeoutOf()
	if f.limit > 0 {
		limit = f.limit
	}
	if h.isAsync && h.timeout == 0 {
		limit = 24 * time.Hour // there is no limit but the end of the program
	}
	inside, cancel := context.WithCancel(s.ctx)
	unlink := context.AfterFunc(ctx, cancel)
	done, isAsync := make(chan execution, 1), make(chan struct{})
	if h.isAsync {
		unlink()
	}
	if !s.begin() {
		cancel()
		return s.judge(h, f, execution{err: errors.New("the hooks are closed")})
	}
	// The values of ctx are for tools and models; commands need none.
	inside = valuesOfContext{inside, ctx}
	go func() {
		defer s.background.Done()
		defer cancel()
		x := s.start(inside, h, f, limit, isAsync)
		done <- x
		select {
		case <-isAsync:
			s.deliver(h, f, x)
		default:
			if h.isAsync {
				s.deliver(h, f, x)
			}
		}
	}()
	if h.isAsync {
		return answer{}
	}
	select {
	case x := <-done:
		unlink()
		return s.judge(h, f, x)
	case <-isAsync:
		unlink()
		return answer{}
	}
}

// valuesOfContext has the values of another context.
type valuesOfContext struct {
	context.Context                 //nolint:containedctx // it is one
	values          context.Context //nolint:containedctx // see above
}

func (c valuesOfContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// deliver keeps a background handler's context until the model's next turn.
func (s *Set) deliver(h *handler, f *firing, x execution) {
	if first, rest, ok := strings.Cut(x.stdout, "\n"); ok && strings.Contains(first, `"async"`) {
		x.stdout = rest
	}
	a := s.judge(h, f, x)
	defer s.tell(f, a)
	var texts []string
	if a.isJSON && a.Context != "" {
		texts = append(texts, a.Context)
	}
	if h.wakes && x.exit == 2 && x.err == nil && !x.timedOut {
		text := strings.TrimSpace(x.stderr)
		if text == "" {
			text = strings.TrimSpace(x.stdout)
		}
		f.session.wake(text)
	}
	f.session.add(texts...)
}

// tell passes on what the user should know.
func (s *Set) tell(f *firing, a answer) {
	if a.handler == nil || s.options.Notify == nil {
		return
	}
	about := events[f.event]
	n := Notice{Event: f.event, Hook: a.label()}
	for _, hint := range a.hints {
		if _, known := s.hinted.LoadOrStore(a.key+hint, true); !known {
			n.Text, n.Failed = hint, false
			s.options.Notify(n)
		}
	}
	if a.failure != "" {
		n.Text, n.Failed = a.failure, true
		s.options.Notify(n)
	}
	if a.isBlocked && a.failure == "" && !about.blocks && f.event != permissionRequest {
		n.Text, n.Failed = a.why, false
		s.options.Notify(n)
	}
	if a.SystemMessage != "" && !about.dropsMessage && !about.isDeaf {
		n.Text, n.Failed = a.SystemMessage, false
		s.options.Notify(n)
	}
}
