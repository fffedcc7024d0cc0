package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/samber/lo"

	"github.com/grapnel-go/grapnel/durable"
)

// fingerprint returns the SHA-256 of all arguments of an Append, which identifies a repeated call.
func fingerprint(l durable.Lease, u durable.Update, entries []durable.Entry) []byte {
	p := printer{sha256.New()}
	p.number(l.Epoch, int64(u.Steps), int64(len(u.Questions)), int64(len(entries)), lo.Ternary[int64](u.Questions == nil, 1, 0))
	p.strings(string(l.Run), string(u.Status), string(u.Reason))
	for _, q := range u.Questions {
		p.strings(q.Call, q.Hash, q.Tool, string(q.Child), string(q.TokenHash[:]))
		p.bytes(q.Data)
		p.time(q.Asked, q.Deadline)
		p.number(lo.Ternary[int64](q.Answer == nil, 0, 1))
		if a := q.Answer; a != nil {
			p.bytes(a.Data)
			p.time(a.At)
			p.number(lo.Ternary[int64](a.Ends, 1, 0))
		}
	}
	for _, e := range entries {
		p.number(e.Seq)
		p.strings(string(e.Kind), e.Key)
		p.time(e.At)
		p.bytes(e.Data)
	}
	return p.Sum(nil)
}

// printer encodes values so that different lists of values have different encodings.
type printer struct{ hash.Hash }

func (p printer) number(all ...int64) {
	for _, n := range all {
		_, _ = p.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // only the bits matter
	}
}

func (p printer) bytes(b []byte) {
	p.number(int64(len(b)))
	_, _ = p.Write(b)
}

func (p printer) strings(all ...string) {
	for _, s := range all {
		p.bytes([]byte(s))
	}
}

func (p printer) time(all ...time.Time) {
	for _, t := range all {
		p.number(t.Unix(), int64(t.Nanosecond()))
	}
}
