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

// Seal writes states as JSON that cannot be changed without a secret key, and reads them back. Without a seal, any
// program that can write to the place where a state's JSON is kept can forge it. It can approve calls, add messages in
// the user's name, raise budgets and drop the run's hooks. A seal is an HMAC-SHA256 over the state.
//
// A seal proves that the program has written a state. It does not encrypt the state, and it does not prove that the
// state is the newest. An older sealed state is valid, too, so a program whose store is open to outsiders must detect
// old states itself.
//
// The zero Seal has no key and can neither write nor read. A Seal is safe for concurrent use.
type Seal struct{ keys [][]byte }

// SealKeyLength is the minimum length of a key in bytes. Keys are random bytes.
const SealKeyLength = 32

// Errors about sealed JSON.
var (
	// ErrNotSealed is returned for a state's JSON without a seal.
	ErrNotSealed = errors.New("the state is not sealed: write it with Seal.Marshal")
	// ErrSealBroken is returned when a state's seal matches none of the keys: the state was changed, or sealed with
	// another key.
	ErrSealBroken = errors.New("the seal does not match: the state was changed, or sealed with an unknown key")
)

// NewSeal returns a seal that writes with key, and reads states that were sealed with key or one of the older keys. To
// rotate keys, pass the new key first and the old one after it, until no state with the old seal remains. Keys are
// copied. A key shorter than SealKeyLength is an error.
func NewSeal(key []byte, older ...[]byte) (Seal, error) {
	var x Seal
	for i, k := range append([][]byte{key}, older...) {
		if len(k) < SealKeyLength {
			return Seal{}, fmt.Errorf("sealing states: key %d has %d bytes: it needs at least %d", i+1, len(k), SealKeyLength)
		}
		x.keys = append(x.keys, bytes.Clone(k))
	}
	return x, nil
}

// sealedJSON is the JSON form of a sealed state.
type sealedJSON struct {
	Seal  int             `json:"seal"` // version of this form
	MAC   string          `json:"mac"`
	State json.RawMessage `json:"state"`
}

const sealVersion = 1

// Marshal returns the sealed JSON form of a state.
func (x Seal) Marshal(s State) ([]byte, error) {
	if len(x.keys) == 0 {
		return nil, errors.New("sealing a state: no key: create the seal with NewSeal")
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

// Unmarshal reads a state that Marshal wrote with one of the keys. White space may differ. For JSON without a seal it
// returns ErrNotSealed. For a state that was changed, or sealed with another key, it returns ErrSealBroken.
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
		return nil, errors.New("no key: create the seal with NewSeal")
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
		return nil, fmt.Errorf("the seal has version %d, but this program reads version %d: use a newer version of the module", *known.Seal, sealVersion)
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

// stateMAC returns a state's authentication code. It ignores white space and whether <, > and & are escaped, because
// json.Marshal changes both when it embeds the JSON in another value.
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
