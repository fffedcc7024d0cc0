package agent

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grapnel-go/grapnel/internal/strictjson"
)

// Seal writes states as JSON that cannot be changed without a secret key, and reads them
// back. The JSON form of a state by itself is worth as much as the place where it is kept:
// a writer of it can approve calls, put words into the user's mouth, raise budgets and
// drop the hooks of a run. A seal is an HMAC-SHA256 over the state.
//
// A seal proves that the program has written a state. It hides nothing, and it does not
// prove that the state is the newest: an older sealed state is good, too, so that a store
// that outsiders can write to must keep count itself.
//
// The zero Seal has no key and does neither. A Seal is safe for concurrent use.
type Seal struct{ keys [][]byte }

// SealKeyLength is how many bytes a key has at least. Keys are random bytes.
const SealKeyLength = 32

// What can be wrong with sealed JSON.
var (
	// ErrNotSealed is returned for the JSON form of a state without a seal.
	ErrNotSealed = errors.New("the state is not sealed: only a state that Seal.Marshal wrote is read")
	// ErrSealBroken is returned when the seal is not that of this state by any of the keys:
	// the state was changed, or sealed with another key.
	ErrSealBroken = errors.New("the seal does not match: the state was changed, or sealed with a key that is not given")
)

// NewSeal returns a seal that writes with key, and reads what was sealed with key or with
// one of the older keys. To change the key, give the new one first and the old one behind
// it until no state is left that it has sealed. Keys are copied; one that is shorter than
// SealKeyLength is an error.
func NewSeal(key []byte, older ...[]byte) (Seal, error) {
	var x Seal
	for i, k := range append([][]byte{key}, older...) {
		if len(k) < SealKeyLength {
			return Seal{}, fmt.Errorf("sealing states: key %d has %d bytes: it needs %d", i+1, len(k), SealKeyLength)
		}
		x.keys = append(x.keys, bytes.Clone(k))
	}
	return x, nil
}

// sealedJSON is the form of a sealed state.
type sealedJSON struct {
	Seal  int             `json:"seal"` // version of this form
	MAC   string          `json:"mac"`
	State json.RawMessage `json:"state"`
}

const sealVersion = 1

// Marshal returns the sealed JSON form of a state.
func (x Seal) Marshal(s State) ([]byte, error) {
	if len(x.keys) == 0 {
		return nil, errors.New("sealing a state: there is no key: make the seal with NewSeal")
	}
	state, err := s.MarshalJSON()
	if err != nil {
		return nil, err
	}
	mac, err := stateMAC(x.keys[0], state)
	if err != nil {
		return nil, fmt.Errorf("sealing a state: %w", err)
	}
	return compactJSON(sealedJSON{sealVersion, hex.EncodeToString(mac), state})
}

// Unmarshal reads a state that Marshal wrote with one of the keys. White space may differ.
// JSON without a seal is ErrNotSealed, and one that was changed, or sealed with another
// key, is ErrSealBroken.
func (x Seal) Unmarshal(data []byte) (State, error) {
	var s State
	sealed, err := x.unseal(data)
	if err != nil {
		return s, fmt.Errorf("reading a sealed state: %w", err)
	}
	err = s.UnmarshalJSON(sealed)
	return s, err
}

func (x Seal) unseal(data []byte) (state []byte, err error) {
	if len(x.keys) == 0 {
		return nil, errors.New("there is no key: make the seal with NewSeal")
	}
	var known struct {
		Seal    *int `json:"seal"`
		Version *int `json:"version"`
	}
	if err := strictjson.Unmarshal(data, &known); err != nil {
		return nil, err
	}
	switch {
	case known.Seal == nil && known.Version != nil:
		return nil, ErrNotSealed
	case known.Seal == nil:
		return nil, errors.New("this is not the JSON form of a state")
	case *known.Seal != sealVersion:
		return nil, fmt.Errorf("the seal is of version %d, and this program reads %d: use a newer version of the module", *known.Seal, sealVersion)
	}
	var form sealedJSON
	if err := strictjson.UnmarshalStrict(data, &form); err != nil {
		return nil, err
	}
	given, err := hex.DecodeString(form.MAC)
	if err != nil {
		return nil, ErrSealBroken
	}
	for _, key := range x.keys {
		mac, err := stateMAC(key, form.State)
		if err != nil {
			return nil, err
		}
		if hmac.Equal(given, mac) {
			return form.State, nil
		}
	}
	return nil, ErrSealBroken
}

// stateMAC returns the code of a state. White space does not count, nor whether <, > and
// & are escaped: json.Marshal changes both where it writes the JSON as a part of something.
func stateMAC(key, state []byte) ([]byte, error) {
	var compact, escaped bytes.Buffer
	if err := json.Compact(&compact, state); err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("grapnel sealed state 1\x00"))
	json.HTMLEscape(&escaped, compact.Bytes())
	h.Write(escaped.Bytes())
	return h.Sum(nil), nil
}
