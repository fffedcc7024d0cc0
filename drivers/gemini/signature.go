package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// The formats of agent.Part.Opaque: "gemini:" and the signature in base64, or "gemini:call:", the ID of the signature's
// call, ":" and the signature. Other services' parts have other values in Opaque, which must not be sent to this
// service.
const (
	opaquePrefix = "gemini:"
	callPrefix   = opaquePrefix + "call:"
)

// unsigned is the signature that the service accepts for other models' calls if it requires a signature.
const unsigned = "skip_thought_signature_validator"

func formatSignature(signature []byte) string {
	return opaquePrefix + base64.StdEncoding.EncodeToString(signature)
}

// signatureOf returns the signature of this service's part. ok is false for other services' parts.
func signatureOf(p agent.Part) (signature string, ok bool) {
	signature, ok = strings.CutPrefix(p.Opaque, opaquePrefix)
	if !ok || strings.HasPrefix(p.Opaque, callPrefix) {
		return "", false
	}
	return signature, true
}

// callSignature returns the part that stores a call's signature.
func callSignature(id string, signature []byte) agent.Part {
	return agent.Reasoning("", callPrefix+id+":"+base64.StdEncoding.EncodeToString(signature))
}

// signedCall returns the ID of the call whose signature is in the part, and the signature. ok is false for other parts.
func signedCall(p agent.Part) (id, signature string, ok bool) {
	rest, ok := strings.CutPrefix(p.Opaque, callPrefix)
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}
