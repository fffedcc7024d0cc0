package gemini

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"google.golang.org/genai"

	"github.com/grapnel-go/grapnel/agent"
)

// call takes a call, which comes whole. Text is its arguments; empty where they have
// to be made of what the SDK decoded.
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
