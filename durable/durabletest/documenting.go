package durabletest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
)

// newDocument returns a document that replaces a version.
func newDocument(name string, replaces int64) durable.Document {
	return durable.Document{Kind: "blueprint", Name: name, Version: replaces, By: "ann", Data: fmt.Appendf(nil, "%s after %d", name, replaces)}
}

// putDocuments stores the first versions of documents.
func putDocuments(t *testing.T, s durable.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, second(s.PutDocument(t.Context(), newDocument(name, 0))), "store document %q", name)
	}
}

func readDocument(t *testing.T, s durable.Store, name string, version int64) durable.Document {
	return must(s.Document(t.Context(), "blueprint", name, version))(t)
}

// namesOfDocuments returns the names and the versions of documents.
func namesOfDocuments(t *testing.T, s durable.Store, kind, after string, limit int) []string {
	t.Helper()
	all := must(s.ListDocuments(t.Context(), kind, after, limit))(t)
	return lo.Map(all, func(d durable.Document, _ int) string { return fmt.Sprint(d.Name, " ", d.Version) })
}

// documenting tests documents.
var documenting = map[string]part{
	"the last ones first": func(t *testing.T, s durable.Store) {
		for _, name := range []string{"a", "b\xff", "b", "c", "gone"} {
			require.NoError(t, second(s.PutDocument(t.Context(), durable.Document{Kind: "k", Name: name, Data: []byte("data of " + name)})))
		}
		require.NoError(t, second(s.PutDocument(t.Context(), durable.Document{Kind: "other", Name: "d"})))
		require.NoError(t, s.DeleteDocument(t.Context(), "k", "gone", 0))
		list := func(before string, limit int) (names []string) {
			for _, d := range must(s.ListDocumentsBefore(t.Context(), "k", before, limit))(t) {
				assert.Equal(t, "data of "+d.Name, string(d.Data))
				names = append(names, d.Name)
			}
			return names
		}
		assert.Equal(t, []string{"c", "b\xff", "b", "a"}, list("", 10))
		assert.Equal(t, []string{"b", "a"}, list("b\xff", 10))
		assert.Equal(t, []string{"b\xff"}, list("c", 1))
		assert.Empty(t, list("a", 10))
	},
	"each change is a version": func(t *testing.T, s durable.Store) {
		created := submitJobs(t, s, newJob("r"))[0].Created
		for n := range int64(3) {
			d := newDocument("d", n)
			stored := must(s.PutDocument(t.Context(), d))(t)
			assert.WithinDuration(t, created, stored.At, time.Minute)
			d.Version, d.At = n+1, stored.At
			assert.Equal(t, d, stored)
			assert.Equal(t, d, readDocument(t, s, "d", 0))
		}
		for n := range int64(3) {
			d := readDocument(t, s, "d", n+1)
			assert.Equal(t, []any{n + 1, "ann", fmt.Sprintf("d after %d", n)}, []any{d.Version, d.By, string(d.Data)})
		}
		assert.Equal(t, []string{"d 3"}, namesOfDocuments(t, s, "blueprint", "", 10))
		for _, version := range []int64{-1, 4, 1 << 40} {
			require.ErrorIs(t, second(s.Document(t.Context(), "blueprint", "d", version)), durable.ErrNotFound, version)
		}
	},
	"a change of an older version is refused": func(t *testing.T, s durable.Store) {
		require.ErrorIs(t, second(s.PutDocument(t.Context(), newDocument("d", 1))), durable.ErrConflict)
		require.ErrorIs(t, second(s.Document(t.Context(), "blueprint", "d", 0)), durable.ErrNotFound)
		putDocuments(t, s, "d")
		require.NoError(t, second(s.PutDocument(t.Context(), newDocument("d", 1))))
		for _, version := range []int64{-1, 0, 1, 3} {
			require.ErrorIs(t, second(s.PutDocument(t.Context(), newDocument("d", version))), durable.ErrConflict, version)
		}
		assert.Equal(t, []string{"d 2"}, namesOfDocuments(t, s, "blueprint", "", 10))
		assert.Equal(t, "d after 1", string(readDocument(t, s, "d", 0).Data))
	},
	"kinds are apart": func(t *testing.T, s durable.Store) {
		putDocuments(t, s, "d")
		other := newDocument("d", 0)
		other.Kind, other.Data = "other", []byte("other")
		require.NoError(t, second(s.PutDocument(t.Context(), other)))
		assert.Equal(t, "d after 0", string(readDocument(t, s, "d", 0).Data))
		d := must(s.Document(t.Context(), "other", "d", 1))(t)
		assert.Equal(t, "other", string(d.Data))
		require.NoError(t, s.DeleteDocument(t.Context(), "other", "d", 0))
		assert.Equal(t, []string{"d 1"}, namesOfDocuments(t, s, "blueprint", "", 10))
	},
	"lists": func(t *testing.T, s durable.Store) {
		names := []string{"\x00", "B", `\x41`, "a", "a b", "a\xff", "it's", "é", "\xff"}
		for _, i := range []int{3, 7, 0, 8, 1, 5, 2, 6, 4} {
			putDocuments(t, s, names[i])
		}
		require.NoError(t, second(s.PutDocument(t.Context(), newDocument("a", 1))))
		other := newDocument("other", 0)
		other.Kind = "other"
		require.NoError(t, second(s.PutDocument(t.Context(), other)))
		want := []string{}
		for _, name := range names {
			version := " 1"
			if name == "a" {
				version = " 2"
			}
			want = append(want, name+version)
		}
		assert.Equal(t, want, namesOfDocuments(t, s, "blueprint", "", 100))
		for i, name := range names {
			assert.Equal(t, want[i+1:min(i+3, len(want))], namesOfDocuments(t, s, "blueprint", name, 2), "after %q", name)
		}
		assert.Equal(t, want[6:7], namesOfDocuments(t, s, "blueprint", "b", 1), "after a name that does not exist")
		assert.Empty(t, namesOfDocuments(t, s, "blueprint", "", 0))
		assert.Empty(t, namesOfDocuments(t, s, "unknown", "", 10))
		all := must(s.ListDocuments(t.Context(), "blueprint", `\x41`, 1))(t)
		assert.Equal(t, []durable.Document{readDocument(t, s, "a", 2)}, all)
	},
	"a deleted document": func(t *testing.T, s durable.Store) {
		require.ErrorIs(t, s.DeleteDocument(t.Context(), "blueprint", "d", 0), durable.ErrNotFound)
		putDocuments(t, s, "c", "d")
		require.NoError(t, second(s.PutDocument(t.Context(), newDocument("d", 1))))
		before := readDocument(t, s, "d", 2)
		for _, other := range []int64{1, 3} {
			require.ErrorIs(t, s.DeleteDocument(t.Context(), "blueprint", "d", other), durable.ErrConflict, "it has changed since")
		}
		require.NoError(t, s.DeleteDocument(t.Context(), "blueprint", "d", 2))
		require.ErrorIs(t, second(s.Document(t.Context(), "blueprint", "d", 0)), durable.ErrNotFound)
		assert.Equal(t, []string{"c 1"}, namesOfDocuments(t, s, "blueprint", "", 10))
		require.ErrorIs(t, s.DeleteDocument(t.Context(), "blueprint", "d", 0), durable.ErrNotFound)
		assert.Equal(t, before, readDocument(t, s, "d", 2), "its versions remain")
		assert.Equal(t, "d after 0", string(readDocument(t, s, "d", 1).Data))
	},
	"a document again": func(t *testing.T, s durable.Store) {
		putDocuments(t, s, "d")
		require.NoError(t, second(s.PutDocument(t.Context(), newDocument("d", 1))))
		require.NoError(t, s.DeleteDocument(t.Context(), "blueprint", "d", 0))
		require.ErrorIs(t, second(s.PutDocument(t.Context(), newDocument("d", 2))), durable.ErrConflict)
		d := must(s.PutDocument(t.Context(), newDocument("d", 0)))(t)
		assert.Equal(t, int64(3), d.Version, "a number is used once")
		assert.Equal(t, d, readDocument(t, s, "d", 0))
		assert.Equal(t, d, readDocument(t, s, "d", 3))
		assert.Equal(t, "d after 1", string(readDocument(t, s, "d", 2).Data))
		require.NoError(t, second(s.PutDocument(t.Context(), newDocument("d", 3))))
		assert.Equal(t, []string{"d 4"}, namesOfDocuments(t, s, "blueprint", "", 10))
	},
	"data is any bytes": func(t *testing.T, s durable.Store) {
		for i, data := range [][]byte{{0}, []byte("\x00text\xff"), bytes.Repeat([]byte("grapnel\x00"), 1<<17), nil} {
			d := newDocument("d", int64(i))
			d.By, d.Data = "", bytes.Clone(data)
			require.NoError(t, second(s.PutDocument(t.Context(), d)))
			if len(data) > 0 {
				d.Data[0] = '!'
			}
			got := readDocument(t, s, "d", 0)
			assert.True(t, bytes.Equal(data, got.Data), "version %d", i+1)
			assert.Empty(t, got.By)
		}
	},
	"an invalid document is refused": func(t *testing.T, s durable.Store) {
		for name, d := range map[string]durable.Document{
			"no kind": {Name: "d"}, "no name": {Kind: "k"}, "long kind": {Kind: strings.Repeat("x", 257), Name: "d"},
			"long name": {Kind: "k", Name: strings.Repeat("x", 257)}, "long author": {Kind: "k", Name: "d", By: strings.Repeat("x", 257)},
		} {
			require.Error(t, second(s.PutDocument(t.Context(), d)), name)
		}
		assert.Empty(t, namesOfDocuments(t, s, "k", "", 10))
		require.ErrorIs(t, second(s.Document(t.Context(), "", "", 0)), durable.ErrNotFound)
	},
	"with a commit": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		for n := range int64(2) {
			d := newDocument("d", n)
			c := durable.Commit{Entries: newEntries(n+1, n+1), Jobs: []durable.Job{newJob(agent.RunID(fmt.Sprint("child", n)))}, Document: &d}
			writeCommit(t, s, l, c)
			assert.Equal(t, fmt.Sprintf("d after %d", n), string(readDocument(t, s, "d", n+1).Data))
			assert.Equal(t, n, d.Version, "what was given stays")
		}
		d := newDocument("other", 0)
		end := durable.Commit{Update: endUpdate(), Document: &d}
		writeCommit(t, s, l, end)
		repeats(t, s, l, end)
		assert.Equal(t, []string{"d 2", "other 1"}, namesOfDocuments(t, s, "blueprint", "", 10))
		different := newDocument("other", 1)
		end.Document = &different
		require.ErrorIs(t, s.Commit(t.Context(), l, end), durable.ErrStale)
		passed := beginRun(t, s, "p")
		with := newDocument("passed", 0)
		pass := passTo(phaseKind, nil)
		pass.Document = &with
		writeCommit(t, s, passed, pass)
		repeats(t, s, passed, pass)
		assert.Equal(t, "passed after 0", string(readDocument(t, s, "passed", 1).Data))
		assert.Equal(t, []string{"d 2", "other 1", "passed 1"}, namesOfDocuments(t, s, "blueprint", "", 10))
	},
	"all or nothing of a commit": func(t *testing.T, s durable.Store) {
		putDocuments(t, s, "d")
		l := beginRun(t, s, "r")
		next := l
		next.Epoch++
		d := newDocument("d", 0)
		c := durable.Commit{Entries: newEntries(1, 1), Events: []durable.Event{newEvent("e")}, Jobs: []durable.Job{newJob("child")}, Document: &d}
		ends, taken, late := c, c, c
		ends.Update, taken.Jobs, late.Entries = endUpdate(), []durable.Job{newJob("r")}, newEntries(2, 2)
		refusesCommit(t, s, durable.ErrConflict, l, c)
		refusesCommit(t, s, durable.ErrConflict, l, ends)
		d.Version = 1
		refusesCommit(t, s, durable.ErrExists, l, taken)
		refusesCommit(t, s, durable.ErrStale, next, c)
		changesNothing(t, s, func() {
			require.ErrorAs(t, s.Commit(t.Context(), l, late), new(*durable.SeqError))
			d.Name = ""
			require.ErrorContains(t, s.Commit(t.Context(), l, c), "a kind and a name have")
			d.Name = "d"
		})
		writeCommit(t, s, l, c)
		assert.Equal(t, []string{"d 2"}, namesOfDocuments(t, s, "blueprint", "", 10))
	},
	"with any change": func(t *testing.T, s durable.Store) {
		l := beginRun(t, s, "r")
		submitJobs(t, s, durable.Job{Name: "claimed"}, durable.Job{Name: "claimed"})
		claimed := keyOf(durable.Job{Name: "claimed"})
		claim := func(ctx context.Context) error { return second(s.Claim(ctx, "one", hour, 10, claimed)) }
		want := []string{}
		for name, change := range map[string]func(ctx context.Context) error{
			"submit":   func(ctx context.Context) error { return second(s.Submit(ctx, newJob("submitted"))) },
			"step":     func(ctx context.Context) error { return s.Commit(ctx, l, durable.Commit{Entries: newEntries(1, 1)}) },
			"signal":   func(ctx context.Context) error { return s.Signal(ctx, "r", durable.Signal{Kind: durable.SignalPause}) },
			"document": func(ctx context.Context) error { return second(s.PutDocument(ctx, newDocument("changed", 0))) },
			"deny":     func(ctx context.Context) error { return s.SetDenyTools(ctx, durable.Switch{}) },
			"claim":    claim,
		} {
			var c durable.Companion
			ctx := durable.WithCompanion(t.Context(), &c)
			c.Set(func(claimed ...durable.Run) durable.Document {
				return durable.Document{Kind: "asked", Name: name, By: "ann", Data: fmt.Append([]byte(name), len(claimed))}
			})
			require.ErrorIs(t, s.Signal(ctx, "unknown", durable.Signal{Kind: durable.SignalPause}), durable.ErrNotFound)
			assert.Equal(t, want, namesOfDocuments(t, s, "asked", "", 10), "what is refused stores none")
			assert.True(t, durable.HasCompanion(ctx))
			require.NoError(t, change(ctx), name)
			require.NoError(t, s.SetDenyTools(ctx, durable.Switch{}), "it is stored once")
			want = append(want, name+" 1")
			slices.Sort(want)
			assert.Equal(t, want, namesOfDocuments(t, s, "asked", "", 10))
			d := must(s.Document(t.Context(), "asked", name, 0))(t)
			assert.Equal(t, fmt.Sprint(name, lo.Ternary(name == "claim", 2, 0), " ann"), string(d.Data)+" "+d.By)
			c.Set(func(...durable.Run) durable.Document { return durable.Document{Kind: "asked", Name: name} })
			changesNothing(t, s, func() { require.ErrorIs(t, second(s.Submit(ctx, newJob("other"))), durable.ErrExists) })
			require.NoError(t, second(s.Claim(ctx, "one", hour, 10, keyOf(durable.Job{Name: "other"}))), "there is none")
			require.NoError(t, s.RecordPoll(ctx, claimed))
			assert.True(t, durable.HasCompanion(ctx))
		}
	},
	"Prune keeps them": func(t *testing.T, s durable.Store) {
		putDocuments(t, s, "d")
		require.NoError(t, second(s.Prune(t.Context(), later())))
		assert.Equal(t, []string{"d 1"}, namesOfDocuments(t, s, "blueprint", "", 10))
	},
}

// oneChanges changes a document in many processes at once.
func oneChanges(t *testing.T, handles ...durable.Store) {
	t.Helper()
	for version := range int64(5) {
		won := race(t, durable.ErrConflict, func(i int) error {
			d := newDocument("d", version)
			d.Data = fmt.Append(nil, i)
			return second(handles[i%len(handles)].PutDocument(t.Context(), d))
		})
		assert.Equal(t, strconv.Itoa(won), string(readDocument(t, handles[0], "d", version+1).Data))
	}
	race(t, durable.ErrNotFound, func(i int) error { return handles[i%len(handles)].DeleteDocument(t.Context(), "blueprint", "d", 0) })
	race(t, durable.ErrConflict, func(i int) error {
		return second(handles[i%len(handles)].PutDocument(t.Context(), newDocument("d", 0)))
	})
	assert.Equal(t, []string{"d 6"}, namesOfDocuments(t, handles[0], "blueprint", "", 10))
}
