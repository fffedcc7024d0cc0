package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// keyring encrypts and decrypts the data of a store. Without keys, it encrypts nothing and accepts only plain data.
type keyring struct {
	first      keyID
	keys       map[keyID]dataKey
	allowPlain bool
	recorded   atomic.Bool // CheckKey has compared the key with the ID in the store
}

// keyID identifies a key and reveals nothing about it.
type keyID [8]byte

func (id keyID) String() string { return hex.EncodeToString(id[:]) }

// dataKey is a key with a second key, derived from it, for nonces and fingerprints.
type dataKey struct {
	cipher.AEAD

	nonces []byte
}

// Encrypted data is this mark, the id of its key, the nonce, and the output of GCM. No text begins with a
// zero byte.
const (
	cipherMark = "\x00gk1"
	headSize   = len(cipherMark) + len(keyID{})
	nonceSize  = 12
)

func newKeyring(e *durable.Encryption) (*keyring, error) {
	if e == nil {
		return &keyring{allowPlain: true}, nil
	}
	k := &keyring{keys: map[keyID]dataKey{}, allowPlain: e.AllowPlain}
	for i, key := range append([][]byte{e.Key}, e.Old...) {
		if len(key) != 32 {
			return nil, fmt.Errorf("encrypting a store: key %d has %d bytes: expected 32 random bytes", i, len(key))
		}
		aead := lo.Must(cipher.NewGCM(lo.Must(aes.NewCipher(key)))) // a key of 32 bytes is valid
		id := keyID(derive(key, []byte("grapnel key id")))
		k.keys[id] = dataKey{aead, derive(key, []byte("grapnel nonce"))}
		if i == 0 {
			k.first = id
		}
	}
	return k, nil
}

// derive returns the HMAC of texts, each preceded by its length.
func derive(key []byte, texts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, text := range texts {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(text)))
		mac.Write(text)
	}
	return mac.Sum(nil)
}

// isEmpty reports whether there is no key.
func (k *keyring) isEmpty() bool { return len(k.keys) == 0 }

// maskPrint returns a fingerprint that does not help to guess the data.
func (k *keyring) maskPrint(fingerprint []byte) []byte {
	if k.isEmpty() {
		return fingerprint
	}
	return derive(k.keys[k.first].nonces, fingerprint)
}

// seal encrypts data. The nonce is as good as random for new data at a place, and the same for the same data: a repeated write writes
// the same bytes.
func (k *keyring) seal(data []byte, p place) []byte {
	if k.isEmpty() {
		return data
	}
	key, bound := k.keys[k.first], p.additionalData()
	nonce := derive(key.nonces, bound, data)[:nonceSize]
	return key.Seal(slices.Concat([]byte(cipherMark), k.first[:], nonce), nonce, data, bound)
}

// open decrypts data.
func (k *keyring) open(data []byte, p place) ([]byte, error) {
	fail := func(why string) ([]byte, error) { return nil, &durable.DecryptError{Of: p.String(), Why: why} }
	switch {
	case !bytes.HasPrefix(data, []byte(cipherMark)):
		if k.allowPlain {
			return data, nil
		}
		return fail("not encrypted: set AllowPlain if it was written before encryption was switched on")
	case len(data) < headSize+nonceSize:
		return fail("truncated")
	}
	id := keyID(data[len(cipherMark):headSize])
	key, known := k.keys[id]
	if !known {
		return nil, &durable.DecryptError{
			Of: p.String(), Key: id.String(), Why: fmt.Sprintf("encrypted with key %s, which is not configured: add that key", id),
		}
	}
	plain, err := key.Open(nil, data[headSize:headSize+nonceSize], data[headSize+nonceSize:], p.additionalData())
	if err != nil {
		return fail("changed or moved since it was written: do not trust this store, restore a backup")
	}
	return plain, nil
}

// sealLine encrypts a line of a run, but leaves an empty one empty.
func (k *keyring) sealLine(text string, p place) string {
	if text == "" {
		return ""
	}
	return string(k.seal([]byte(text), p))
}

