package durable_test

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
		l durable.Lease
		c durable.Commit
	}
	make := func() call {
		return call{
			durable.Lease{Run: "r", Owner: "one", Epoch: 1, Expires: at},
			durable.Commit{Update: durable.Update{Status: "waiting", Reason: "why", Steps: 1, Result: []byte("r"), Waits: []durable.Wait{
				{ID: "c", Subject: "h", Tool: "bash", Asked: at, Deadline: at, Child: "k", Data: []byte("d"),
					Answer: &durable.Answer{At: at, Data: []byte("a")}},
				{ID: "e", Partial: []durable.Answer{{At: at, More: true, By: "p", Data: []byte("p")}}},
			}},
				Entries: []durable.Entry{{Seq: 1, Kind: "reply", Key: "k", At: at, Data: []byte("d")}, {Seq: 2}},
				Events:  []durable.Event{{Name: "e", At: at, Data: []byte("d")}},
				Jobs:    []durable.Job{{ID: "j", Labels: map[string]string{"a": "b"}, Input: []byte("i")}},
			},
		}
	}
	seen := map[string]int{}
	for i, change := range []func(c *call){
		func(c *call) {},
		func(c *call) { c.l.Run = "s" },
		func(c *call) { c.l.Epoch++ },
		func(c *call) { c.l.Owner = "two" },
		func(c *call) { c.c.Update.Status = "running" },
		func(c *call) { c.c.Update.Reason = "" },
		func(c *call) { c.c.Update.Steps++ },
		func(c *call) { c.c.Update.Waits = nil },
		func(c *call) { c.c.Update.Waits = []durable.Wait{} },
		func(c *call) { c.c.Update.Waits = c.c.Update.Waits[:1] },
		func(c *call) { c.c.Update.Waits[0].ID, c.c.Update.Waits[0].Subject = "", "ch" },
		func(c *call) { c.c.Update.Waits[0].Tool = "sh" },
		func(c *call) { c.c.Update.Waits[0].Asked = time.Time{} },
		func(c *call) { c.c.Update.Waits[0].Deadline = at.Add(1) },
		func(c *call) { c.c.Update.Waits[0].Child = "" },
		func(c *call) { c.c.Update.Waits[0].TokenHash[31] = 1 },
		func(c *call) { c.c.Update.Waits[0].Data = nil },
		func(c *call) { c.c.Update.Waits[0].Answer = nil },
		func(c *call) { c.c.Update.Waits[0].Answer.Ends = true },
		func(c *call) { c.c.Update.Waits[0].Answer.At = time.Time{} },
		func(c *call) { c.c.Update.Waits[0].Answer.Data = nil },
		func(c *call) { c.c.Update.Waits[0].Answer.By = "b" },
		func(c *call) { c.c.Update.Waits[0].Kind = durable.WaitFile },
		func(c *call) { c.c.Update.Waits[0].Host = "h" },
		func(c *call) { c.c.Update.Waits[1].Partial = nil },
		func(c *call) { c.c.Update.Waits[1].Partial[0].At = at.Add(1) },
		func(c *call) { c.c.Update.Waits[1].Partial[0].More = false },
		func(c *call) { c.c.Update.Waits[1].Partial[0].By = "q" },
		func(c *call) { c.c.Update.Waits[1].Partial[0].Data = nil },
		func(c *call) {
			c.c.Update.Waits[1].Partial, c.c.Update.Waits[1].Answer = nil, &c.c.Update.Waits[1].Partial[0]
		},
		func(c *call) { c.c.Update.AnyWait = true },
		func(c *call) { c.c.Jobs[0].By = "b" },
		func(c *call) { c.c.Entries = c.c.Entries[:1] },
		func(c *call) { c.c.Entries[0].Seq = 0 },
		func(c *call) { c.c.Entries[0].Kind, c.c.Entries[0].Key = "replyk", "" },
		func(c *call) { c.c.Entries[0].At = at.Add(1) },
		func(c *call) { c.c.Entries[0].Data = []byte("e") },
		func(c *call) { c.c.Entries[0], c.c.Entries[1] = c.c.Entries[1], c.c.Entries[0] },
		func(c *call) { c.c.Update.Blocked = true },
		func(c *call) { c.c.Update.Result = nil },
		func(c *call) { c.c.Update.Pass = &durable.Pass{} },
		func(c *call) { c.c.Update.Pass = &durable.Pass{Phase: "p"} },
		func(c *call) { c.c.Update.Pass = &durable.Pass{Input: []byte{}} },
		func(c *call) { c.c.Update.Pass = &durable.Pass{Input: []byte("p")} },
		func(c *call) { c.c.HandledSignals++ },
		func(c *call) { c.c.Events = nil },
		func(c *call) { c.c.Events[0].Name = "f" },
		func(c *call) { c.c.Events[0].At = at.Add(1) },
		func(c *call) { c.c.Events[0].Data = nil },
		func(c *call) { c.c.Jobs = nil },
		func(c *call) { c.c.Jobs[0].ID = "k" },
		func(c *call) { c.c.Jobs[0].Input = nil },
		func(c *call) { c.c.Jobs[0].Labels["a"] = "c" },
		func(c *call) { c.c.Jobs[0].Demands = map[string]string{"a": "b"} },
		func(c *call) { c.c.Jobs[0].Deadline = at },
		func(c *call) { c.c.Jobs[0].Phase = "p" },
		func(c *call) { c.c.Jobs[0].After = "p" },
		func(c *call) { c.c.Records = []durable.AuditRecord{{}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{}, {}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{By: "ann"}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{At: at}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{Answer: &durable.Answer{Subject: "ann"}}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{Answer: &durable.Answer{Data: []byte("ann")}}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{Answer: &durable.Answer{More: true}}} },
		func(c *call) { c.c.Records = []durable.AuditRecord{{Answer: &durable.Answer{Ends: true}}} },
	} {
		c := make()
		change(&c)
		made := string(c.c.Fingerprint(c.l))
		other, there := seen[made]
		assert.False(t, there, "change %d looks like change %d", i, other)
		seen[made] = i
	}
	c := make()
	c.l.Expires = at.Add(1)
	assert.Contains(t, seen, string(c.c.Fingerprint(c.l)), "a renewed lease is the same one")
	c.c.Entries[0].At = at.In(time.FixedZone("", 3600))
	assert.Contains(t, seen, string(c.c.Fingerprint(c.l)), "a time is the same in any zone")
}
