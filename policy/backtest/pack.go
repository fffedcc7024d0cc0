package backtest

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"

	"github.com/grapnel-go/grapnel/drivers/replay"
	"github.com/grapnel-go/grapnel/internal/invisible"
)

// shown is a message in the format that a report shows.
type shown struct {
	Role  replay.Role `json:"r"`
	Text  string      `json:"t,omitempty"`
	Calls []shownCall `json:"c,omitempty"`
	// To is the ID of the call that the message answers. Failed reports whether the tool failed, and Injected whether
	// the message contains an attacker's text.
	To       string `json:"i,omitempty"`
	Failed   bool   `json:"e,omitempty"`
	Injected bool   `json:"x,omitempty"`
}

type shownCall struct {
	ID        string `json:"i"`
	Name      string `json:"n"`
	Arguments string `json:"a"`
	Label     string `json:"l,omitempty"`
}

// mostShown is the maximum number of bytes of a message that the report shows.
const mostShown = 16 << 10

func cutText(text string) string {
	if len(text) > mostShown {
		text = fmt.Sprintf("%s … %d more bytes", text[:mostShown], len(text)-mostShown)
	}
	return invisible.Clean(text)
}

// packRun cleans and compresses a run's transcript.
func packRun(r *replay.Record) []byte {
	labels := labelsOf(r)
	list := make([]shown, len(r.Messages))
	for i, m := range r.Messages {
		list[i] = shown{Role: m.Role, Text: cutText(m.Content.Text), To: invisible.Clean(m.ToolCallID), Failed: m.Error, Injected: m.Injected}
		for _, c := range m.ToolCalls {
			call := shownCall{invisible.Clean(c.ID), invisible.Clean(c.Function.Name), cutText(c.Function.Arguments), labels[c.ID]}
			list[i].Calls = append(list[i].Calls, call)
		}
	}
	text, _ := json.Marshal(list) //nolint:errchkjson // the list contains only values that JSON can represent
	var out bytes.Buffer
	z, _ := flate.NewWriter(&out, flate.BestSpeed) // the level is valid
	_, _ = z.Write(text)
	_ = z.Close()
	return out.Bytes()
}

// unpackRun returns a transcript's JSON.
func unpackRun(packed []byte) json.RawMessage {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}
