package durable

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"strconv"
	"time"

	"github.com/samber/lo"
)

// Fingerprint returns a hash of a lease and of all values of a Commit, by which a store recognises a repeated Commit.
func (c Commit) Fingerprint(l Lease) []byte {
	p := printer{sha256.New()}
	u := c.Update
	p.number(l.Epoch, int64(u.Steps), c.HandledSignals, lo.Ternary[int64](u.Blocked, 1, 0), lo.Ternary[int64](u.Waits == nil, 1, 0),
		lo.Ternary[int64](u.AnyWait, 1, 0))
	p.number(int64(len(u.Waits)), int64(len(c.Entries)), int64(len(c.Events)), int64(len(c.Jobs)))
	p.strings(string(l.Run), l.Owner, string(u.Status), string(u.Reason))
	p.bytes(u.Result)
	use := u.Usage
	p.number(use.InputTokens, use.OutputTokens, use.CacheReadTokens, use.CacheWriteTokens, use.ReasoningTokens,
		lo.Ternary[int64](use.CostUSD == nil, 1, 0))
	p.bytes(strconv.AppendFloat(nil, lo.FromPtr(use.CostUSD), 'g', -1, 64))
	pass := lo.FromPtr(u.Pass)
	p.number(lo.Ternary[int64](u.Pass == nil, 1, 0), lo.Ternary[int64](pass.Input == nil, 1, 0))
	p.strings(string(pass.Phase))
	p.bytes(pass.Input)
	for _, w := range u.Waits {
		p.wait(w)
	}
	for _, e := range c.Entries {
		p.number(e.Seq)
		p.strings(string(e.Kind), e.Key)
		p.time(e.At)
		p.bytes(e.Data)
	}
	for _, e := range c.Events {
		p.strings(e.Name, string(e.Decision), e.Hook)
		p.number(int64(len(e.Also)), int64(e.Took))
		for _, d := range e.Also {
			p.strings(string(d.Decision), d.Hook)
		}
		p.time(e.At)
		p.bytes(e.Data)
	}
	for _, j := range c.Jobs {
		p.job(j)
	}
	for _, r := range c.Records {
		p.strings(string(r.Kind), r.Subject, r.By)
		p.time(r.At)
		p.recordedAnswer(lo.FromPtr(r.Answer))
	}
	if d := c.Document; d != nil {
		p.strings("document", d.Kind, d.Name, d.By)
		p.number(d.Version)
		p.bytes(d.Data)
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

func (p printer) wait(w Wait) {
	p.strings(w.ID, string(w.Kind), w.Subject, w.Tool, string(w.Child), w.Host, string(w.TokenHash[:]))
	p.bytes(w.Data)
	p.time(w.Asked, w.Deadline)
	p.number(int64(len(w.Partial)), lo.Ternary[int64](w.Answer == nil, 0, 1))
	for _, a := range w.Answers() {
		p.strings(a.By)
		p.bytes(a.Data)
		p.time(a.At)
		p.number(lo.Ternary[int64](a.More, 1, 0), lo.Ternary[int64](a.Ends, 1, 0))
	}
}

func (p printer) recordedAnswer(a Answer) {
	p.strings(a.Wait, a.Subject, a.By)
	p.bytes(a.Data)
	p.number(lo.Ternary[int64](a.More, 1, 0), lo.Ternary[int64](a.Ends, 1, 0))
}

func (p printer) job(j Job) {
	p.strings(string(j.ID), string(j.Kind), j.Name, j.Version, string(j.Session), string(j.Parent), string(j.Root), j.IdempotencyKey, j.By,
		string(j.Phase), string(j.After), mapText(j.Demands), mapText(j.Labels), j.Summary)
	p.bytes(j.Input)
	traits, _ := json.Marshal(j.Traits) //nolint:errchkjson // texts can always be written
	p.bytes(traits)
	p.number(int64(j.Priority))
	p.time(j.NotBefore, j.StartBy, j.Deadline)
}

// mapText returns a map as JSON, in the order of its keys; empty for an empty map.
func mapText(m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(text)
}
