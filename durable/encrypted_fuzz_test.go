package durable

import (
	"bytes"
	"testing"
)

// Whatever a store holds, data that is not encrypted with the key, for this place, is
// an error.
func FuzzDecrypt(f *testing.F) {
	store, err := Encrypt(nil, Encryption{Key: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	x := store.(*encrypted)
	here, there := entrySpot("r", Entry{Seq: 1}), entrySpot("r", Entry{Seq: 2})
	for _, data := range []string{"", "\x00", cipherMark, cipherMark + "12345678", `{"a":1}`} {
		f.Add([]byte(data))
		f.Add(x.sealData([]byte(data), there))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := x.decrypt(data, here); err == nil {
			t.Fatalf("%q was decrypted as %q", data, got)
		}
		if got, err := x.decrypt(x.sealData(data, here), here); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%q came back as %q: %v", data, got, err)
		}
		if !bytes.Equal(x.sealData(data, here), x.sealData(data, here)) {
			t.Fatalf("%q at the same place becomes other bytes: a call that is made again is not known again", data)
		}
		a, b := x.sealData(data, here), x.sealData(data, there)
		if nonce := len(cipherMark) + len(keyID{}); bytes.Equal(a[nonce:nonce+12], b[nonce:nonce+12]) {
			t.Fatalf("%q has the same nonce at two places", data)
		}
	})
}
