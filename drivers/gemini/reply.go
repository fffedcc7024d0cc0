package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
		case p == nil:
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

func (r *reply) call(p *genai.Part, text string, emit func(agent.Delta)) {
	c := agent.ToolCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: text, Index: len(r.calls)}
	if c.ID == "" || r.ids[c.ID] {
		c.ID = ownID(r.id, r.place, c.Index)
	}
	if text == "" {
		c.Arguments = marshalled(p.FunctionCall.Args)
	}
	r.ids[c.ID] = true
	r.calls = append(r.calls, c)
	if len(p.ThoughtSignature) > 0 {
		r.signed = append(r.signed, callSignature(c.ID, p.ThoughtSignature))
	}
	emit(agent.Delta{Call: c, CallIndex: c.Index})
}

// ownPrefix begins the ids of calls that the service gave none.
const ownPrefix = "grapnel-"

// ownID is an id for a call that has none: no other call of the session has it.
func ownID(reply, place string, index int) string {
	return strings.Join(lo.Compact([]string{strings.TrimSuffix(ownPrefix, "-"), reply, place, strconv.Itoa(index)}), "-")
}

// wireID is a call's id as the service knows it: our own are not sent.
func wireID(id string) string {
	if strings.HasPrefix(id, ownPrefix) {
		return ""
	}
	return id
}

// lost is what the SDK leaves out of a piece, or changes.
type lost struct {
	note string
	// arguments is those of calls as the model wrote them, by part: decoding loses the
	// order of members, digits of long numbers, and names that are given twice.
	arguments []string
}

// found reads it in the JSON of the piece, which has that many parts.
func found(raw []byte, parts int) lost {
	l := lost{arguments: make([]string, parts)}
	var said struct {
		Candidates []struct {
			FinishMessage string `json:"finishMessage"`
			Content       struct {
				Parts []struct {
					FunctionCall struct {
						Args json.RawMessage `json:"args"`
					} `json:"functionCall"`
				} `json:"parts"`
			} `json:"content"`
		} `json:"candidates"`
	}
	if json.Unmarshal(raw, &said) != nil || len(said.Candidates) == 0 || len(said.Candidates[0].Content.Parts) != parts {
		return l
	}
	l.note = said.Candidates[0].FinishMessage
	for i, p := range said.Candidates[0].Content.Parts {
		var out bytes.Buffer
		if json.Compact(&out, p.FunctionCall.Args) == nil && out.String() != "null" {
			l.arguments[i] = out.String()
		}
	}
	return l
}

func marshalled(args map[string]any) string {
	text, err := json.Marshal(args)
	if err != nil || len(args) == 0 {
		return "{}"
	}
	return string(text)
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

// filtered are the finish reasons of replies that the service held back.
var filtered = []genai.FinishReason{
	genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage, genai.FinishReasonBlocklist,
	genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonImageSafety,
	genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation, "MODEL_ARMOR",
}

// spoiled are the finish reasons of replies that are of no use, whatever is in them:
// the model meant to call a tool and could not.
var spoiled = []genai.FinishReason{
	genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, "MALFORMED_RESPONSE",
}

func (r *reply) reason() agent.FinishReason {
	switch {
	case r.blocked != "" || slices.Contains(filtered, r.finish):
		return agent.FinishFilter
	case r.finish == genai.FinishReasonMaxTokens, r.finish == genai.FinishReasonContinuation:
		return agent.FinishLength
	case r.finish == genai.FinishReasonStop && len(r.calls) > 0:
		return agent.FinishToolCalls
	case r.finish == genai.FinishReasonStop:
		return agent.FinishStop
	case r.finish == "FUNCTION_CALL": // said by endpoints that are not the vendor's
		return agent.FinishToolCalls
	case r.finish == "":
		return ""
	}
	return agent.FinishError
}

// used is what the reply consumed. What it cost is unknown where no usage was told,
// where the table has not the model, and where there was sound in the request.
func (r *reply) used(model string) agent.Usage {
	u := r.usage
	if u == nil {
		return agent.Usage{}
	}
	count := func(n ...int32) int64 { return lo.SumBy(n, func(n int32) int64 { return int64(max(n, 0)) }) }
	used := agent.Usage{
		InputTokens:     count(u.PromptTokenCount, u.ToolUsePromptTokenCount),
		OutputTokens:    count(u.CandidatesTokenCount, u.ThoughtsTokenCount),
		CacheReadTokens: count(u.CachedContentTokenCount),
		ReasoningTokens: count(u.ThoughtsTokenCount),
	}
	sound := lo.SomeBy(u.PromptTokensDetails, func(m *genai.ModalityTokenCount) bool {
		return m != nil && m.Modality == genai.MediaModalityAudio && m.TokenCount > 0
	})
	if !sound {
		used.Cost = r.d.prices.Cost(bare(model), used)
		if used.Cost.IsAbsent() { // an alias such as gemini-flash-latest, or the version behind it
			used.Cost = r.d.prices.Cost(bare(r.asked), used)
		}
	}
	return used
}
