package durable_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/durabletest"
)

// Answers that did not decide, records and waivers are encrypted, and bound to their places.
func TestEncryptedAnswersAndWaivers(t *testing.T) {
	const secret = "the launch code is 0000"
	for name, c := range map[string]struct{ sql, says string }{
		"nothing":                        {"", ""},
		"a partial answer that decides":  {`UPDATE waits SET answered = 1, answer = (SELECT data FROM audit WHERE more = 1), partial = ''`, `an answer to wait "c" of run "r"`},
		"a partial answer that ends":     {`UPDATE waits SET partial = replace(partial, '"more":true', '"more":true,"ends":true')`, `an answer to wait "c" of run "r"`},
		"an answer to another wait":      {`UPDATE waits SET subject = 'other'`, `wait "c" of run "r"`},
		"a record of another kind":       {`UPDATE audit SET more = 0 WHERE more = 1`, `an answer to wait "c" of run "r"`},
		"a record of another run":        {`UPDATE audit SET run = 's' WHERE kind = 'answer'`, `an answer to wait "c" of run "s"`},
		"a waiver that is valid longer":  {`UPDATE waivers SET expires = expires + 1`, `waiver "w"`},
		"a waiver of another person":     {`UPDATE waivers SET who = 'bob'`, `waiver "w"`},
		"a waiver under another ID":      {`UPDATE waivers SET id = 'v'`, `waiver "v"`},
		"a waiver that is not encrypted": {`UPDATE waivers SET data = x'7b7d'`, `waiver "w": not encrypted`},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempFile(t)
			s := openEncrypted(t, path, durable.Encryption{Key: keyA})
			l, err := s.Begin(t.Context(), durable.Job{ID: "r"}, "one", time.Hour)
			require.NoError(t, err)
			wait := durable.Wait{ID: "c", Kind: durable.WaitFile, Subject: "hash", Data: []byte(secret)}
			require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{wait}}}))
			require.NoError(t, s.Answer(t.Context(), "r", durable.Answers(durable.Answer{Wait: "c", More: true, Data: []byte(secret)})))
			require.NoError(t, s.AddWaiver(t.Context(), durable.Waiver{ID: "w", By: "ann", Expires: time.Now().Add(time.Hour), Data: []byte(secret)}))
			for _, file := range []string{path, path + "-wal"} {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Zero(t, bytes.Count(data, []byte(secret)), file)
			}
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			defer db.Close()
			if c.sql != "" {
				result, err := db.ExecContext(t.Context(), c.sql)
				require.NoError(t, err)
				n, err := result.RowsAffected()
				require.NoError(t, err)
				require.Positive(t, n)
			}

			var errs []error
			var texts []string
			_, err = s.Waits(t.Context(), "r")
			errs = append(errs, err)
			open, err := s.OpenWaits(t.Context(), durable.WaitFilter{})
			errs = append(errs, err)
			checks, err := s.ClaimChecks(t.Context(), "one", time.Hour, 1, []durable.WaitKind{durable.WaitFile})
			errs = append(errs, err)
			for _, w := range append(open, checks...) {
				texts = append(texts, string(w.Data), string(w.Partial[0].Data))
			}
			records, err := s.AuditRecords(t.Context(), durable.AuditFilter{Kind: durable.AuditAnswer})
			errs = append(errs, err)
			for _, r := range records {
				texts = append(texts, string(r.Answer.Data))
			}
			waivers, err := s.Waivers(t.Context(), true)
			errs = append(errs, err)
			for _, w := range waivers {
				texts = append(texts, string(w.Data))
			}
			if c.sql == "" {
				assert.Equal(t, []string{secret, secret, secret, secret, secret, secret}, texts)
				return
			}
			failed := 0
			for _, err := range errs {
				if err != nil {
					failed++
					require.ErrorAs(t, err, new(*durable.DecryptError))
					assert.ErrorContains(t, err, "decrypting "+c.says)
				}
			}
			assert.Positive(t, failed, "what was changed is read")
		})
	}
}

// What a tool asks for and what a person enters are never in plain text in the file of an encrypted store, whether the answer
// comes while the run waits or in memory. Without the key, no answer is recorded beside it.
func TestEncryptedInput(t *testing.T) {
	t.Parallel()
	const answer = `{"name":"Bo Derek-Smythe"}`
	secrets := []string{"What is your name, please?", "Bo Derek-Smythe", "state of the desk", "the desk"}
	assertHidden := func(t *testing.T, path string) {
		t.Helper()
		for _, file := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, secret := range secrets {
				assert.Zero(t, bytes.Count(data, []byte(secret)), "%s has %q", file, secret)
			}
		}
	}
	given := agent.Approval{Verdict: agent.Approve, By: "ann", Input: answer}
	for name, approver := range map[string]capability.Capability{"parked": capability.UseApproval(agent.ParkApprover), "in memory": answering(given)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := tempFile(t)
			store := openEncrypted(t, path, durable.Encryption{Key: keyA})
			k := durable.Keep(store, durable.Options{})
			a := asksForName(t, k, approver)
			s, err := a.Run(t.Context(), agent.NewState(), agent.UserText("go")).Get()
			require.NoError(t, err)
			id := s.Run().ID
			key := keyOf(t, path)
			assertHidden(t, path)
			if s.Parked() {
				open, err := store.OpenWaits(t.Context(), durable.WaitFilter{Kinds: []durable.WaitKind{durable.WaitInput}})
				require.NoError(t, err)
				require.Len(t, open, 1)
				i, err := durable.InterventionOf(open[0])
				require.NoError(t, err)
				asked, _ := i.Questions.Asked()
				assert.Equal(t, secrets[0], asked.Message)

				refused, ok := errors.AsType[*durable.DecryptError](openPlain(t, path).Answer(t.Context(), id, durable.Answers(durable.Answer{Wait: open[0].ID, Data: []byte("{}")})))
				require.True(t, ok, "no plain answer is recorded")
				assert.Equal(t, key, refused.Key)
				other := openEncrypted(t, path, durable.Encryption{Key: keyB})
				_, err = other.OpenWaits(t.Context(), durable.WaitFilter{})
				_, ok = errors.AsType[*durable.DecryptError](err)
				require.True(t, ok, "another key does not read the question: %v", err)

				require.NoError(t, durabletest.Approve(t.Context(), store, id, "c", given))
				assertHidden(t, path)
				s, err = k.Resume(t.Context(), a, id, durable.TakeFree).Get()
				require.NoError(t, err)
			}
			assert.Equal(t, agent.StatusDone, s.Status())
			for i, step := range s.Steps() {
				if i == 0 {
					result := step.Result(0)
					assert.Equal(t, "Hello "+answer, result.Text())
				}
			}
			assertHidden(t, path)
			told := answersOf(t, store)
			require.Len(t, told, 1)
			assert.Equal(t, answer, told[0].Input)
			assert.Equal(t, key, keyOf(t, path))
		})
	}
}
