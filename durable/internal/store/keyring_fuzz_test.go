package store

import (
	"bytes"
	"testing"

	"github.com/grapnel-go/grapnel/durable"
)

// Whatever a store holds, data that is not encrypted with the key, for this place, is
// an error.
func FuzzDecrypt(f *testing.F) {
	k, err := newKeyring(&durable.Encryption{Key: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	here, there := place{"entry", "r", "1"}, place{"entry", "r", "2"}
	for _, data := range []string{"", "\x00", cipherMark, cipherMark + "12345678", `{"a":1}`} {
		f.Add([]byte(data))
		f.Add(k.seal([]byte(data), there))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := k.open(data, here); err == nil {
			t.Fatalf("%q was decrypted as %q", data, got)
		}
		if got, err := k.open(k.seal(data, here), here); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%q came back as %q: %v", data, got, err)
		}
		if !bytes.Equal(k.seal(data, here), k.seal(data, here)) {
			t.Fatalf("%q at the same place becomes other bytes: a call that is made again is not known again", data)
		}
		a, b := k.seal(data, here), k.seal(data, there)
		if bytes.Equal(a[headSize:headSize+nonceSize], b[headSize:headSize+nonceSize]) {
			t.Fatalf("%q has the same nonce at two places", data)
		}
	})
}
