package openai

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// callPieces is a tool call that is being read.
type callPieces struct {
	id, name  string
	pieces    service.ArgumentPieces
	arguments textPieces
	told      bool // whether its first piece was emitted
}

// callPiece is a piece of a tool call as it arrived. index is -1 if the piece has none.
type callPiece struct {
	index               int64
	id, name, arguments string
}

// pieceOf reads a piece of a tool call. Some services send the arguments as an object instead of its text.
func pieceOf(call gjson.Result) callPiece {
	p := callPiece{index: -1, id: call.Get("id").String(), name: call.Get("function.name").String(), arguments: argumentsOf(call.Get("function.arguments"))}
	if index := call.Get("index"); index.Type == gjson.Number || index.Type == gjson.String {
		p.index = index.Int()
	}
	return p
}

// begins reports whether the piece's arguments begin an object.
func (p callPiece) begins() bool { return strings.HasPrefix(strings.TrimSpace(p.arguments), "{") }

// blank reports whether the piece has no arguments.
func (p callPiece) blank() bool { return strings.TrimSpace(p.arguments) == "" }

// addCalls adds a delta's call pieces. Pieces without an index that come together have their position as the index.
// Older services send a single call as function_call.
func (r *reply) addCalls(delta gjson.Result) {
	list := listOf(delta.Get("tool_calls"))
	if one := delta.Get("tool_calls"); one.IsObject() {
		list = []gjson.Result{one}
	}
	for i, call := range list {
		p := pieceOf(call)
		if p.index < 0 && len(list) > 1 {
			p.index = int64(i)
		}
		r.addPiece(p)
	}
	if old := delta.Get("function_call"); old.IsObject() {
		r.addPiece(callPiece{index: -1, name: old.Get("name").String(), arguments: argumentsOf(old.Get("arguments"))})
	}
}

// addPiece adds a piece to its call, or begins a call with it.
func (r *reply) addPiece(p callPiece) {
	if r.at == nil {
		r.at, r.withID = map[int64]int{}, map[string]int{}
	}
	place := r.callOf(p)
	if place < 0 {
		if p.name == "" && p.blank() { // nothing yet, except perhaps the id
			r.nextID = p.id
			return
		}
		place = len(r.calls)
		r.calls = append(r.calls, &callPieces{})
		p.id, r.nextID = cmp.Or(p.id, r.nextID), ""
	}
	if indexed := r.hasIndex(p.index); p.index >= 0 && (p.name != "" || place == len(r.calls)-1 && !indexed) {
		r.at[p.index] = place
	}
	c := r.calls[place]
	if c.id == "" && !c.told && p.id != "" {
		c.id = p.id
		r.withID[p.id] = place
	}
	if !c.told {
		c.name = r.joinNames(c.name, p.name)
	}
	r.addArguments(place, p)
	r.tellCall(place, false)
}

// hasIndex reports whether a call has an index.
func (r *reply) hasIndex(index int64) bool {
	_, ok := r.at[index]
	return ok
}

// addArguments adds a piece's arguments, and emits them if the call's name was emitted.
func (r *reply) addArguments(place int, p callPiece) {
	c := r.calls[place]
	if piece := c.arguments.add(c.pieces.Append(p.arguments)); c.told && piece != "" {
		r.tell(agent.Delta{Call: agent.ToolCall{Arguments: piece}, CallIndex: place})
	}
}

// tellCall emits a call's first piece once its name is complete. A name may continue if it is not a tool in the
// request, or if a longer tool name begins with it. Such a name waits for arguments or for the reply's end.
func (r *reply) tellCall(place int, end bool) {
	c := r.calls[place]
	if c.told || c.name == "" {
		return
	}
	if !end && r.tools.Len() > 0 && (!r.isTool(c.name) || !c.pieces.Started() && r.beginsTool(c.name, c.name)) {
		return
	}
	c.told = true
	r.tell(agent.Delta{Call: agent.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()}, CallIndex: place})
}

// callOf returns the position of the call that a piece belongs to. It returns -1 if the piece begins a new call.
//
// OpenAI sends the ID and the name with a call's first piece, and an index with every piece. Other services leave the
// index or the ID out, repeat or change the ID, repeat the name, count pieces instead of calls, or give all calls the
// index 0. So a piece belongs to the call with its ID, else to the call with its index, else to the last call. These
// rules also apply:
//
//   - A piece without a name continues that call, because only a call's first piece must have a name. Exception: the
//     call is whole, and the piece has an unknown ID or index and begins an object.
//   - A piece with another name begins a call.
//   - A piece with the same name begins a call if that call is whole, unless the piece repeats its arguments or has
//     none. It continues a call whose arguments are not whole, because these cannot be abandoned.
//   - A new ID or index with a name begins a call, unless its arguments can only continue.
func (r *reply) callOf(p callPiece) int {
	last := len(r.calls) - 1
	if last < 0 {
		return -1
	}
	if place, ok := r.withID[p.id]; ok {
		return keepIf(place, r.continues(r.calls[place], p))
	}
	place, indexed := last, p.index >= 0 && r.hasIndex(p.index)
	if indexed {
		place = r.at[p.index]
	}
	c := r.calls[place]
	otherID := p.id != "" && c.id != "" // the IDs differ
	partial := c.pieces.Partial()
	switch {
	case p.name == "":
		unknown := otherID || p.index >= 0 && !indexed
		return keepIf(place, !unknown || !c.pieces.Whole() || !p.begins())
	case !r.sameName(c, p.name):
		return -1
	case partial && !p.begins() && !p.blank():
		return place
	case otherID:
		return keepIf(place, indexed && !c.pieces.Started() && !p.blank())
	case indexed:
		return keepIf(place, r.continues(c, p))
	case p.index >= 0:
		return keepIf(place, c.name == "")
	}
	return keepIf(place, partial || !c.pieces.Started() && !p.blank() || c.name == "" || c.id != "" && c.pieces.Repeats(p.arguments))
}

// continues reports whether a piece with the call's ID or index belongs to that call.
func (r *reply) continues(c *callPieces, p callPiece) bool {
	return p.name == "" || r.sameName(c, p.name) && (!c.pieces.Whole() || !p.begins() || c.pieces.Repeats(p.arguments))
}

// keepIf returns place, or -1 if the piece does not belong to that call.
func keepIf(place int, belongs bool) int {
	if !belongs {
		return -1
	}
	return place
}

// sameName reports whether a name is the call's name, or can be a piece of it.
func (r *reply) sameName(c *callPieces, piece string) bool {
	return c.name == "" || c.name == piece || !c.told && r.joinNames(c.name, piece) != c.name
}

// joinNames returns a call's name after another piece of it has arrived. Some services repeat the name, others send it
// in pieces. The tool names tell which.
func (r *reply) joinNames(name, piece string) string {
	switch {
	case name == "":
		return piece
	case piece == "" || name == piece || r.isTool(piece):
		return name
	case r.beginsTool(name+piece, ""):
		return name + piece
	}
	return name
}

func (r *reply) isTool(name string) bool {
	_, ok := r.tools.ByName(name)
	return ok
}

// beginsTool reports whether a tool name other than but begins with a text.
func (r *reply) beginsTool(text, but string) bool {
	for _, spec := range r.tools.All() {
		if spec.Name != but && strings.HasPrefix(spec.Name, text) {
			return true
		}
	}
	return false
}
