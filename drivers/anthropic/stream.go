package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/drivers"
	"github.com/grapnel-go/grapnel/drivers/internal/service"
)

// goodbye is how long readStream waits for the stream to end after the reply is complete.
const goodbye = 250 * time.Millisecond

// errCut is returned when a stream ends before the reply is complete.
var errCut = errors.New("the stream ended in the middle of the reply")

// readStream reads a streamed reply and calls emit with its pieces.
func readStream(answer *http.Response, emit func(agent.Delta)) (*reply, error) {
	a := arrival{emit: emit, open: map[int64]*block{}}
	decoder := &namingDecoder{Decoder: ssestream.NewDecoder(answer)}
	stream := ssestream.NewStream[sdk.MessageStreamEventUnion](decoder, nil)
	for stream.Next() {
		done, err := a.takeEvent(stream.Current())
		if err != nil {
			return nil, err
		}
		if !done {
			continue
		}
		// The reply is complete. Reading the stream to its end allows the next step to reuse the connection.
		timer := time.AfterFunc(goodbye, func() { _ = answer.Body.Close() })
		defer timer.Stop()
		for stream.Next() {
		}
		return &a.reply, nil
	}
	if decoder.said != nil {
		return nil, &service.RefusalError{Body: decoder.said}
	}
	return nil, &service.BrokenError{Err: cmp.Or(stream.Err(), errCut)}
}

// namingDecoder names events without a name after their type, because the SDK skips such events. Gateways send them. It
// keeps an error's text.
type namingDecoder struct {
	ssestream.Decoder

	event ssestream.Event
	said  []byte // an error's text; nil when there was none
}

// Next reads the next event.
func (d *namingDecoder) Next() bool {
	if !d.Decoder.Next() {
		return false
	}
	if d.event = d.Decoder.Event(); d.event.Type == "" {
		d.event.Type = typeOf(d.event.Data)
	}
	if d.event.Type == errorType {
		d.said = bytes.Clone(d.event.Data)
	}
	return true
}

// Event returns the last event read.
func (d *namingDecoder) Event() ssestream.Event { return d.event }

const errorType = "error"

// typeOf returns the type of an event or a whole reply. It returns errorType for an error.
func typeOf(data []byte) string {
	var head struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &head) != nil {
		return ""
	}
	if said := string(head.Error); said != "" && said != "null" && said != `""` && said != "{}" {
		return errorType
	}
	return head.Type
}

// readUnstreamed reads a reply in one piece, and calls emit with it.
func readUnstreamed(answer *http.Response, emit func(agent.Delta)) (*reply, error) {
	r, err := readReply(answer.Body)
	if err == nil {
		agent.EmitWhole(r.step(drivers.Prices{}, ""), emit)
	}
	return r, err
}

// arrival is a streamed reply that is being read.
type arrival struct {
	reply reply
	open  map[int64]*block // by index in the stream
	last  int64            // the newest block's index
	calls int
	emit  func(agent.Delta)
}

// indexOf returns the index of an event's block. Without an index, it is the newest block.
func (a *arrival) indexOf(e sdk.MessageStreamEventUnion) int64 {
	if !e.JSON.Index.Valid() {
		return a.last
	}
	return e.Index
}

// blockTypes maps a piece's type to the type of the block that it may begin. Some endpoints leave out a block's
// beginning.
var blockTypes = map[string]string{"text_delta": "text", "thinking_delta": "thinking"}

// blockAt returns the open block for a piece.
func (a *arrival) blockAt(e sdk.MessageStreamEventUnion) (*block, error) {
	index := a.indexOf(e)
	if e.Delta.Type == "input_json_delta" && !a.takesArguments(index) && a.takesArguments(a.last) {
		index = a.last // pieces of the newest call have another index
	}
	if _, ok := a.open[index]; !ok {
		kind, ok := blockTypes[e.Delta.Type]
		if !ok {
			return nil, &service.BrokenError{Err: fmt.Errorf("received a piece of content block %d before its beginning", index)}
		}
		a.last = index
		if err := a.begin(index, `{"type":"`+kind+`"}`); err != nil {
			return nil, err
		}
	}
	return a.open[index], nil
}

// takesArguments reports whether the block at an index is open, and a call.
func (a *arrival) takesArguments(index int64) bool {
	b, ok := a.open[index]
	return ok && b.Type != "text" && b.Type != "thinking"
}

