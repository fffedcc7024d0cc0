package gemini

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
)

// reply puts a turn together out of the pieces in which it comes.
type reply struct {
	d     *Driver
	asked string
	// place is where in its session the reply stands.
	place string

	id, model string
	parts     []agent.Part
	open      agent.Part // the one that is being written, but for its text
	text      strings.Builder
	calls     []agent.ToolCall
	signed    []agent.Part // the signatures of calls
	ids       map[string]bool
	answered  bool // there was a candidate
	finish    genai.FinishReason
	note      string // on the finish reason
	blocked   genai.BlockedReason
	usage     *genai.GenerateContentResponseUsageMetadata
}

func (d *Driver) reply(q question, s agent.State) *reply {
	return &reply{d: d, asked: q.model, place: fmt.Sprintf("%d-%d", s.StepCount(), s.MessageCount()), ids: map[string]bool{}}
}

// add takes a piece of the reply. Raw is the JSON it was decoded from.
func (r *reply) add(piece *genai.GenerateContentResponse, raw []byte, emit func(agent.Delta)) {
	r.id = lo.CoalesceOrEmpty(r.id, piece.ResponseID)
	r.model = lo.CoalesceOrEmpty(r.model, piece.ModelVersion)
	r.usage = lo.CoalesceOrEmpty(piece.UsageMetadata, r.usage)
	if f := piece.PromptFeedback; f != nil {
		r.blocked = lo.CoalesceOrEmpty(r.blocked, f.BlockReason)
	}
	if len(piece.Candidates) == 0 || piece.Candidates[0] == nil {
		return
	}
	c := piece.Candidates[0]
	r.answered = true
	var parts []*genai.Part
	if c.Content != nil {
		parts = c.Content.Parts
	}
	if c.FinishReason != "" && c.FinishReason != genai.FinishReasonUnspecified {
		r.finish = c.FinishReason
		if r.reason() == agent.FinishError {
			r.note = found(raw, len(parts)).note
		}
	}
	var l lost
	for i, p := range parts {
		switch {
		case p == nil, p.Thought && p.InlineData != nil: // a picture that the model thought of, and gave up
		case p.FunctionCall != nil:
			if l.arguments == nil {
				l = found(raw, len(parts))
			}
			r.call(p, l.arguments[i], emit)
		case p.InlineData != nil:
			kind := lo.Ternary(strings.HasPrefix(p.InlineData.MIMEType, "image/"), agent.PartImage, agent.PartFile)
			r.whole(agent.Part{Kind: kind, MediaType: p.InlineData.MIMEType, Data: agent.Bytes(p.InlineData.Data)}, p)
		case p.FileData != nil:
			kind := lo.Ternary(strings.HasPrefix(p.FileData.MIMEType, "image/"), agent.PartImage, agent.PartFile)
			r.whole(agent.Part{Kind: kind, MediaType: p.FileData.MIMEType, URL: p.FileData.FileURI}, p)
		case p.Thought:
			r.write(agent.Reasoning("", opaque(p.ThoughtSignature)), p)
			if p.Text != "" {
				emit(agent.Delta{Reasoning: p.Text})
			}
		default:
			r.write(agent.Part{Kind: agent.PartText, Opaque: signature(p)}, p)
			if p.Text != "" {
				emit(agent.Delta{Text: p.Text})
			}
		}
	}
}

// signature is what is kept of a part's signature; empty when it has none.
func signature(p *genai.Part) string {
	if len(p.ThoughtSignature) == 0 {
		return ""
	}
	return opaque(p.ThoughtSignature)
}

// write goes on with the part that is being written, or begins another. A part that
// came with a signature stays by itself: the signature is of that part alone.
func (r *reply) write(as agent.Part, p *genai.Part) {
	if r.open != as || len(p.ThoughtSignature) > 0 {
		r.close()
		r.open = as
	}
	r.text.WriteString(p.Text)
	if len(p.ThoughtSignature) > 0 {
		r.close()
	}
}

// whole is a part that came in one piece.
func (r *reply) whole(part agent.Part, p *genai.Part) {
	r.close()
	part.Opaque = signature(p)
	r.parts = append(r.parts, part)
}

// close ends the part that is being written.
func (r *reply) close() {
	r.open.Text = r.text.String()
	if r.open.Text != "" || r.open.Opaque != "" && r.open.Opaque != opaque(nil) {
		r.parts = append(r.parts, r.open)
	}
	r.open = agent.Part{}
	r.text.Reset()
}

// complete reports whether all has come that the service has to say of a reply. What
// goes wrong behind that is no matter.
func (r *reply) complete() bool { return r.finish != "" && r.usage != nil }

// step is the turn, once all of it has come. A stream must have said that it is
// complete.
func (r *reply) step(streamed bool) (agent.Step, error) {
	r.close()
	switch {
	case r.blocked != "":
	case !r.answered:
		return agent.Step{}, &brokenError{"the answer holds no reply"}
	case lo.SomeBy(r.calls, func(c agent.ToolCall) bool { return c.Name == "" }):
		// the service would never again take a conversation with it
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
