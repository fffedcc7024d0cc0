package durable

import "fmt"

// Encryption holds the keys of an encrypted store. The store encrypts inputs, results, added context, and the data of entries,
// events, waits, answers, waivers and documents with AES-256-GCM. Each is bound to its run and its place there, so that a changed or
// moved item is detected; the loss of a journal's end is not, nor is an input that an earlier input of the same run has
// replaced. A document is bound to its kind, its name, its author, and the version that it replaced: data that was moved
// to another document or version is detected, except among versions that replaced none, which are the first and each first
// one after a deletion; a lost version is not detected. Everything that the store must search stays unencrypted: ids,
// statuses and reasons, kinds and keys of entries, names of tools, hashes, times; the length of the data
// is visible, too. Each item grows by forty bytes. The same data at the same place encrypts to the same
// bytes, so that a store call can be repeated.
//
// A store without keys never returns encrypted data: reading it returns a *DecryptError with the key that is needed. So does writing
// data to a store where encrypted data was written before. A signal without a text, the switch and a deletion need no key.
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
