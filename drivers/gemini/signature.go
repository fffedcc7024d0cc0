package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/grapnel-go/grapnel/agent"
)

// The forms of agent.Part.Opaque: "gemini:" and the signature in base64, or "gemini:call:", the id of the
// call that the signature belongs to, ":" and the signature. Other services keep other values there, which
// must not be sent to this one.
const (
	opaquePrefix = "gemini:"
	callPrefix   = opaquePrefix + "call:"
)

// unsigned is the signature that the service accepts for calls that its models did not make, when it requires
// one.
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

// callSignature returns the part that keeps the signature of a call.
func callSignature(id string, signature []byte) agent.Part {
	return agent.Reasoning("", callPrefix+id+":"+base64.StdEncoding.EncodeToString(signature))
}

// signedCall returns the id of the call whose signature the part keeps, and the signature. It is not ok for
// other parts.
func signedCall(p agent.Part) (id, signature string, ok bool) {
	rest, ok := strings.CutPrefix(p.Opaque, callPrefix)
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}
