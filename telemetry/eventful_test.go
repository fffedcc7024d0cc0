package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

// secret is planted wherever a hook can take it out again.
const secret = "sk-planted-7f3a"

func clean(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }

type nothing struct{}

func says(name, text string, err error) toolexec.Tool {
	return toolexec.Func(name, "A tool.", func(context.Context, nothing) (string, error) { return text, err })
}

// eventful returns capabilities for a run in which everything happens: a denial, a rewrite, and a mock. A result, an
// error, the input and a reply are redacted. A hook panics and a tool fails. One call has wrong arguments, and one has
// no tool. A Stop hook wants more, and a hook is detached.
func eventful() []capability.Capability {
	type path struct {
		Path string `json:"path"`
	}
	write := toolexec.Func("write", "Writes.", func(_ context.Context, in path) (string, error) { return "wrote " + in.Path, nil })
	at := hooks.AtPreToolUse
	return []capability.Capability{
		capability.UseTools(says("read", "the key is "+secret, nil), says("push", "pushed", nil), write, says("deploy", "deployed", nil),
			says("fail", "", errors.New("cannot reach "+secret)), says("odd", "odd", nil)),
		capability.UseHooks(
			hooks.On(hooks.AtInputSubmitted, "clean-input", func(_ context.Context, c hooks.InputContext) hooks.Result {
				return c.RewriteText(clean(c.Text()))
			}),
			hooks.On(hooks.AtPostInference, "clean-reply", func(_ context.Context, c hooks.ReplyContext) hooks.Result {
				if !strings.Contains(c.Text(), secret) {
					return c.Allow()
				}
				return c.ReplaceText(clean(c.Text()))
			}),
			hooks.On(at, "no-push", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Deny("not on a Friday") }, hooks.ToolNamed("push")),
			hooks.On(at, "below-tmp", func(_ context.Context, c hooks.ToolContext) hooks.Result {
				return c.Rewrite(map[string]string{"path": "/tmp/x"})
			}, hooks.ToolNamed("write")),
			hooks.On(at, "dry-run", func(_ context.Context, c hooks.ToolContext) hooks.Result { return c.Mock("would deploy") }, hooks.ToolNamed("deploy")),
			hooks.On(at, "broken", func(context.Context, hooks.ToolContext) hooks.Result { panic("oh no") }, hooks.ToolNamed("odd")),
			hooks.On(hooks.AtPostToolUse, "redact", func(_ context.Context, c hooks.ToolResultContext) hooks.Result {
				if !strings.Contains(c.Text(), secret) {
					return c.Allow()
				}
				return c.Replace(clean(c.Text()))
			}),
			hooks.On(hooks.AtStop, "thorough", func(_ context.Context, c hooks.StopContext) hooks.Result {
				if c.Continuations() > 0 {
					return c.Allow()
				}
				return c.Continue("look again")
			}),
			hooks.Observe(hooks.AtExecutionEnd, "notify", func(context.Context, hooks.EndContext) error { return nil }).Detach(),
		),
	}
}

func eventfulScript() *agenttest.Driver {
	return agenttest.Script(
		agenttest.Say("I use tools.").Call("read", `{}`).Call("push", `{}`).Call("write", `{"path":"/etc/x"}`).Call("deploy", `{}`).
			Call("fail", `{}`).Call("odd", `{}`).Call("read", `{"paht":"/tmp"}`).Call("nosuch", `{}`).WithTokens(100, 20),
		agenttest.Say("Done with "+secret).WithTokens(200, 10),
		agenttest.Say("Done.").WithTokens(300, 5),
	)
}

func runEventful(t *testing.T, use capability.UseTelemetry) {
	t.Helper()
	a := build(t, eventfulScript(), append(eventful(), use)...)
	final, err := a.Run(t.Context(), agent.NewState(), agent.UserText("use "+secret)).Get()
	require.NoError(t, err)
	require.Equal(t, agent.StatusDone, final.Status())
	require.NoError(t, a.Drain(t.Context()))
}

// Names, parents, who decided what, and what failed.
func TestEverythingHasItsSpan(t *testing.T) {
	s := newSink(t)
	runEventful(t, s.use())
	assert.Equal(t, eventfulTree, s.tree())
}

