package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// suspend begins a run that waits and that no process holds.
func suspend(t testing.TB, s durable.Store, id agent.RunID, waits ...durable.Wait) {
	t.Helper()
	l := create(t, s, id)
	require.NoError(t, s.Commit(t.Context(), l, commit(durable.Update{Status: durable.StatusWaiting, Waits: waits})))
	require.NoError(t, s.Release(t.Context(), l, 0))
}

// allWait waits until n connections wait for locks.
func allWait(t *testing.T, s *postgres.Store, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(column(t, s, waitingQuery)) == n }, time.Minute, 5*time.Millisecond)
}

var watched = []durable.WaitKind{durable.WaitFile, durable.WaitCommand}

// TestTwoOwnersClaimChecks at the same time, through stores of their own: none gets a wait that the other has.
func TestTwoOwnersClaimChecks(t *testing.T) {
	at := parts.Postgres(t)
	stores := []*postgres.Store{openClosed(t, at, postgres.Options{}), openClosed(t, at, postgres.Options{})}
	const n = 30
	for round := range 4 {
		for i := range n {
			suspend(t, stores[0], agent.RunID(fmt.Sprint(round, " run ", i)), durable.Wait{ID: "gate", Kind: watched[i%2], Asked: time.Unix(int64(i), 0)})
		}
		if round == 2 { // the claims of both have run out, so that both want all
			_, err := stores[0].Pool().Exec(t.Context(), `UPDATE waits SET checked_until = now() - interval '1 second'`)
			require.NoError(t, err)
		}
		// Both look before one of them writes.
		blocked, err := stores[0].Pool().Begin(t.Context())
		require.NoError(t, err)
		_, err = blocked.Exec(t.Context(), `LOCK TABLE waits IN SHARE MODE`)
		require.NoError(t, err)
		var (
			group sync.WaitGroup
			got   [2][]durable.Wait
		)
		for owner, s := range stores {
			group.Go(func() {
				all, err := s.ClaimChecks(t.Context(), fmt.Sprint("owner ", owner), time.Hour, 10*n, watched)
				assert.NoError(t, err)
				got[owner] = all
			})
		}
		allWait(t, stores[0], 2)
		require.NoError(t, blocked.Commit(t.Context()))
		group.Wait()
		names := func(all []durable.Wait) []agent.RunID {
			return lo.Map(all, func(w durable.Wait, _ int) agent.RunID { return w.Run })
		}
		assert.Empty(t, lo.Intersect(names(got[0]), names(got[1])), "round %d: waits of both", round)
		for owner, s := range stores {
			all, err := s.ClaimChecks(t.Context(), fmt.Sprint("owner ", owner), time.Hour, 10*n, watched)
			require.NoError(t, err)
			assert.Subset(t, names(all), names(got[owner]), "round %d: it keeps what it has", round)
			got[owner] = all
		}
		assert.Len(t, append(names(got[0]), names(got[1])...), n*(round+1), "round %d: each wait has an owner", round)
	}
}

// TestClaimChecksWritesNoMoreThanItMust: a claim with more than half of its time left stays as it is.
func TestClaimChecksWritesNoMoreThanItMust(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	suspend(t, s, "r", durable.Wait{ID: "gate", Kind: durable.WaitFile, Host: "here"})
	claim := func() {
		all, err := s.ClaimChecks(t.Context(), "one", time.Hour, 10, watched, "here")
		require.NoError(t, err)
		require.Len(t, all, 1)
	}
	version := func() []string { return column(t, s, `SELECT xmin::text FROM waits`) }
	claim()
	before := version()
	claim()
	assert.Equal(t, before, version())
	_, err := s.Pool().Exec(t.Context(), `UPDATE waits SET checked_until = now() + interval '29 minutes'`)
	require.NoError(t, err)
	claim()
	assert.Equal(t, []string{"true"}, column(t, s, `SELECT (checked_until > now() + interval '59 minutes')::text FROM waits`))
}

// TestAnswersAtTheSameTime has many people answer: each answer is formed from those before it, and none is lost.
func TestAnswersAtTheSameTime(t *testing.T) {
	at := parts.Postgres(t)
	const people = 8
	s := openClosed(t, at, postgres.Options{Conns: people + 2})
	suspend(t, s, "r", durable.Wait{ID: "c", Subject: "h", Tool: "pay"})
	unlock := lockRun(t, s, "r")
	var group sync.WaitGroup
	for i := range people {
		group.Go(func() {
			assert.NoError(t, s.Answer(t.Context(), "r", func(waits []durable.Wait, _ time.Time) ([]durable.Answer, error) {
				seen := len(waits[0].Answers())
				return []durable.Answer{{Wait: "c", More: seen < people-1, By: fmt.Sprint("person ", i), Data: fmt.Append(nil, seen)}}, nil
			}))
		})
	}
	allWait(t, s, people)
	unlock()
	group.Wait()
	all, err := s.Waits(t.Context(), "r")
	require.NoError(t, err)
	answers := all[0].Answers()
	require.Len(t, answers, people)
	require.NotNil(t, all[0].Answer, "the last one decides")
	assert.Len(t, lo.UniqBy(answers, func(a durable.Answer) string { return a.By }), people, "each person once")
	for i, a := range answers {
		assert.Equal(t, fmt.Sprint(i), string(a.Data), "formed on top of those before it")
	}
	records, err := s.AuditRecords(t.Context(), durable.AuditFilter{Run: "r", Subject: "pay"})
	require.NoError(t, err)
	assert.Len(t, records, people)
	assert.Equal(t, []agent.RunID{"r"}, ready(t, s))
}

// TestLongTexts stores what a model may have made up: it fits no index.
func TestLongTexts(t *testing.T) {
	s := openClosed(t, parts.Postgres(t), postgres.Options{})
	var b strings.Builder
	for i := range 10_000 { // it must not compress to nothing
		fmt.Fprint(&b, i*i)
	}
	long := b.String()
	suspend(t, s, "r", durable.Wait{ID: long, Subject: long, Kind: durable.WaitApproval}, durable.Wait{ID: "d", Subject: "h", Tool: long})
	open, err := s.OpenWaits(t.Context(), durable.WaitFilter{Limit: 1})
	require.NoError(t, err)
	require.Len(t, open, 1)
	rest, err := s.OpenWaits(t.Context(), durable.WaitFilter{After: &open[0]})
	require.NoError(t, err)
	require.Len(t, rest, 1)
	assert.ElementsMatch(t, []string{long, "d"}, []string{open[0].ID, rest[0].ID})
	require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(durable.Answer{Wait: long}, durable.Answer{Wait: "d"})))
	records, err := s.AuditRecords(t.Context(), durable.AuditFilter{Subject: long})
	require.NoError(t, err)
	assert.Len(t, records, 2)
	records, err = s.AuditRecords(t.Context(), durable.AuditFilter{Subject: long[:len(long)-1]})
	require.NoError(t, err)
	assert.Empty(t, records, "the index knows only the beginning")
}
