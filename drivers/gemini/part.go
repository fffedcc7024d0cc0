package gemini

import "encoding/json"

// part is one part of a content in the request format.
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
