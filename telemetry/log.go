package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/log"

	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/internal/semconv"
)

// logged is a log event in the making; nil where nobody takes log events.
type logged struct {
	attributes

	run      *run
	name     string
	severity log.Severity
}

// log begins a log event.
func (r *run) log(severity log.Severity, name string) *logged {
	if !r.logging {
		return nil
	}
	e := &logged{run: r, name: name, severity: severity}
	e.text(semconv.KeyRun, string(r.about.ID))
	e.text(semconv.KeyConversation, string(r.about.Session))
	e.text(semconv.KeyAgentName, r.about.Agent)
	return e
}

// emit sends the event, as part of the span in ctx.
func (e *logged) emit(ctx context.Context) {
	var record log.Record
	record.SetEventName(e.name)
	record.SetSeverity(e.severity)
	record.SetSeverityText(e.severity.String())
	record.AddAttributes(e.list...)
	e.run.t.logger.Emit(ctx, record)
}

// reason adds a sentence, where sentences were asked for.
func (e *logged) reason(text string) {
	if e.run.t.reasons {
		e.text(semconv.KeyReason, text)
	}
}

// eventOf is the log event of a hook's decision, and how much it matters; empty for
// those that change nothing.
func eventOf(d hooks.Decision) (string, log.Severity) {
	switch d {
	case hooks.Deny:
		return semconv.EventDenied, log.SeverityWarn
	case hooks.Withhold:
		return semconv.EventWithheld, log.SeverityWarn
	case hooks.StopRun:
		return semconv.EventStopped, log.SeverityWarn
	case hooks.Rewrite:
		return semconv.EventRewritten, log.SeverityInfo
	case hooks.Replace:
		return semconv.EventReplaced, log.SeverityInfo
	case hooks.Mock:
		return semconv.EventMocked, log.SeverityInfo
	case hooks.Ask:
		return semconv.EventAsked, log.SeverityInfo
	case hooks.Continue:
		return semconv.EventContinued, log.SeverityInfo
	}
	return "", 0
}
