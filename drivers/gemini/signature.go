package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// The forms of agent.Part.Opaque: "gemini:" and the signature in base64, or "gemini:call:", the id of the
// call that the signature belongs to, ":" and the signature. Parts of other services have other values in
// Opaque, which must not be sent to this service.
const (
	opaquePrefix = "gemini:"
	callPrefix   = opaquePrefix + "call:"
)

// unsigned is the signature that the service accepts for calls of other models if it requires a signature.
const unsigned = "skip_thought_signature_validator"

func formatSignature(signature []byte) string {
	return opaquePrefix + base64.StdEncoding.EncodeToString(signature)
}

// signatureOf returns the signature of a part of this service; ok is false for the parts of other services.
func signatureOf(p agent.Part) (signature string, ok bool) {
	signature, ok = strings.CutPrefix(p.Opaque, opaquePrefix)
	if !ok || strings.HasPrefix(p.Opaque, callPrefix) {
		return "", false
	}
	return signature, true
}

// callSignature returns the part that stores the signature of a call.
func callSignature(id string, signature []byte) agent.Part {
	return agent.Reasoning("", callPrefix+id+":"+base64.StdEncoding.EncodeToString(signature))
}

// signedCall returns the id of the call whose signature is in the part, and the signature. Ok is false for
// other parts.
func signedCall(p agent.Part) (id, signature string, ok bool) {
	rest, ok := strings.CutPrefix(p.Opaque, callPrefix)
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}
