package kit

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/samber/mo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/semconv"
	"github.com/grapnel-go/grapnel/processor"
)

// Log writes the events in an agent's runs to a logger of log/slog, a record for each event. The message is the event's
// name. The attributes are the same as on spans: from the OpenTelemetry conventions for generative AI, and grapnel's
// own.
//
//	debug  a step or a model call begins, a hook changes nothing
//	info   run.started, inference.completed, tool_call.completed, run.completed; a hook that rewrites, mocks, asks
//	warn   a denied or failed call, a repeated model call, a stopped or cancelled run
//	error  a failed run, a failed hook
//
// It is for terminals and log files of programs without a collector. telemetry.SetDefaultLogs has fewer records, tied
// to spans. The zero Log writes to slog.Default.
type Log struct {
	// Logger is where records go. Nil means the result of slog.Default when a record is written.
	Logger *slog.Logger
	// Content adds arguments, results, reasons and error texts, as changed by the hooks. They can contain users'
	// secrets that no hook removes.
	Content bool
}

// Name returns "log".
func (Log) Name() string { return "log" }

// Install adds the observer.
func (l Log) Install(p capability.Plan) mo.Result[capability.Plan] {
	return mo.Ok(p.WithObserver(logObserver{l}))
}

type logObserver struct{ Log }

// String returns the observer's name in a printed plan.
func (logObserver) String() string { return "kit.Log" }

// Observe writes a record of an event.
func (l logObserver) Observe(ctx context.Context, e agent.Event) {
	logger := cmp.Or(l.Logger, slog.Default())
	switch e := e.(type) {
	case agent.RunStarted:
		l.write(ctx, logger, slog.LevelInfo, e, e.Run)
	case agent.RunResumed:
		l.write(ctx, logger, slog.LevelInfo, e, e.State.Run())
	case agent.RunParked:
		l.write(ctx, logger, slog.LevelInfo, e, e.State.Run(), numberAttr(semconv.KeySteps, e.State.RunStepCount()))
	case agent.RunCompleted:
		l.writeEnd(ctx, logger, e)
	case agent.StepStarted:
		l.write(ctx, logger, slog.LevelDebug, e, e.Run, numberAttr(semconv.KeyStep, e.Index))
	case agent.InferenceStarted:
		l.write(ctx, logger, slog.LevelDebug, e, e.Run, numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyRequestModel, e.State.Request().Model))
	case agent.InferenceCompleted:
		level := slog.LevelInfo
		if e.Err != nil {
			level = slog.LevelWarn
		}
		used := e.Reply.Usage
		l.write(ctx, logger, level, e, e.Run, numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyResponseModel, e.Reply.Model),
			textAttr(semconv.KeyFinishReasons, string(e.Reply.FinishReason)), numberAttr(semconv.KeyInputTokens, used.InputTokens),
			numberAttr(semconv.KeyOutputTokens, used.OutputTokens), l.failure(e.Err))
	case agent.ToolCallStarted:
		l.write(ctx, logger, slog.LevelDebug, e, e.Run, numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyToolName, e.Call.Name),
			textAttr(semconv.KeyToolCallID, e.Call.ID), contentAttr(l, semconv.KeyToolArguments, e.Call.Arguments))
	case agent.ToolCallCompleted:
		l.writeCall(ctx, logger, e)
	case agent.ApprovalCompleted:
		level := slog.LevelInfo
		if e.Approval.Verdict != agent.Approve || e.Approval.TimedOut() {
			level = slog.LevelWarn
		}
		l.write(ctx, logger, level, e, e.Run, numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyToolName, e.Call.Name),
			textAttr(semconv.KeyToolCallID, e.Call.ID), textAttr(semconv.KeyDecision, e.Approval.Verdict.String()),
			textAttr(semconv.KeyWinner, e.Approval.By), contentAttr(l, semconv.KeyReason, e.Approval.Reason))
	case processor.Retrying:
		l.write(ctx, logger, slog.LevelWarn, e, e.Run, numberAttr(semconv.KeyStep, e.Step), slog.Int("attempt", e.Attempt), slog.Duration("wait", e.Wait),
			l.failure(e.Err))
	case FellBack:
		l.write(ctx, logger, slog.LevelWarn, e, e.Run, numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyRequestModel, e.ToModel), l.failure(e.Err))
	case hooks.Event:
		l.writeHook(ctx, logger, e)
	case agent.StepCompleted, agent.Judged: // the records of model and tool calls have the same data
	default:
		logger.LogAttrs(ctx, slog.LevelDebug, e.EventName())
	}
}

