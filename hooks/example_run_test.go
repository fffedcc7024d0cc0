package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// show runs a script with hooks and prints how that ended, and what was said.
func show(input string, script *agenttest.Driver, list ...hooks.Hook) {
	hello := toolexec.Func("hello", "Says hello.", func(context.Context, struct{}) (string, error) { return "hello", nil })
	a := builder.New().WithName("helper").WithDriver(script).With(capability.UseTools(hello), capability.UseHooks(list...)).Build().MustGet()
	final, err := a.Run(context.Background(), agent.NewState(), agent.UserText(input)).Get()
	if failed, ok := errors.AsType[*agent.RunError](err); ok {
		final = failed.State
	}
	fmt.Print(final.Status())
	if why := final.StopSignal().Message; why != "" {
		fmt.Print(": ", why)
	}
	fmt.Print("\n", agenttest.Transcript(final))
	a.Cancel()
}

// An input that is denied is not kept, and no model is asked.
func ExampleInputContext_Deny() {
	noSecrets := hooks.On(hooks.AtInputSubmitted, "no-secrets", func(_ context.Context, c hooks.InputContext) hooks.Result {
		if strings.Contains(c.Text(), "sk-") {
			return c.Deny("the input holds a key")
		}
		return c.Allow()
	})
	show("my key is sk-123", agenttest.Script(), noSecrets)
	show("hello", agenttest.Script(agenttest.Say("hi")), noSecrets)
	// Output:
	// denied: the input holds a key
	// done
	// user: hello
	// assistant: hi
}

// The model and the transcript get the input that the hook returns.
func ExampleInputContext_RewriteText() {
	redact := hooks.On(hooks.AtInputSubmitted, "redact", func(_ context.Context, c hooks.InputContext) hooks.Result {
		return c.RewriteText(strings.ReplaceAll(c.Text(), "hunter2", "***"),
			agent.AddContext("The user's password was taken out."))
	})
	show("my password is hunter2", agenttest.Script(agenttest.Say("I can't see it.")), redact)
	// Output:
	// done
	// user: my password is ***
	// user: The user's password was taken out.
	// assistant: I can't see it.
}

// A control between steps may stop the run; its name and reason end up in the
// state.
func ExampleStepContext_Stop() {
	officeHours := hooks.On(hooks.AtStepStart, "office-hours", func(_ context.Context, c hooks.StepContext) hooks.Result {
		if c.StepIndex() > 0 {
			return c.Stop("it is five o'clock")
		}
		return c.Allow()
	})
	show("work", agenttest.Script(agenttest.Call("hello", `{}`)), officeHours)
	// Output:
	// stopped: it is five o'clock
	// user: work
	// assistant calls hello {}
	// tool hello (executed): hello
}

// A reply can be rewritten before a reader sees it; in a stream it is held back until
// then.
func ExampleReplyContext_ReplaceText() {
	calm := hooks.On(hooks.AtPostInference, "calm", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
		return c.ReplaceText(strings.ReplaceAll(c.Text(), "!", "."))
	})
	show("hello", agenttest.Script(agenttest.Say("Hi! So good to see you!")), calm)
	// Output:
	// done
	// user: hello
	// assistant: Hi. So good to see you.
}

// One step can be asked of another model, without the tools.
func ExampleInferenceContext_Rewrite() {
	script := agenttest.Script(agenttest.Say("hi"))
	cheap := hooks.On(hooks.AtPreInference, "cheap", func(_ context.Context, c hooks.InferenceContext) hooks.Result {
		request := c.Request()
		request.Model, request.ToolChoice = "small", agent.ToolsNone
		return c.Rewrite(request)
	})
	show("hello", script, cheap)
	fmt.Println("asked:", script.Calls()[0].Request.Model)
	// Output:
	// done
	// user: hello
	// assistant: hi
	// asked: small
}

