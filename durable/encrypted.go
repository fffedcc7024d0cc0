package durable

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/agent"
)

// Encryption holds the keys of an encrypted store.
type Encryption struct {
	// Key encrypts and decrypts. It is 32 random bytes. Change it before it has encrypted four billion
	// items.
	Key []byte
	// Old holds former Keys, which only decrypt.
	Old [][]byte
	// AllowPlain accepts unencrypted data, for a store that was filled before encryption was switched on.
	// The store then also accepts unencrypted data from an attacker, so switch it off when the old runs
	// are gone.
	AllowPlain bool
}

// DecryptError is returned for stored data that cannot be decrypted. None of the data is returned.
type DecryptError struct {
	// Of names the data, such as an entry, a wait or an answer of a run.
	Of string
	// Why says what is wrong and what to do.
	Why string
	// Key identifies the key with which the data is encrypted, if the store does not have that key.
	// It reveals nothing about the key. It is empty if something else is wrong.
	Key string
}

func (e *DecryptError) Error() string { return fmt.Sprintf("decrypting %s: %s", e.Of, e.Why) }

// Encrypt returns a store that encrypts inputs, results, added context, and the data of entries, events, waits, answers,
// waivers and documents with AES-256-GCM before s stores it. Each is bound to its run and its place there, so that a changed or
// moved item is detected; the loss of the end of a journal is not, nor is an input that an earlier input of the same run has
// replaced. A document is bound to its kind, its name, who stored it, and the version that it replaced: data that was moved
// to another document or version is detected, except among versions that replaced none, which are the first and each first
// one after a deletion; a lost version is not detected. Everything that the store must search stays unencrypted: ids,
// statuses and reasons, kinds and keys of entries, names of tools, hashes, times; the length of the data
// is visible, too. Each item grows by forty bytes. The same data at the same place encrypts to the same
// bytes, so that a store call can be repeated.
func Encrypt(s Store, e Encryption) (Store, error) {
	x := &encrypted{Store: s, keys: map[keyID]dataKey{}, allowPlain: e.AllowPlain, marks: new(keyMark)}
	for i, key := range append([][]byte{e.Key}, e.Old...) {
		if len(key) != 32 {
			return nil, fmt.Errorf("encrypting a store: key %d has %d bytes: expected 32 random bytes", i, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("encrypting a store: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("encrypting a store: %w", err)
		}
		id := keyID(derive(key, []byte("grapnel key id")))
		x.keys[id] = dataKey{aead, derive(key, []byte("grapnel nonce"))}
		if i == 0 {
			x.first = id
		}
	}
	return x, nil
}

// Encrypted data is this mark, the id of its key, the nonce, and the output of GCM. No text begins with a
// zero byte.
const cipherMark = "\x00gk1"

// keyID identifies a key and reveals nothing about it.
type keyID [8]byte

// dataKey is a key with a second key, derived from it, for nonces.
type dataKey struct {
	cipher.AEAD

	nonces []byte
}

// nonce returns a nonce that is as good as random for new data at a place, and the same for the same data:
// a caller that repeats a write, because it did not learn the outcome of the first, writes the same bytes,
// so that a store can recognise it.
func (k dataKey) nonce(data []byte, p spot) []byte {
	return derive(k.nonces, p.bound, data)[:k.NonceSize()]
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

func (id keyID) String() string { return hex.EncodeToString(id[:]) }

type encrypted struct {
	Store

	first      keyID
	keys       map[keyID]dataKey
	allowPlain bool
	marks      *keyMark
}

// keyMark remembers that the first write of a process has looked at the ID of the key in its store.
type keyMark struct {
	mu   sync.Mutex
	done bool
}

// runOnce calls look, until it has returned no error.
func (m *keyMark) runOnce(look func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return nil
	}
	err := look()
	m.done = err == nil
	return err
}

// recordKey records in the store the key that data is encrypted with.
func (x encrypted) recordKey(ctx context.Context) error {
	return x.marks.runOnce(func() error {
		recorded, err := x.KeyID(ctx)
		if err != nil || recorded == x.first.String() {
			return err
		}
		return x.SetKeyID(ctx, x.first.String())
	})
}

func (x encrypted) sealData(data []byte, p spot) []byte {
	key := x.keys[x.first]
	nonce := key.nonce(data, p)
	return key.Seal(slices.Concat([]byte(cipherMark), x.first[:], nonce), nonce, data, p.bound)
}

func (x encrypted) decrypt(data []byte, p spot) ([]byte, error) {
	fail := func(why string) ([]byte, error) { return nil, &DecryptError{Of: p.name, Why: why} }
	const head = len(cipherMark) + len(keyID{})
	const nonceSize = 12
	switch {
	case len(data) < len(cipherMark) || string(data[:len(cipherMark)]) != cipherMark:
		if x.allowPlain {
			return data, nil
		}
		return fail("not encrypted: set AllowPlain if it was written before encryption was switched on")
	case len(data) < head+nonceSize:
		return fail("truncated")
	}
	id := keyID(data[len(cipherMark):head])
	key, known := x.keys[id]
	if !known {
		return nil, &DecryptError{
			Of: p.name, Key: id.String(), Why: fmt.Sprintf("encrypted with key %s, which is not configured: add that key", id),
		}
	}
	plain, err := key.Open(nil, data[head:head+nonceSize], data[head+nonceSize:], p.bound)
	if err != nil {
		return fail("changed or moved since it was written: do not trust this store, restore a backup")
	}
	return plain, nil
}

// spot is the place of data: in words for errors, and as the additional data that GCM authenticates.
type spot struct {
	name  string
	bound []byte
}

func spotOf(name, what string, parts ...string) spot {
	p := spot{name: name}
	for _, part := range append([]string{what}, parts...) {
		p.bound = binary.AppendUvarint(p.bound, uint64(len(part)))
		p.bound = append(p.bound, part...)
	}
	return p
}

func entrySpot(run agent.RunID, e Entry) spot {
	return spotOf(fmt.Sprintf("entry %d of run %q", e.Seq, run), "entry", string(run), strconv.FormatInt(e.Seq, 10), string(e.Kind), e.Key)
}

// eventSpot returns the spot of an event. It has the time of the event and not its number, which the store gives it later.
func eventSpot(run agent.RunID, e Event) spot {
	at := strconv.FormatInt(e.At.UnixMicro(), 10)
	return spotOf(fmt.Sprintf("an event %s of run %q", e.Name, run), "event", string(run), e.Name, at)
}

func runSpot(run agent.RunID, what string) spot {
	return spotOf(fmt.Sprintf("the %s of run %q", what, run), what, string(run))
}

func signalSpot(run agent.RunID, s Signal) spot {
	return spotOf(fmt.Sprintf("a signal to run %q", run), "signal", string(run), string(s.Kind), s.By)
}

// Commit implements Store.
func (x encrypted) Commit(ctx context.Context, l Lease, c Commit) (err error) {
	if err := x.recordKey(ctx); err != nil {
		return err
	}
	c.Entries = slices.Clone(c.Entries)
	for i, e := range c.Entries {
		c.Entries[i].Data = x.sealData(e.Data, entrySpot(l.Run, e))
	}
	c.Events = slices.Clone(c.Events)
	for i, e := range c.Events {
		c.Events[i].Data = x.sealData(e.Data, eventSpot(l.Run, e))
	}
	c.Records = slices.Clone(c.Records)
	for i, r := range c.Records {
		if r.Answer != nil {
			a := *r.Answer
			a.Data = x.sealData(a.Data, answerSpot(l.Run, a))
			c.Records[i].Answer = &a
		}
	}
	if c.Update.Result != nil {
		c.Update.Result = x.sealData(c.Update.Result, runSpot(l.Run, "result"))
	}
	if p := c.Update.Pass; p != nil && p.Input != nil {
		c.Update.Pass = &Pass{Phase: p.Phase, Input: x.sealData(p.Input, runSpot(l.Run, "input"))}
	}
	if c.Document != nil {
		d := *c.Document
		d.Data = x.sealData(d.Data, documentSpot(d, d.Version))
		c.Document = &d
	}
	if c.Jobs, err = x.sealJobs(c.Jobs); err != nil {
		return err
	}
	if c.Update.Waits != nil {
		c.Update.Waits = lo.Map(c.Update.Waits, func(w Wait, _ int) Wait { return x.sealWait(l.Run, w) })
	}
	return x.Store.Commit(ctx, l, c)
}

// sealJobs returns the jobs with IDs and encrypted inputs.
func (x encrypted) sealJobs(jobs []Job) ([]Job, error) {
	jobs = slices.Clone(jobs)
	for i, j := range jobs {
		j, err := j.Prepare() // the input is bound to the ID of its run
		if err != nil {
			return nil, err
		}
		if j.Input != nil {
			j.Input = x.sealData(j.Input, runSpot(j.ID, "input"))
		}
		jobs[i] = j
	}
	return jobs, nil
}

// Submit implements Store.
func (x encrypted) Submit(ctx context.Context, jobs ...Job) ([]Run, error) {
	jobs, err := x.sealJobs(jobs)
	if err == nil {
		err = x.recordKey(ctx)
	}
	if err != nil {
		return nil, err
	}
	return x.Store.Submit(ctx, jobs...)
}

// Begin implements Store.
func (x encrypted) Begin(ctx context.Context, j Job, owner string, ttl time.Duration) (Lease, error) {
	jobs, err := x.sealJobs([]Job{j})
	if err == nil {
		err = x.recordKey(ctx)
	}
	if err != nil {
		return Lease{}, err
	}
	return x.Store.Begin(ctx, jobs[0], owner, ttl)
}

// Input implements Store.
func (x encrypted) Input(ctx context.Context, id agent.RunID) ([]byte, error) {
	data, err := x.Store.Input(ctx, id)
	return x.decryptPayload(data, err, runSpot(id, "input"))
}

// SubmittedInput implements Store.
func (x encrypted) SubmittedInput(ctx context.Context, id agent.RunID) ([]byte, error) {
	data, err := x.Store.SubmittedInput(ctx, id)
	return x.decryptPayload(data, err, runSpot(id, "input"))
}

// Result implements Store.
func (x encrypted) Result(ctx context.Context, id agent.RunID) ([]byte, error) {
	data, err := x.Store.Result(ctx, id)
	return x.decryptPayload(data, err, runSpot(id, "result"))
}

// decryptPayload decrypts data that may be missing.
func (x encrypted) decryptPayload(data []byte, err error, p spot) ([]byte, error) {
	if err != nil || len(data) == 0 {
		return data, err
	}
	return x.decrypt(data, p)
}

// Events implements Store.
func (x encrypted) Events(ctx context.Context, id agent.RunID, after int64, limit int) ([]Event, error) {
	events, err := x.Store.Events(ctx, id, after, limit)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if events[i].Data, err = x.decrypt(e.Data, eventSpot(id, e)); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// Signal implements Store. Only the text of added context is encrypted: a store compares the other texts.
func (x encrypted) Signal(ctx context.Context, id agent.RunID, s Signal) error {
	if s.hasText() {
		if err := x.recordKey(ctx); err != nil {
			return err
		}
		s.Text = base64.StdEncoding.EncodeToString(x.sealData([]byte(s.Text), signalSpot(id, s)))
	}
	return x.Store.Signal(ctx, id, s)
}

// hasText reports whether the signal adds a text to a conversation.
func (s Signal) hasText() bool {
	return s.Kind == SignalContext || s.Kind == SignalResume && s.Text != ""
}

// Signals implements Store.
func (x encrypted) Signals(ctx context.Context, owner string) ([]Signal, error) {
	signals, err := x.Store.Signals(ctx, owner)
	if err != nil {
		return nil, err
	}
	for i, s := range signals {
		if s.Kind != SignalContext && s.Kind != SignalResume {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(s.Text)
		if err != nil || !bytes.HasPrefix(data, []byte(cipherMark)) {
			data = []byte(s.Text) // it is not encrypted
		}
		plain, err := x.decrypt(data, signalSpot(s.Run, s))
		if err != nil {
			return nil, err
		}
		signals[i].Text = string(plain)
	}
	return signals, nil
}

// Entries implements Store.
func (x encrypted) Entries(ctx context.Context, id agent.RunID, after int64) ([]Entry, error) {
	entries, err := x.Store.Entries(ctx, id, after)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		if e.Data, err = x.decrypt(e.Data, entrySpot(id, *e)); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