// openLine decrypts a line of a run. A line that it cannot decrypt becomes empty, so that a list without the key has all runs.
func (k *keyring) openLine(text *string, p place) {
	if *text != "" && (!k.isEmpty() || strings.HasPrefix(*text, cipherMark)) {
		plain, _ := k.open([]byte(*text), p)
		*text = string(plain)
	}
}

// openRuns decrypts the lines of runs.
func (k *keyring) openRuns(runs ...durable.Run) []durable.Run {
	for i := range runs {
		r := &runs[i]
		k.openLine(&r.Summary, summaryPlace(r.ID))
		k.openLine(&r.Outcome, outcomePlace(r.ID))
	}
	return runs
}

// sealAll returns values with encrypted data.
func sealAll[T any](k *keyring, all []T, dataOf func(*T) (*[]byte, place)) []T {
	if k.isEmpty() {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		data, p := dataOf(&all[i])
		*data = k.seal(*data, p)
	}
	return all
}

// openAll decrypts the data of values that were read.
func openAll[T any](k *keyring, all []T, err error, dataOf func(*T) (*[]byte, place)) ([]T, error) {
	for i := range all {
		if err != nil {
			break
		}
		data, p := dataOf(&all[i])
		*data, err = k.open(*data, p)
	}
	return unlessFailed(all, err)
}

// place is where data belongs: a kind of data, and what identifies it among others of its kind.
type place []string

// additionalData returns the additional data that GCM authenticates.
func (p place) additionalData() (data []byte) {
	for _, part := range p {
		data = append(binary.AppendUvarint(data, uint64(len(part))), part...)
	}
	return data
}

// String names the place in errors.
func (p place) String() string {
	switch p[0] {
	case "entry":
		return fmt.Sprintf("entry %s of run %q", p[2], p[1])
	case "event":
		return fmt.Sprintf("an event %s of run %q", p[2], p[1])
	case "signal":
		return fmt.Sprintf("a signal to run %q", p[1])
	case "wait":
		return fmt.Sprintf("wait %q of run %q", p[2], p[1])
	case "answer":
		return fmt.Sprintf("an answer to wait %q of run %q", p[2], p[1])
	case "waiver":
		return fmt.Sprintf("waiver %q", p[1])
	case "document":
		return fmt.Sprintf("document %q of kind %q", p[2], p[1])
	}
	return fmt.Sprintf("the %s of run %q", p[0], p[1])
}

func inputPlace(run agent.RunID) place { return place{"input", string(run)} }

func summaryPlace(run agent.RunID) place { return place{"summary", string(run)} }

func outcomePlace(run agent.RunID) place { return place{"outcome", string(run)} }

func resultPlace(run agent.RunID) place { return place{"result", string(run)} }

func signalPlace(g durable.Signal) place { return place{"signal", string(g.Run), string(g.Kind), g.By} }

func waitPlace(w durable.Wait) place { return place{"wait", string(w.Run), w.ID, w.Subject, w.Tool} }

// answerPlace returns another place for an answer that did not decide.
func answerPlace(run agent.RunID, a durable.Answer) place {
	p := place{"answer", string(run), a.Wait, a.Subject, strconv.FormatBool(a.Ends)}
	if a.More {
		p = append(p, "more")
	}
	return p
}

func waiverPlace(w durable.Waiver) place {
	return place{"waiver", w.ID, w.By, strconv.FormatInt(w.Expires.UnixMicro(), 10)}
}

// documentPlace returns the place of a version that replaced the version with the number replaced; zero for none.
func documentPlace(d durable.Document, replaced int64) place {
	return place{"document", d.Kind, d.Name, d.By, strconv.FormatInt(replaced, 10)}
}

// entryOf returns the data of a run's entry.
func entryOf(run agent.RunID) func(*durable.Entry) (*[]byte, place) {
	return func(e *durable.Entry) (*[]byte, place) {
		return &e.Data, place{"entry", string(run), strconv.FormatInt(e.Seq, 10), string(e.Kind), e.Key}
	}
}

// eventOf returns the data of a run's event. The store numbers events later, so their place has the time.
func eventOf(run agent.RunID) func(*durable.Event) (*[]byte, place) {
	return func(e *durable.Event) (*[]byte, place) {
		return &e.Data, place{"event", string(run), e.Name, strconv.FormatInt(e.At.UnixMicro(), 10)}
	}
}