// eventfulTree is the run's trace.
const eventfulTree = `invoke_agent helper: done completed agent
  hook InputSubmitted clean-input: control complete rewrite
  chat small
    hook PostInference clean-reply: control complete allow
  execute_tool read: executed redact
    hook PostToolUse redact: control complete replace
  execute_tool push: denied no-push denied
    hook PreToolUse no-push: control blocked deny
    hook PostToolUse redact: control complete allow
  execute_tool write: executed below-tmp true
    hook PreToolUse below-tmp: control complete rewrite
    hook PostToolUse redact: control complete allow
  execute_tool deploy: mocked dry-run
    hook PreToolUse dry-run: control complete mock
    hook PostToolUse redact: control complete allow
  execute_tool fail: failed error redact error [Error]
    hook PostToolUse redact: control complete replace
  execute_tool odd: denied broken hook_failed
    hook PreToolUse broken: control failed closed panic [Error]
    hook PostToolUse redact: control complete allow
  execute_tool read: failed invalid_arguments invalid_arguments [Error]
    hook PostToolUse redact: control complete allow
  execute_tool nosuch: failed unknown_tool unknown_tool [Error]
    hook PostToolUse redact: control complete allow
  chat small
    hook PostInference clean-reply: control complete replace
  hook Stop thorough: control complete continue
  chat small
    hook PostInference clean-reply: control complete allow
  hook Stop thorough: control complete allow
  hook ExecutionEnd notify: observer complete pass
`

func TestAttributesOfTheRun(t *testing.T) {
	s := newSink(t)
	runEventful(t, s.use())
	span := s.span(t, "invoke_agent helper")
	assert.Equal(t, "invoke_agent", get(span, "gen_ai.operation.name"))
	assert.Equal(t, "helper", get(span, "gen_ai.agent.name"))
	assert.Contains(t, get(span, "gen_ai.conversation.id"), "ses_")
	assert.Contains(t, get(span, "grapnel.run.id"), "run_")
	assert.Equal(t, "600", get(span, "gen_ai.usage.input_tokens"))
	assert.Equal(t, "35", get(span, "gen_ai.usage.output_tokens"))
	assert.Equal(t, "3", get(span, "grapnel.run.steps"))
	assert.Equal(t, "internal", span.SpanKind.String())
}

func TestAttributesOfATurn(t *testing.T) {
	s := newSink(t)
	runEventful(t, s.use())
	span := s.all("chat small")[0]
	assert.Equal(t, "client", span.SpanKind.String())
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "test", "gen_ai.request.model": "small",
		"server.address": "models.example.com", "server.port": "443",
		"gen_ai.response.finish_reasons": `["tool_calls"]`, "gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "20",
		"grapnel.step.index": "0",
	} {
		assert.Equal(t, want, get(span, attribute.Key(key)), key)
	}
}

func TestLogEvents(t *testing.T) {
	s := newSink(t)
	runEventful(t, s.use())
	assert.ElementsMatch(t, []string{
		"INFO grapnel.rewritten: clean-input InputSubmitted",
		"WARN grapnel.denied: no-push PreToolUse push",
		"INFO grapnel.rewritten: below-tmp PreToolUse write",
		"INFO grapnel.mocked: dry-run PreToolUse deploy",
		"ERROR grapnel.hook.failed: broken PreToolUse odd closed panic",
		"INFO grapnel.replaced: redact PostToolUse read",
		"INFO grapnel.replaced: redact PostToolUse fail",
		"WARN grapnel.denied: broken odd hook_failed",
		"INFO grapnel.replaced: clean-reply PostInference",
		"INFO grapnel.continued: thorough Stop",
		"INFO grapnel.run.ended: done completed",
	}, s.events())
	for _, r := range s.logs {
		assert.True(t, r.span.IsValid(), "%s stands in its trace", r.Message)
		assert.False(t, r.Time.IsZero(), "%s has a time", r.Message)
	}
}

// leveled is a handler that asks for some levels.
type leveled struct {
	slog.Handler

	from slog.Level
}

func (h leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= h.from }

// A handler is told of the levels that it asks for, as log/slog has it, and a run of which none
// is asked for tells nothing.
func TestLevelsOfLogEvents(t *testing.T) {
	for from, want := range map[slog.Level][]string{
		slog.LevelDebug: {"INFO", "WARN", "ERROR"}, slog.LevelWarn: {"WARN", "ERROR"}, slog.LevelError: {"ERROR"}, slog.LevelError + 1: {},
	} {
		s := newSink(t)
		runEventful(t, capability.UseTelemetry{Tracers: noTracers, Meters: noMeters, Logs: leveled{sinkHandler{s}, from}})
		levels := lo.Uniq(lo.Map(s.logs, func(r logEvent, _ int) string { return r.Level.String() }))
		assert.ElementsMatch(t, want, levels, "from %s", from)
	}
}

