package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// What is kept in agent.Part.Opaque: "gemini:" and the signature in base64, or
// "gemini:call:", the id of the call that it belongs to, ":" and the signature. Other
// services keep something else there, which this one must not be sent.
const (
	opaquePrefix = "gemini:"
	callPrefix   = opaquePrefix + "call:"
)

// unsigned is what the service wants to see as the signature of calls that its
// models did not make, where it insists on one.
const unsigned = "skip_thought_signature_validator"

func formatSignature(signature []byte) string {
	return opaquePrefix + base64.StdEncoding.EncodeToString(signature)
}

// signatureOf returns the signature of a part of our own; ok is false for the parts of
// other services.
func signatureOf(p agent.Part) (signature string, ok bool) {
	signature, ok = strings.CutPrefix(p.Opaque, opaquePrefix)
	if !ok || strings.HasPrefix(p.Opaque, callPrefix) {
		return "", false
	}
	return signature, true
}

// callSignature returns the part that keeps the signature of a call.
func callSignature(id string, signature []byte) agent.Part {
	return agent.Reasoning("", callPrefix+id+":"+base64.StdEncoding.EncodeToString(signature))
}

// signedCall returns the id of the call whose signature the part keeps, and the signature.
func signedCall(p agent.Part) (id, signature string, ok bool) {
	rest, ok := strings.CutPrefix(p.Opaque, callPrefix)
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}
