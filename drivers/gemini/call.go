package gemini

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// call adds a tool call that has arrived. A call that the service repeats, with its ID and arguments, is one call.
func (r *reply) call(p *replyPart, emit func(agent.Delta)) {
	c := agent.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Arguments: cmp.Or(p.Call.compact(), "{}"), Index: len(r.calls)}
	if c.ID != "" && slices.ContainsFunc(r.calls, func(o agent.ToolCall) bool { return o.ID == c.ID && o.Name == c.Name && o.Arguments == c.Arguments }) {
		return
	}
	if c.ID == "" || r.ids[c.ID] {
		c.ID = ownID(r.id, r.place, c.Index)
	}
	r.ids[c.ID] = true
	r.calls = append(r.calls, c)
	if len(p.Signature) > 0 {
		r.signed = append(r.signed, callSignature(c.ID, p.Signature))
	}
	emit(agent.Delta{Call: c, CallIndex: c.Index})
}

// ownPrefix begins the IDs that the driver gives to calls without an ID.
const ownPrefix = "grapnel-"

// ownID returns an ID for a call without one. The ID is unique in the session.
func ownID(reply, place string, index int) string {
	return strings.Join(lo.Compact([]string{strings.TrimSuffix(ownPrefix, "-"), reply, place, strconv.Itoa(index)}), "-")
}

// wireID returns the service's ID for a call, or "" for an ID that the driver created.
func wireID(id string) string {
	if strings.HasPrefix(id, ownPrefix) {
		return ""
	}
	return id
}
