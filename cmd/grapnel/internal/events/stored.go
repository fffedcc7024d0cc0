package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/waiver"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec/mcp"
)

// slowPass is how long a hook may take to pass without an event.
const slowPass = 50 * time.Millisecond

// Stored returns the form in which a store keeps an event: the members that follow the head of its object. Passes of
// hooks are only counted, unless the hook was slow. Calls of hooks and progress reports are not stored. It is the func for durable.Options.Events.
func Stored(e agent.Event) (durable.EventForm, bool) {
	switch e := e.(type) {
	case hooks.Event:
		switch {
		case e.Kind == hooks.HookStart:
			return durable.EventForm{}, false
		case e.Kind == hooks.HookComplete && (e.Decision == "" || e.Decision == hooks.Pass) && e.Duration <= slowPass:
			return durable.EventForm{Counter: durable.PassCounter(e.Hook), Took: e.Duration}, true
		}
	case mcp.ProgressReported:
		return durable.EventForm{}, false
	}
	data, err := encode(membersOf(e))
	form := durable.EventForm{Name: e.EventName(), Data: data}
	switch e := e.(type) {
	case hooks.Event:
		if isCall(e) {
			form.Hook, form.Took, form.Decision = e.Hook, e.Duration, decisionOf(e)
		}
	case agent.ApprovalRequested: // a hook is called again when its run continues with the answer
		form.Also = decisionsAbout(e.Questions, durable.DecisionAsked, func(q agent.Question) bool { return q.Decision() == nil })
	case agent.ApprovalCompleted:
		form.Also = decisionsAbout(e.Questions, durable.DecisionOverridden, isApprovedByPeople)
	}
	return form, err == nil
}

// isCall reports whether an event is the end of a hook's call.
func isCall(e hooks.Event) bool {
	switch e.Kind {
	case hooks.HookComplete, hooks.HookBlocked:
		return true
	case hooks.HookFailed, hooks.HookTimeout:
		return e.Policy != "retry"
	}
	return false
}

// decisionsAbout returns a decision for each hook that has asked questions of a kind.
func decisionsAbout(questions agent.Questions, d durable.Decision, is func(agent.Question) bool) []durable.HookDecision {
	return lo.Uniq(lo.FilterMap(questions, func(q agent.Question, _ int) (durable.HookDecision, bool) {
		return durable.HookDecision{Decision: d, Hook: q.By}, q.Kind == agent.QuestionOrdinary && q.By != "" && is(q)
	}))
}

// isApprovedByPeople reports whether people have approved what a question is about, themselves or with a waiver.
func isApprovedByPeople(q agent.Question) bool {
	a := q.Decision()
	return a != nil && a.Verdict == agent.Approve && (a.Author == agent.AuthorPerson || a.Author == agent.AuthorHook && a.By == waiver.HookName)
}

// decisionOf returns what a call of a hook has decided; empty if that is not counted. Questions count when people are asked.
func decisionOf(e hooks.Event) durable.Decision {
	switch e.Kind {
	case hooks.HookFailed:
		return durable.DecisionFailed
	case hooks.HookTimeout:
		return durable.DecisionTimeout
	}
	decision := map[hooks.Decision]durable.Decision{
		hooks.Deny: durable.DecisionDenied, hooks.StopRun: durable.DecisionDenied, hooks.RejectAndEnd: durable.DecisionDenied,
		hooks.Withhold: durable.DecisionWithheld,
		hooks.Rewrite:  durable.DecisionRewritten, hooks.Replace: durable.DecisionRewritten, hooks.Mock: durable.DecisionRewritten,
	}[e.Decision]
	switch {
	case e.Shadow && (decision != "" || e.Decision == hooks.Ask):
		return durable.DecisionShadow
	case decision == durable.DecisionDenied && e.Point == hooks.RunStart:
		return durable.DecisionBlocked
	}
	return decision
}

// Object returns the object of a stored event. Its seq is the number of the event in the run.
func Object(e durable.Event) ([]byte, error) {
	data := bytes.TrimSpace(e.Data)
	switch {
	case e.Name == durable.EventCounts && len(data) > 0:
		data = fmt.Appendf(nil, `{"run":%q,"counts":%s}`, e.Run, data)
	case len(data) == 0:
		data = []byte("{}")
	}
	if !json.Valid(data) || data[0] != '{' {
		return nil, fmt.Errorf("event %d of run %s is not a JSON object", e.Seq, e.Run)
	}
	return join(head{Version, int(e.Seq), e.At.UTC(), e.Name}, data)
}

// join returns an object with the members of another one after its head.
func join(h head, object []byte) ([]byte, error) {
	out, err := encode(h)
	if rest := object[1:]; err == nil && !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		out = append(append(bytes.TrimSuffix(out, []byte("}")), ','), rest...)
	}
	return out, err
}

// encode returns a value as JSON without HTML escapes.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
