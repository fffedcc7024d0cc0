package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/sqlite"
)

var syncs = map[string]sqlite.Sync{"full": sqlite.SyncFull, "normal": sqlite.SyncNormal}

func BenchmarkAppend(b *testing.B) {
	for name, sync := range syncs {
		b.Run(name, func(b *testing.B) {
			s := open(b, tempFile(b), sqlite.Options{Sync: sync})
			defer s.Close()
			l, err := s.Begin(b.Context(), durable.Job{ID: "r"}, "one", time.Hour)
			require.NoError(b, err)
			e := entry(0)
			e.Data = []byte(strings.Repeat("x", 500))
			b.ReportAllocs()
			for b.Loop() {
				e.Seq++
				if err := commit(b.Context(), s, l, durable.Update{}, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAcquire(b *testing.B) {
	for name, sync := range syncs {
		b.Run(name, func(b *testing.B) {
			s := open(b, tempFile(b), sqlite.Options{Sync: sync})
			defer s.Close()
			park(b, s, "r", wait("c"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Acquire(b.Context(), "r", "two", time.Hour, durable.TakeOver); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMany measures of a store with 100,000 waiting runs. Their making is measured as
// well: see the time that the test as a whole takes.
func BenchmarkMany(b *testing.B) { //nolint:gocognit // a table of measurements
	const many = 100_000
	path := tempFile(b)
	s := open(b, path, sqlite.Options{Sync: sqlite.SyncNormal})
	defer s.Close()
	fill(b, path, many)
	for i := range 10 {
		require.NoError(b, s.Answer(b.Context(), agent.RunID(fmt.Sprint("run", i*1000+1)), durable.Answers(answer("c"))))
	}
	b.Run("list a page", func(b *testing.B) {
		for b.Loop() {
			runs, err := s.List(b.Context(), durable.Filter{Status: []durable.Status{durable.StatusWaiting}, Name: "a", Before: "run50000"})
			if err != nil || len(runs) != durable.DefaultLimit {
				b.Fatal(len(runs), err)
			}
		}
	})
	b.Run("list several statuses", func(b *testing.B) {
		for b.Loop() {
			runs, err := s.List(b.Context(), durable.Filter{Status: []durable.Status{durable.StatusWaiting, durable.StatusRunning}})
			if err != nil || len(runs) != durable.DefaultLimit {
				b.Fatal(len(runs), err)
			}
		}
	})
	for name, f := range map[string]durable.Filter{
		"name": {Name: "a"}, "kind": {Kind: durable.KindAgent}, "until": {Until: time.UnixMicro(many / 2)}, "since": {Since: time.UnixMicro(many / 2)},
	} {
		b.Run("list by "+name, func(b *testing.B) {
			for b.Loop() {
				runs, err := s.List(b.Context(), f)
				if err != nil || len(runs) != durable.DefaultLimit {
					b.Fatal(len(runs), err)
				}
			}
		})
	}
	b.Run("claim nothing and reconcile nothing", func(b *testing.B) {
		key := durable.Needs{Kind: durable.KindAgent, Name: "b"}.Key()
		for b.Loop() {
			runs, err := s.Claim(b.Context(), "one", time.Hour, 1, key)
			if err != nil || len(runs) != 0 {
				b.Fatal(len(runs), err)
			}
			if r, err := s.Reconcile(b.Context()); err != nil || r.Changed() {
				b.Fatal(r, err)
			}
		}
	})
	after := &durable.Wait{Run: "run50000", ID: "c", Asked: time.UnixMicro(50_000)}
	for name, f := range map[string]durable.WaitFilter{
		"all": {}, "after half": {After: after}, "kind": {Kinds: []durable.WaitKind{durable.WaitApproval}, After: after}, "run": {Run: "run77777"},
	} {
		b.Run("open waits by "+name, func(b *testing.B) {
			for b.Loop() {
				waits, err := s.OpenWaits(b.Context(), f)
				if err != nil || len(waits) == 0 {
					b.Fatal(len(waits), err)
				}
			}
		})
	}
	b.Run("watch nothing", func(b *testing.B) {
		for b.Loop() {
			waits, err := s.ClaimChecks(b.Context(), "one", time.Hour, 10, []durable.WaitKind{durable.WaitFile, durable.WaitCallback}, "h")
			if err != nil || len(waits) != 0 {
				b.Fatal(len(waits), err)
			}
		}
	})
	b.Run("watch", func(b *testing.B) {
		for b.Loop() {
			waits, err := s.ClaimChecks(b.Context(), "one", time.Hour, 10, []durable.WaitKind{durable.WaitApproval}, "h")
			if err != nil || len(waits) != 10 {
				b.Fatal(len(waits), err)
			}
		}
	})
	b.Run("wait by token", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.WaitByToken(b.Context(), tokenOf(77_777)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("acquire", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Acquire(b.Context(), "run77777", "one", time.Hour, durable.TakeFree); err != nil {
				b.Fatal(err)
			}
		}
	})
}
