package gemini

import (
	"encoding/json"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// part is one part of a content as it is sent. The SDK's own type would write a
// call's arguments anew, and cannot say an empty text.
type part struct {
	Text      *string           `json:"text,omitempty"`
	Inline    *blob             `json:"inlineData,omitempty"`
	File      *fileData         `json:"fileData,omitempty"`
	Call      *functionCall     `json:"functionCall,omitempty"`
	Answer    *functionResponse `json:"functionResponse,omitempty"`
	Thought   bool              `json:"thought,omitempty"`
	Signature string            `json:"thoughtSignature,omitempty"`
}

type blob struct {
	MediaType string `json:"mimeType"`
	Data      string `json:"data"`
}

type fileData struct {
	MediaType string `json:"mimeType,omitempty"`
	URL       string `json:"fileUri"`
}

type functionCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
	Parts    []part            `json:"parts,omitempty"`
}

func textPart(text string) part { return part{Text: &text} }

// malformed is the one member of the object that stands for arguments that are not
// one: its value is their text.
const malformed = "_malformed"

// arguments is a call's arguments as the object that the service wants.
func arguments(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("{}")
	}
	if strictjson.CheckObject(text) == nil {
		return json.RawMessage(text)
	}
	raw, err := json.Marshal(map[string]string{malformed: text})
	if err != nil {
		return json.RawMessage("{}") // a string is always written
	}
	return raw
}
