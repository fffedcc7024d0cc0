package service

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Malformed is the one member of the object that stands for arguments of a call that
// are not one: its value is their text.
const Malformed = "_malformed_arguments"

// Arguments returns a call's arguments as services take them back: one JSON object, for
// some refuse a whole conversation that has anything else in it. No arguments are {}.
func Arguments(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("{}")
	}
	if strictjson.CheckObject(text) == nil {
		return json.RawMessage(text)
	}
	raw, err := json.Marshal(map[string]string{Malformed: text})
	if err != nil {
		return json.RawMessage("{}") // a string is always written
	}
	return raw
}

// IsObject reports whether a text is one JSON object, as schemas of tools must be.
func IsObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}

// DataURL reads an address that holds the data itself, in base64.
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
