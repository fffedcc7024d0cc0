package backtest

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"

	"github.com/grapnel-go/grapnel/drivers/replay"
)

// shown is a message as a report shows it.
type shown struct {
	Role  replay.Role `json:"r"`
	Text  string      `json:"t,omitempty"`
	Calls []shownCall `json:"c,omitempty"`
	// To is the id of the call that is answered, Failed that the tool failed, Injected that an attacker's text is in it.
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

// mostShown is how much of a text is shown, in bytes.
const mostShown = 16 << 10

func cutText(text string) string {
	if len(text) > mostShown {
		text = fmt.Sprintf("%s … %d more bytes", text[:mostShown], len(text)-mostShown)
	}
	return Clean(text)
}

// packRun makes the transcript of a run small. What is hostile in it is made harmless before.
func packRun(r *replay.Record) []byte {
	labels := labelsOf(r)
	list := make([]shown, len(r.Messages))
	for i, m := range r.Messages {
		list[i] = shown{Role: m.Role, Text: cutText(m.Content.Text), To: Clean(m.ToolCallID), Failed: m.Error, Injected: m.Injected}
		for _, c := range m.ToolCalls {
			list[i].Calls = append(list[i].Calls, shownCall{Clean(c.ID), Clean(c.Function.Name), cutText(c.Function.Arguments), labels[c.ID]})
		}
	}
	text, _ := json.Marshal(list) //nolint:errchkjson // there is nothing in it that JSON cannot hold
	var out bytes.Buffer
	z, _ := flate.NewWriter(&out, flate.BestSpeed) // the level is a good one
	_, _ = z.Write(text)
	_ = z.Close()
	return out.Bytes()
}

// unpackRun returns the JSON text of a transcript.
func unpackRun(packed []byte) json.RawMessage {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}
