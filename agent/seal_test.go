package agent_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
)

func sealKey(c byte) []byte { return bytes.Repeat([]byte{c}, agent.SealKeyLength) }

func TestSeal(t *testing.T) {
	seal, err := agent.NewSeal(sealKey('a'))
	require.NoError(t, err)
	s := agent.SessionKey[string]("note").In(agent.NewState(agent.UserText("pay <Bob> 5 € & go")), "x")
	sealed, err := seal.Marshal(s)
	require.NoError(t, err)
	plain, err := json.Marshal(s)
	require.NoError(t, err)

	same := func(t *testing.T, x agent.Seal, data []byte) {
		t.Helper()
		back, err := x.Unmarshal(data)
		require.NoError(t, err)
		again, err := json.Marshal(back)
		require.NoError(t, err)
		assert.Equal(t, string(plain), string(again))
	}
	same(t, seal, sealed)

	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, sealed, "", "  "))
	same(t, seal, indented.Bytes())

	rotated, err := agent.NewSeal(sealKey('b'), sealKey('a'))
	require.NoError(t, err)
	same(t, rotated, sealed)
	newer, err := rotated.Marshal(s)
	require.NoError(t, err)
	same(t, rotated, newer)
	_, err = seal.Unmarshal(newer)
	require.ErrorIs(t, err, agent.ErrSealBroken, "the key that writes is the first")

	for name, data := range map[string]string{
		"changed":             strings.Replace(string(sealed), "Bob", "Eve", 1),
		"another code":        strings.Replace(string(sealed), `"mac":"`, `"mac":"00`, 1),
		"no code":             strings.Replace(string(sealed), `"mac":`, `"mac":"","state":{},"x":`, 1),
		"code of no bytes":    `{"seal":1,"mac":"","state":` + string(plain) + `}`,
		"code of no letters":  `{"seal":1,"mac":"zz","state":` + string(plain) + `}`,
		"no state":            `{"seal":1,"mac":"00"}`,
		"two states":          strings.TrimSuffix(string(sealed), "}") + `,"state":` + string(plain) + "}",
		"cut off":             string(sealed[:len(sealed)-3]),
		"empty":               "",
		"something else":      `{"a":1}`,
		"a version to come":   strings.Replace(string(sealed), `"seal":1`, `"seal":2`, 1),
		"with another member": strings.Replace(string(sealed), `"seal":1`, `"seal":1,"more":1`, 1),
	} {
		back, err := seal.Unmarshal([]byte(data))
		require.Error(t, err, name)
		assert.Zero(t, back.MessageCount(), name)
	}
	_, err = seal.Unmarshal(plain)
	require.ErrorIs(t, err, agent.ErrNotSealed)
	_, err = seal.Unmarshal([]byte(strings.Replace(string(sealed), "Bob", "Eve", 1)))
	require.ErrorIs(t, err, agent.ErrSealBroken)

	var none agent.Seal
	_, err = none.Marshal(s)
	require.ErrorContains(t, err, "NewSeal")
	_, err = none.Unmarshal(sealed)
	require.ErrorContains(t, err, "NewSeal")
	_, err = agent.NewSeal(sealKey('a'), []byte("short"))
	require.ErrorContains(t, err, "key 2 has 5 bytes: it needs at least 32")
	_, err = agent.NewSeal(nil)
	require.ErrorContains(t, err, "key 1 has 0 bytes")
}

// Only the framework can set its metadata, by any route; stored values are read back.
func TestReservedKeys(t *testing.T) {
	for _, name := range []string{"agent.x", "hooks.x", "continuation.x", "kit.x", "grapnel.x"} {
		key := agent.SessionKey[int](name)
		s := key.In(agent.State{}, 1)
		assert.Equal(t, 0, key.Or(s, 0), name)
		effects := agent.EffectsOf(key.Set(1))
		require.ErrorContains(t, effects.Validate(), name)
		assert.Equal(t, 0, agent.RunKey[int](name).Or(s.Apply(effects), 0), name)
		var stored agent.State
		require.NoError(t, json.Unmarshal([]byte(`{"version":3,"metadata":{"session":{"`+name+`":7}}}`), &stored))
		assert.Equal(t, 7, key.Or(stored, 0), name)
		assert.Equal(t, 7, key.Or(key.In(stored, 8), 0), name)
	}
	for _, name := range []string{"agent", "agents.x", "mine.agent.x", "x"} {
		key := agent.SessionKey[int](name)
		require.NoError(t, agent.EffectsOf(key.Set(1)).Validate())
		assert.Equal(t, 1, key.Or(key.In(agent.State{}, 1), 0), name)
	}
}