// A Stop hook keeps a run from ending too early. It is told how often that was done
// already; after hooks.DefaultContinuations times the run ends all the same.
func ExampleStopContext_Continue() {
	saidHello := hooks.On(hooks.AtStop, "said-hello", func(_ context.Context, c hooks.StopContext) hooks.Result {
		for _, step := range c.State().RunSteps() {
			for tool := range step.Tools() {
				if tool == "hello" {
					return c.Allow()
				}
			}
		}
		return c.Continue("Call the tool hello before you finish.")
	})
	show("be polite", agenttest.Script(agenttest.Say("Done."), agenttest.Call("hello", `{}`), agenttest.Say("Now I am done.")), saidHello)
	// Output:
	// done
	// user: be polite
	// assistant: Done.
	// user: Call the tool hello before you finish.
	// assistant calls hello {}
	// tool hello (executed): hello
	// assistant: Now I am done.
}

// ExecutionEnd is told of every end once: of runs that are done, stopped, failed,
// denied, cancelled or interrupted.
func ExampleEndContext() {
	report := hooks.Observe(hooks.AtExecutionEnd, "report", func(_ context.Context, c hooks.EndContext) error {
		fmt.Printf("%s for %s by %s; error: %v\n", c.Status(), c.Reason().Reason, c.Reason().Source, c.Err() != nil)
		return nil
	})
	show("hello", agenttest.Script(agenttest.Fail(errors.New("the service is down"))), report)
	// Output:
	// failed for error by agent; error: true
	// failed: asking the model: the service is down
	// user: hello
}

// The run does not wait for a detached hook. Drain waits for the detached hooks of an
// agent, Cancel ends them.
func ExampleHook_Detach() {
	notify := hooks.Observe(hooks.AtExecutionEnd, "notify", func(ctx context.Context, c hooks.EndContext) error {
		fmt.Println("sent:", c.Answer()) // to a slow service
		return nil
	}).Detach().WithTimeout(5 * time.Second)

	a := builder.New().WithDriver(agenttest.Script(agenttest.Say("hi"))).With(capability.UseHooks(notify)).Build().MustGet()
	a.Run(context.Background(), agent.NewState(), agent.UserText("hello")).MustGet()
	if err := a.Drain(context.Background()); err != nil { // at shutdown
		fmt.Println(err)
	}
	// Output: sent: hi
}

// The default policy for a control is Closed: a control that could not decide denies, and its text says so. With Open,
// the run continues without it.
func ExampleHook_WithFailure() {
	broken := hooks.On(hooks.AtInputSubmitted, "classifier", func(_ context.Context, c hooks.InputContext) hooks.Result {
		return c.Fail(errors.New("connection refused"))
	})
	show("hello", agenttest.Script(), broken)
	show("hello", agenttest.Script(agenttest.Say("hi")), broken.WithFailure(hooks.Open))
	// Output:
	// denied: the hook could not decide: connection refused
	// done
	// user: hello
	// assistant: hi
}

// A conversation's hooks: the model is shown one hook's additions at the start, and another hook is called at the end.
// Only an agent.Session has a conversation.
func ExamplePoint_conversation() {
	welcome := hooks.On(hooks.AtConversationStart, "welcome", func(_ context.Context, c hooks.ConversationContext) hooks.Result {
		fmt.Println("starts:", c.Conversation().Source)
		return c.Allow(agent.AddContext("Answer in one word."))
	})
	goodbye := hooks.Observe(hooks.AtConversationEnd, "goodbye", func(_ context.Context, c hooks.ConversationEndContext) error {
		fmt.Printf("ends: %s after %d turns\n", c.Conversation().Reason, c.Conversation().Turns)
		return nil
	})

	script := agenttest.Script(agenttest.Say("Hello."), agenttest.Say("Bye."))
	a := builder.New().WithDriver(script).With(capability.UseHooks(welcome, goodbye)).Build().MustGet()
	session := a.Session(agent.NewState())
	session.Run(context.Background(), agent.UserText("Hi!")).MustGet()
	final := session.Run(context.Background(), agent.UserText("Bye!")).MustGet()
	if err := session.CloseWith(context.Background(), "logout"); err != nil {
		fmt.Println(err)
	}
	fmt.Print(agenttest.Transcript(final))
	// Output:
	// starts: startup
	// ends: logout after 2 turns
	// user: Hi!
	// user: Answer in one word.
	// assistant: Hello.
	// user: Bye!
	// assistant: Bye.
}
