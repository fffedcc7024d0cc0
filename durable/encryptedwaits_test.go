package durable_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable"
)

// Answers that did not decide, records and waivers are encrypted, and bound to their places.
func TestEncryptedAnswersAndWaivers(t *testing.T) {
	const secret = "the launch code is 0000"
	for name, c := range map[string]struct{ sql, says string }{
		"nothing":                        {"", ""},
		"a partial answer that decides":  {`UPDATE waits SET answered = 1, answer = (SELECT data FROM audit WHERE more = 1), partial = ''`, `an answer to wait "c" of run "r"`},
		"a partial answer that ends":     {`UPDATE waits SET partial = replace(partial, '"more":true', '"more":true,"ends":true')`, `an answer to wait "c" of run "r"`},
		"an answer to another wait":      {`UPDATE waits SET hash = 'other'`, `wait "c" of run "r"`},
		"a record of another kind":       {`UPDATE audit SET more = 0 WHERE more = 1`, `an answer to wait "c" of run "r"`},
		"a record of another run":        {`UPDATE audit SET run = 's' WHERE kind = 'answer'`, `an answer to wait "c" of run "s"`},
		"a waiver that is valid longer":  {`UPDATE waivers SET expires = expires + 1`, `waiver "w"`},
		"a waiver of another person":     {`UPDATE waivers SET who = 'bob'`, `waiver "w"`},
		"a waiver under another ID":      {`UPDATE waivers SET id = 'v'`, `waiver "v"`},
		"a waiver that is not encrypted": {`UPDATE waivers SET data = x'7b7d'`, `waiver "w": not encrypted`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			s := encrypt(t, openPlain(t, path), durable.Encryption{Key: keyA})
			defer s.Close()
			l, err := s.Begin(t.Context(), durable.Job{ID: "r"}, "one", time.Hour)
			require.NoError(t, err)
			wait := durable.Wait{ID: "c", Kind: durable.WaitFile, Hash: "hash", Data: []byte(secret)}
			require.NoError(t, s.Commit(t.Context(), l, durable.Commit{Update: durable.Update{Status: durable.StatusWaiting, Waits: []durable.Wait{wait}}}))
			require.NoError(t, s.Answer(t.Context(), "r", durable.Answer{Wait: "c", Hash: "hash", More: true, Data: []byte(secret)}))
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