// write writes a record of an event. Attributes without a value are left out.
func (logObserver) write(ctx context.Context, logger *slog.Logger, level slog.Level, e agent.Event, run agent.Run, attributes ...slog.Attr) {
	if !logger.Enabled(ctx, level) {
		return
	}
	all := make([]slog.Attr, 0, len(attributes)+3)
	of := [...]slog.Attr{
		textAttr(semconv.KeyAgentName, run.Agent), textAttr(semconv.KeyRun, string(run.ID)), textAttr(semconv.KeyConversation, string(run.Session)),
	}
	for _, list := range [...][]slog.Attr{of[:], attributes} {
		for _, a := range list {
			if !a.Equal(slog.Attr{}) {
				all = append(all, a)
			}
		}
	}
	logger.LogAttrs(ctx, level, e.EventName(), all...)
}

func (l logObserver) writeEnd(ctx context.Context, logger *slog.Logger, e agent.RunCompleted) {
	s := e.State
	signal := s.StopSignal()
	level := slog.LevelWarn
	switch s.Status() {
	case agent.StatusDone:
		level = slog.LevelInfo
	case agent.StatusFailed:
		level = slog.LevelError
	}
	used := s.Spending()
	attributes := []slog.Attr{
		textAttr(semconv.KeyStatus, string(s.Status())), textAttr(semconv.KeyStopReason, string(signal.Reason)), textAttr(semconv.KeyStopSource, signal.Source),
		numberAttr(semconv.KeySteps, used.Steps), numberAttr(semconv.KeyInputTokens, used.Usage.InputTokens),
		numberAttr(semconv.KeyOutputTokens, used.Usage.OutputTokens),
		slog.Duration("duration", time.Since(s.Run().Started)), l.failure(e.Err),
	}
	if cost, ok := used.Usage.Cost.Get(); ok && cost > 0 {
		attributes = append(attributes, slog.Float64(string(semconv.KeyCost), cost))
	}
	l.write(ctx, logger, level, e, s.Run(), attributes...)
}

func (l logObserver) writeCall(ctx context.Context, logger *slog.Logger, e agent.ToolCallCompleted) {
	r, level := &e.Result, slog.LevelInfo
	outcome := string(r.Status)
	switch {
	case r.Status == agent.ToolNotExecuted:
		level = slog.LevelWarn
		switch r.Reason {
		case agent.ReasonDenied, agent.ReasonHookFailed, agent.ReasonRejected, agent.ReasonNobodyToAsk:
			outcome = semconv.OutcomeDenied
		}
	case r.Reason != "":
		level = slog.LevelWarn
	}
	l.write(ctx, logger, level, e, e.Run, numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyToolName, r.Call().Name),
		textAttr(semconv.KeyToolCallID, r.CallID()), textAttr(semconv.KeyOutcome, outcome), textAttr(semconv.KeyReasonCode, string(r.Reason)),
		textAttr(semconv.KeyWinner, r.DecidedBy), slog.Duration("duration", r.Duration), contentAttr(l, semconv.KeyToolResult, r.Text()))
}

func (l logObserver) writeHook(ctx context.Context, logger *slog.Logger, e hooks.Event) {
	level := slog.LevelDebug
	switch {
	case e.Kind == hooks.HookFailed, e.Kind == hooks.HookTimeout:
		level = slog.LevelError
	case e.Kind == hooks.HookBlocked, e.Kind == hooks.HookConflict:
		level = slog.LevelWarn
	case e.Kind == hooks.HookComplete && e.Outcome != nil && e.Decision != hooks.Allow:
		level = slog.LevelInfo
	}
	attributes := []slog.Attr{
		numberAttr(semconv.KeyStep, e.Step), textAttr(semconv.KeyHook, e.Hook), textAttr(semconv.KeyPoint, string(e.Point)),
		textAttr(semconv.KeyToolName, e.Call.Name), textAttr(semconv.KeyToolCallID, e.Call.ID), contentAttr(l, semconv.KeyReason, e.Reason),
		textAttr(semconv.KeyFailMode, e.Policy), l.failure(e.Err),
	}
	if e.Kind != hooks.HookStart && e.Err == nil {
		attributes = append(attributes, textAttr(semconv.KeyDecision, string(e.Decision)))
	}
	l.write(ctx, logger, level, e, e.Run, attributes...)
}

// contentAttr returns an attribute that is written only if Content is set.
func contentAttr[K ~string](l logObserver, key K, value string) slog.Attr {
	if !l.Content {
		return slog.Attr{}
	}
	return textAttr(key, value)
}

// failure returns an attribute for an error: its kind, or its text if Content is set.
func (l logObserver) failure(err error) slog.Attr {
	switch {
	case err == nil:
		return slog.Attr{}
	case l.Content:
		return slog.String("error", err.Error())
	}
	return textAttr(semconv.KeyErrorType, cmp.Or(string(agent.KindOf(err)), semconv.Other))
}

// textAttr returns an attribute, or the zero one for an empty value.
func textAttr[K ~string](key K, value string) slog.Attr {
	if value == "" {
		return slog.Attr{}
	}
	return slog.String(string(key), value)
}

// numberAttr returns an attribute.
func numberAttr[K ~string, N int | int64](key K, value N) slog.Attr {
	return slog.Int64(string(key), int64(value))
}
