package gemini

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// reply assembles a turn from its pieces.
type reply struct {
	d     *Driver
	asked string
	// place is the reply's position in its session.
	place string

	id, model string
	parts     []agent.Part
	open      agent.Part // the part being written, without its text
	text      strings.Builder
	calls     []agent.ToolCall
	opened    *openCall    // the call whose arguments are arriving
	broken    string       // the error in arguments that arrive in pieces
	signed    []agent.Part // call signatures
	ids       map[string]bool
	answered  bool // a candidate has arrived
	finish    finishReason
	note      string // the service's explanation for the finish reason
	blocked   string
	usage     *usage
}

func (d *Driver) reply(q question, s agent.State) *reply {
	return &reply{d: d, asked: q.model, place: fmt.Sprintf("%d-%d", s.StepCount(), s.MessageCount()), ids: map[string]bool{}}
}

// add adds a piece of the reply.
func (r *reply) add(piece *answer, emit func(agent.Delta)) {
	r.id = cmp.Or(r.id, piece.ID)
	r.model = cmp.Or(r.model, piece.Model)
	r.usage = cmp.Or(piece.Usage, r.usage)
	if f := piece.PromptFeedback; f != nil {
		r.blocked = cmp.Or(r.blocked, f.BlockReason)
	}
	if len(piece.Candidates) == 0 {
		return
	}
	c := piece.Candidates[0]
	r.answered = true
	if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
		r.finish = c.FinishReason
		if r.reason() == agent.FinishError {
			r.note = c.FinishMessage
		}
	}
	for _, p := range c.Content.Parts {
		switch {
		case p == nil, p.Thought && p.Inline != nil: // a picture draft, which is not part of the reply
		case p.Call != nil && (r.opened != nil || len(p.Call.Partial) > 0 || p.Call.More && len(p.Call.Args) == 0):
			r.partial(p, emit)
		case p.Call != nil:
			r.call(p, emit)
		case p.Inline != nil:
			r.whole(agent.Part{Kind: kindOf(p.Inline.MediaType), MediaType: p.Inline.MediaType, Data: agent.Bytes(p.Inline.Data)}, p)
		case p.File != nil:
			r.whole(agent.Part{Kind: kindOf(p.File.MediaType), MediaType: p.File.MediaType, URL: p.File.URL}, p)
		case p.Thought:
			r.write(agent.Reasoning("", formatSignature(p.Signature)), p)
			if p.Text != "" {
				emit(agent.Delta{Reasoning: p.Text})
			}
		default:
			r.write(agent.Part{Kind: agent.PartText, Opaque: partSignature(p)}, p)
			if p.Text != "" {
				emit(agent.Delta{Text: p.Text})
			}
		}
	}
}

func kindOf(mediaType string) agent.PartKind {
	if strings.HasPrefix(mediaType, "image/") {
		return agent.PartImage
	}
	return agent.PartFile
}

// partSignature returns a part's signature in its stored format. It returns empty text when there is none.
func partSignature(p *replyPart) string {
	if len(p.Signature) == 0 {
		return ""
	}
	return formatSignature(p.Signature)
}

// write continues the part being written, or begins another. A part with a signature stays separate, because the
// signature covers only that part.
func (r *reply) write(as agent.Part, p *replyPart) {
	if r.open != as || len(p.Signature) > 0 {
		r.close()
		r.open = as
	}
	r.text.WriteString(p.Text)
	if len(p.Signature) > 0 {
		r.close()
	}
}

// whole adds a part that arrived in one piece.
func (r *reply) whole(part agent.Part, p *replyPart) {
	r.close()
	part.Opaque = partSignature(p)
	r.parts = append(r.parts, part)
}

// close ends the part being written.
func (r *reply) close() {
	r.open.Text = r.text.String()
	if r.open.Text != "" || r.open.Opaque != "" && r.open.Opaque != formatSignature(nil) {
		r.parts = append(r.parts, r.open)
	}
	r.open = agent.Part{}
	r.text.Reset()
}

// complete reports whether the reply has its finish reason and its usage. Errors after that do not matter.
func (r *reply) complete() bool { return r.finish != "" && r.usage != nil }

// step returns the turn when the whole reply has arrived. A stream must also have reported that it is
// complete.
func (r *reply) step(streamed bool) (agent.Step, error) {
	r.close()
	switch {
	case r.blocked != "":
	case !r.answered:
		return agent.Step{}, &brokenError{"the answer holds no reply"}
	case r.opened != nil:
		return agent.Step{}, &brokenError{"the arguments of a tool call did not end"}
	case r.broken != "":
		return agent.Step{}, &brokenError{r.broken}
	case lo.SomeBy(r.calls, func(c agent.ToolCall) bool { return c.Name == "" }):
		// the service would refuse every later request with this call
		return agent.Step{}, &brokenError{"a tool call of the reply has no name"}
	case streamed && r.finish == "":
		return agent.Step{}, &brokenError{"the stream ended before the reply was complete"}
	}
	reason := r.reason()
	if reason == agent.FinishError && (len(r.calls) == 0 && len(r.parts) == 0 || slices.Contains(spoiled, r.finish)) {
		return agent.Step{}, &finishError{r.finish, r.note}
	}
	step := agent.Step{
		Message:      agent.AssistantContent(agent.ContentOf(append(r.parts, r.signed...)...), r.calls...),
		FinishReason: reason, Model: lo.CoalesceOrEmpty(r.model, r.asked), ID: r.id,
	}
	step.Usage = r.used(step.Model)
	return step, nil
}