// takeEvent adds an event to the reply. done reports whether the reply is complete. Unknown kinds of events and pieces
// are ignored.
func (a *arrival) takeEvent(e sdk.MessageStreamEventUnion) (done bool, err error) {
	switch e.Type {
	case "message_start":
		a.reply.id, a.reply.model, a.reply.usage = e.Message.ID, e.Message.Model, e.Message.Usage
		a.reply.stop = e.Message.StopReason
	case "content_block_start":
		if a.last++; e.JSON.Index.Valid() {
			a.last = e.Index
		}
		return false, a.begin(a.last, e.ContentBlock.RawJSON())
	case "content_block_delta":
		b, err := a.blockAt(e)
		if err != nil {
			return false, err
		}
		a.piece(b, e.Delta)
	case "content_block_stop":
		if b, ok := a.open[a.indexOf(e)]; ok {
			a.end(b)
			delete(a.open, a.indexOf(e))
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.reply.stop = e.Delta.StopReason
		}
		a.count(e.Usage)
	case "message_stop":
		for _, b := range slices.Clone(a.reply.blocks) { // blocks that the stream did not close
			a.end(b)
		}
		return true, nil
	}
	return false, nil
}

func (a *arrival) begin(index int64, raw string) error {
	b, err := blockOf(raw)
	if err != nil {
		return err
	}
	b.again = slices.ContainsFunc(a.reply.blocks, func(o *block) bool { return o.calls(b.ID) })
	a.open[index] = b
	a.reply.blocks = append(a.reply.blocks, b)
	switch {
	case b.Type == "tool_use" && !b.again:
		a.beginCall(b)
	case b.Type == "text" && b.Text != "":
		a.emit(agent.Delta{Text: b.Text})
	case b.Type == "thinking" && b.Thinking != "":
		a.emit(agent.Delta{Reasoning: b.Thinking})
	}
	return nil
}

func (a *arrival) beginCall(b *block) {
	b.call = a.calls
	a.calls++
	a.emit(agent.Delta{Call: agent.ToolCall{ID: b.ID, Name: b.Name}, CallIndex: b.call})
}

func (a *arrival) piece(b *block, piece sdk.MessageStreamEventUnionDelta) {
	switch {
	case piece.Type == "text_delta" && b.Type == "text":
		text := validUTF8(piece.Text)
		b.more = append(b.more, text...)
		a.emit(agent.Delta{Text: text})
	case piece.Type == "thinking_delta" && b.Type == "thinking":
		thought := validUTF8(piece.Thinking)
		b.more = append(b.more, thought...)
		a.emit(agent.Delta{Reasoning: thought})
	case piece.Type == "signature_delta":
		b.Signature += piece.Signature
	case piece.Type == "input_json_delta" && b.Type != "text" && b.Type != "thinking":
		a.addArguments(b, b.pieces.Append(validUTF8(piece.PartialJSON)))
	}
}

func (a *arrival) addArguments(b *block, arguments string) {
	b.more = append(b.more, arguments...)
	if b.Type == "tool_use" && !b.again && arguments != "" {
		a.emit(agent.Delta{Call: agent.ToolCall{Arguments: arguments}, CallIndex: b.call})
	}
}

// end emits a call's arguments that were held back, or that came at the block's beginning instead of in pieces.
func (a *arrival) end(b *block) {
	a.addArguments(b, b.pieces.End())
	if b.Type != "tool_use" || b.ended {
		return
	}
	b.ended = true
	if b.again {
		repeats := a.reply.repeats(b)
		a.reply.blocks = slices.DeleteFunc(a.reply.blocks, func(o *block) bool { return o == b })
		if repeats {
			return
		}
		a.reply.blocks = append(a.reply.blocks, b) // calls are in the order in which they begin
		a.beginCall(b)
	}
	if arguments := b.arguments(); arguments != "" && (b.again || len(b.more) == 0) {
		a.emit(agent.Delta{Call: agent.ToolCall{Arguments: arguments}, CallIndex: b.call})
	}
}

// count stores the usage that the service has reported so far. Counts that the service omits stay unchanged.
func (a *arrival) count(u sdk.MessageDeltaUsage) {
	to := &a.reply.usage
	if u.JSON.InputTokens.Valid() {
		to.InputTokens = u.InputTokens
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		to.CacheReadInputTokens = u.CacheReadInputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		to.CacheCreationInputTokens = u.CacheCreationInputTokens
	}
	if u.JSON.OutputTokens.Valid() {
		to.OutputTokens = u.OutputTokens
	}
	if u.JSON.OutputTokensDetails.Valid() {
		to.OutputTokensDetails = u.OutputTokensDetails
	}
	if u.JSON.ServerToolUse.Valid() {
		to.ServerToolUse = u.ServerToolUse
	}
}