// An error of a handler is told, and the run goes on.
func TestAHandlerThatFails(t *testing.T) {
	var told []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = append(told, err) }))
	defer otel.SetErrorHandler(before)
	run(t, build(t, agenttest.Script(agenttest.Say("hi")), capability.UseTelemetry{Logs: failing{}}))
	require.Len(t, told, 1)
	assert.EqualError(t, told[0], "log event grapnel.run.ended: out of paper")
}

type failing struct{ slog.Handler }

func (failing) Enabled(context.Context, slog.Level) bool  { return true }
func (failing) Handle(context.Context, slog.Record) error { return errors.New("out of paper") }

// The error of a hook is its reason: each attribute is there once.
func TestAttributesOfLogEventsAreUnique(t *testing.T) {
	s := newSink(t)
	u := s.use()
	u.Reasons = true
	runEventful(t, u)
	for _, r := range s.logs {
		var keys []string
		r.Attrs(func(a slog.Attr) bool { keys = append(keys, a.Key); return true })
		assert.Equal(t, lo.Uniq(keys), keys, r.Message)
	}
	assert.Contains(t, s.events(), "ERROR grapnel.hook.failed: broken PreToolUse odd closed panic panic: oh no")
}

func TestMetrics(t *testing.T) {
	s := newSink(t)
	runEventful(t, s.use())
	all := s.metrics(t)
	for _, want := range []string{
		"gen_ai.client.operation.duration [s] {name=chat name=test model=small model=script address=models.example.com port=443} 3",
		"gen_ai.client.token.usage [{token}] {name=chat name=test model=small model=script type=input address=models.example.com port=443} 3 sum 600",
		"gen_ai.client.token.usage [{token}] {name=chat name=test model=small model=script type=output address=models.example.com port=443} 3 sum 35",
		"gen_ai.invoke_agent.duration [s] {name=helper status=done} 1",
		"gen_ai.execute_tool.duration [s] {type=error name=helper name=fail type=function} 1",
		"gen_ai.execute_tool.duration [s] {name=helper name=write type=function} 1",
		"grapnel.hook.decisions [{decision}] {decision=deny name=no-push point=PreToolUse} 1",
		"grapnel.hook.decisions [{decision}] {decision=replace name=redact point=PostToolUse} 2",
		"grapnel.hook.decisions [{decision}] {decision=rewrite name=below-tmp point=PreToolUse} 1",
		"grapnel.hook.errors [{error}] {type=panic fail_mode=closed name=broken point=PreToolUse type=control} 1",
		"grapnel.hook.duration [s] {mode=detached name=notify outcome=complete point=ExecutionEnd} 1",
	} {
		assert.Contains(t, all, want)
	}
	for _, line := range all {
		assert.NotContains(t, line, "nosuch", "names that models invent are no labels")
	}
}

// What hooks took out is nowhere, whatever is asked for; and nothing of content is
// anywhere without being asked for.
func TestAPlantedSecretIsNowhere(t *testing.T) {
	for name, use := range map[string]func(*capability.UseTelemetry){
		"by default":   func(*capability.UseTelemetry) {},
		"with reasons": func(u *capability.UseTelemetry) { u.Reasons = true },
		"with content": func(u *capability.UseTelemetry) { u.Content = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSink(t)
			u := s.use()
			use(&u)
			runEventful(t, u)
			all := s.everything(t)
			assert.NotContains(t, all, secret)
			assert.Equal(t, u.Content, strings.Contains(all, "the key is [redacted]"), "results")
			assert.Equal(t, u.Content, strings.Contains(all, "Done with [redacted]"), "replies")
			assert.Equal(t, u.Content, strings.Contains(all, "use [redacted]"), "input")
			assert.Equal(t, u.Content, strings.Contains(all, "/tmp/x"), "arguments")
			assert.Equal(t, u.Content || u.Reasons, strings.Contains(all, "not on a Friday"), "reasons")
			assert.Equal(t, u.Content || u.Reasons, strings.Contains(all, "oh no"), "errors")
		})
	}
}
