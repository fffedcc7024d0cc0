package modeltest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/internal/modeltest"
)

// altered is a driver whose calls go through two funcs.
type altered struct {
	chat
	before func(context.Context) context.Context
	after  func(mo.Result[agent.Step]) mo.Result[agent.Step]
}

func (d altered) Next(ctx context.Context, s agent.State) mo.Result[agent.Step] {
	return d.after(d.chat.Next(d.before(ctx), s))
}

func (d altered) Stream(ctx context.Context, s agent.State, emit func(agent.Delta)) mo.Result[agent.Step] {
	return d.after(d.chat.Stream(d.before(ctx), s, emit))
}

func keepContext(ctx context.Context) context.Context { return ctx }

func failureFixture(f func(*drivers.Error) error) func(chat) agent.Driver {
	return func(c chat) agent.Driver {
		return altered{c, keepContext, func(r mo.Result[agent.Step]) mo.Result[agent.Step] {
			if e, ok := errors.AsType[*drivers.Error](r.Error()); ok {
				return mo.Err[agent.Step](f(e))
			}
			return r
		}}
	}
}

func answering(f func(agent.Step) agent.Step) func(chat) agent.Driver {
	return func(c chat) agent.Driver {
		return altered{c, keepContext, func(r mo.Result[agent.Step]) mo.Result[agent.Step] {
			return r.MapValue(f)
		}}
	}
}

// broken lists drivers with a fault, each with the part of TestFaults that finds it and the expected message.
var broken = map[string]struct {
	make func(chat) agent.Driver
	part string
	says string
}{
	"takes half a stream for a whole": {func(c chat) agent.Driver { c.lenient = true; return c }, "broken_stream", "the service failed, but the driver returned an answer"},
	"tells the key":                   {func(c chat) agent.Driver { c.tellsKey = true; return c }, "error/blocking", "the API key is in the text of an error"},
	"tells the key underneath": {failureFixture(func(e *drivers.Error) error {
		e.Err = errors.New("sent with " + modeltest.Key)
		return e
	}), "error/blocking", "the API key is in the text of an error"},
	"shows a part of the key": {failureFixture(func(e *drivers.Error) error { e.Message = modeltest.Key[:12]; return e }),
		"secrets_in_errors/blocking", "a part of the key"},
	"follows redirects": {func(c chat) agent.Driver { c.client = &http.Client{Transport: c.client.Transport}; return c },
		"redirect/streaming", "the service failed, but the driver returned an answer"},
	"sends what is no request": {func(c chat) agent.Driver { c.sendsAll = true; return c }, "request_that", "the service failed, but the driver returned an answer"},
	"tries again by itself":    {func(c chat) agent.Driver { c.tries = 2; return c }, "error/streaming", "should have 1 item(s), but has 2"},
	"tells of failures in its own way": {failureFixture(func(e *drivers.Error) error { return fmt.Errorf("failed: %s", e.Message) }),
		"error/blocking", "the error is not a *drivers.Error"},
	"does not tell failures apart":  {failureFixture(func(e *drivers.Error) error { e.Kind = agent.KindModel; return e }), "error/blocking", "the kind of"},
	"does not say how long to wait": {failureFixture(func(e *drivers.Error) error { e.After = 0; return e }), "error/blocking", "the time before a retry"},
	"does not say why":              {failureFixture(func(e *drivers.Error) error { e.Message = ""; return e }), "error/blocking", "what the service said"},
	"does not look at its context": {func(c chat) agent.Driver {
		return altered{c, context.WithoutCancel, func(r mo.Result[agent.Step]) mo.Result[agent.Step] { return r }}
	}, "cancelled", "the driver did not return"},
	"leaves something running": {func(c chat) agent.Driver {
		return altered{c, func(ctx context.Context) context.Context {
			go func() { time.Sleep(time.Minute) }()
			return ctx
		}, func(r mo.Result[agent.Step]) mo.Result[agent.Step] { return r }}
	}, "cancelled", "goroutines left running"},
	"mends arguments": {answering(func(s agent.Step) agent.Step {
		if s.Message.CallCount() > 0 {
			s.Message = s.Message.WithCalls(agent.ToolCall{ID: "call_a", Name: "echo", Arguments: "{}"})
		}
		return s
	}), "malformed", "the arguments as the model wrote them"},
	"cuts what is long": {answering(func(s agent.Step) agent.Step {
		s.Message = agent.Assistant(s.Message.Text()[:min(len(s.Message.Text()), 1<<16)])
		return s
	}), "huge", "the text of 65536 bytes"},
	"forgets the finish reason": {answering(func(s agent.Step) agent.Step { s.FinishReason = ""; return s }), "good_answer", "the finish reason"},
}

// The test binary runs itself to see tests fail.
const brokenTest = "MODELTEST_BROKEN"

func TestWhatIsBrokenIsFound(t *testing.T) {
	for name, driver := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$/"+driver.part, "-test.timeout=60s")
			cmd.Env = append(os.Environ(), brokenTest+"="+name)
			out, err := cmd.CombinedOutput()
			assert.Error(t, err, "the tests passed")
			assert.Contains(t, string(out), driver.says)
			assert.NotContains(t, string(out), "\ngoroutine ", "the tests panicked")
		})
	}
}

func TestBroken(t *testing.T) {
	name := os.Getenv(brokenTest)
	if name == "" {
		t.Skip("this is run by TestWhatIsBrokenIsFound")
	}
	if broken[name].part == "cancelled" {
		modeltest.SetPatience(200 * time.Millisecond)
	}
	modeltest.TestFaults(t, chatService(broken[name].make))
}
