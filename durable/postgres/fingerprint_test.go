package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/durable"
)

// TestFingerprint changes one thing after another: each gives another fingerprint.
func TestFingerprint(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	type call struct {
		l       durable.Lease
		u       durable.Update
		entries []durable.Entry
	}
	make := func() call {
		return call{
			durable.Lease{Run: "r", Owner: "one", Epoch: 1, Expires: at},
			durable.Update{Status: "parked", Reason: "why", Steps: 1, Questions: []durable.Question{
				{Call: "c", Hash: "h", Tool: "bash", Asked: at, Deadline: at, Child: "k", Data: []byte("d"), Answer: &durable.Answer{At: at, Data: []byte("a")}},
				{Call: "e"},
			}},
			[]durable.Entry{{Seq: 1, Kind: "reply", Key: "k", At: at, Data: []byte("d")}, {Seq: 2}},
		}
	}
	seen := map[string]int{}
	for i, change := range []func(c *call){
		func(c *call) {},
		func(c *call) { c.l.Run = "s" },
		func(c *call) { c.l.Epoch++ },
		func(c *call) { c.u.Status = "running" },
		func(c *call) { c.u.Reason = "" },
		func(c *call) { c.u.Steps++ },
		func(c *call) { c.u.Questions = nil },
		func(c *call) { c.u.Questions = []durable.Question{} },
		func(c *call) { c.u.Questions = c.u.Questions[:1] },
		func(c *call) { c.u.Questions[0].Call, c.u.Questions[0].Hash = "", "ch" },
		func(c *call) { c.u.Questions[0].Tool = "sh" },
		func(c *call) { c.u.Questions[0].Asked = time.Time{} },
		func(c *call) { c.u.Questions[0].Deadline = at.Add(1) },
		func(c *call) { c.u.Questions[0].Child = "" },
		func(c *call) { c.u.Questions[0].TokenHash[31] = 1 },
		func(c *call) { c.u.Questions[0].Data = nil },
		func(c *call) { c.u.Questions[0].Answer = nil },
		func(c *call) { c.u.Questions[0].Answer.Ends = true },
		func(c *call) { c.u.Questions[0].Answer.At = time.Time{} },
		func(c *call) { c.u.Questions[0].Answer.Data = nil },
		func(c *call) { c.entries = c.entries[:1] },
		func(c *call) { c.entries[0].Seq = 0 },
		func(c *call) { c.entries[0].Kind, c.entries[0].Key = "replyk", "" },
		func(c *call) { c.entries[0].At = at.Add(1) },
		func(c *call) { c.entries[0].Data = []byte("e") },
		func(c *call) { c.entries[0], c.entries[1] = c.entries[1], c.entries[0] },
	} {
		c := make()
		change(&c)
		made := string(fingerprint(c.l, c.u, c.entries))
		other, there := seen[made]
		assert.False(t, there, "change %d looks like change %d", i, other)
		seen[made] = i
	}
	c := make()
	c.l.Owner, c.l.Expires = "two", at.Add(1)
	assert.Contains(t, seen, string(fingerprint(c.l, c.u, c.entries)), "a lease is its run and its epoch")
	c.entries[0].At = at.In(time.FixedZone("", 3600))
	assert.Contains(t, seen, string(fingerprint(c.l, c.u, c.entries)), "a time is the same in any zone")
}
