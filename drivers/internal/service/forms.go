package service

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Malformed is the only member of the object that replaces a call's malformed arguments. Its value is the original
// text.
const Malformed = "_malformed_arguments"

// Arguments returns a call's arguments in the format that services accept: one JSON object, because some services
// refuse a conversation that contains anything else. Empty arguments are {}.
func Arguments(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("{}")
	}
	if strictjson.CheckObject(text) == nil {
		return json.RawMessage(text)
	}
	raw, err := json.Marshal(map[string]string{Malformed: text})
	if err != nil {
		return json.RawMessage("{}") // encoding a string cannot fail
	}
	return raw
}

// IsObject reports whether a text is one JSON object, as tool schemas are.
func IsObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}

// DataURL decodes an address that contains the data itself, in base64.
func DataURL(url string) (mediaType string, data agent.Bytes, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	mediaType, text, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return "", "", false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return mediaType, agent.Bytes(raw), err == nil
}
