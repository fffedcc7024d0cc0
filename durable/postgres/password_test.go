package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/postgres"
	"github.com/grapnel-go/grapnel/internal/parts"
)

// TestNoErrorShowsThePassword tries URLs that are wrong in ways in which no parser can
// tell which part of them is the password.
func TestNoErrorShowsThePassword(t *testing.T) {
	const secret = "sesame"
	for _, at := range []string{
		"postgres://u:sesame@127.0.0.1:1/db",
		"postgres://u:sesame/1@127.0.0.1:1/db",
		"postgres://u:/sesame@127.0.0.1:1/db",
		"postgres://u:sesame#@127.0.0.1:1/db",
		"postgres://u:#sesame@127.0.0.1:1/db",
		"postgres://u:sesame?@127.0.0.1:1/db",
		"postgres://u:%sesame@127.0.0.1:1/db",
		"postgres://u:se%same@127.0.0.1:1/db%zz",
		"postgres://u:sesame@[::1/db",
		"postgres://u:sesame@host:port/db",
		"postgres://u:sesame",
		"postgres://sesame:99999999/db",
		"postgres:u:sesame@host/db",
		"u:sesame@host/db",
		"postgres://u@127.0.0.1:1/db?password=sesame&sslmode=wrong",
		"postgres://u@127.0.0.1:1/db?password=sesame&connect_timeout=soon",
		"postgres://u@127.0.0.1:1/db?password=sesame&pool_max_conns=many",
		"postgres://u:sesame@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/nowhere",
		"postgres://u:x?sslmode=verify-full&sslrootcert=/sesame@127.0.0.1:1/db",
		"host=127.0.0.1 port=1 user=u password=sesame",
		"host=127.0.0.1 port=1 user=u password='sesame",
		"host=127.0.0.1 port=1 user=u password = sesame sslmode=wrong",
		"host=127.0.0.1 port=sesame",
		`host=127.0.0.1 port=one user=u password=\'sesame`,
		"password=sesame host=127.0.0.1 port=1 sslpassword=sesame sslkey=/nowhere sslcert=/nowhere",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := postgres.Open(ctx, at, postgres.Options{})
		require.Error(t, err, at)
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), secret, at)
		cancel()
	}
}

func TestWhatIsSaidOfAURL(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres://u:a/b@host/db", postgres.Options{})
	require.ErrorContains(t, err, "open the postgres store: the url or a PG variable is invalid")
	_, err = postgres.Open(t.Context(), "postgres://host/db?sslmode=verify-full&sslrootcert=/nowhere", postgres.Options{})
	require.ErrorContains(t, err, "/nowhere", "a file that is missing is named")
	_, err = postgres.Open(t.Context(), "postgres://u:sesame@127.0.0.1:1/db", postgres.Options{})
	require.ErrorContains(t, err, "user=u database=db")
	require.ErrorContains(t, err, "connection refused")
}

func TestNothingElseShowsThePassword(t *testing.T) {
	at := parts.Postgres(t)
	u, err := url.Parse(at)
	require.NoError(t, err)
	password, _ := u.User.Password()
	s := openClosed(t, at, postgres.Options{})
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("opened", "store", s)
	slog.New(slog.NewTextHandler(&log, nil)).Info("opened", "store", s)
	holder := struct{ Store *postgres.Store }{s}
	said := fmt.Sprintf("%v %s %+v %#v %v %+v %#v %s", s, s, s, s, holder, holder, holder, log.String())
	assert.Contains(t, said, "postgres store grapnel on "+u.Query().Get("host"))
	assert.NotContains(t, said, password)

	u.User = url.UserPassword("grapnel", "sesame")
	_, err = postgres.Open(t.Context(), u.String(), postgres.Options{})
	require.ErrorContains(t, err, "password authentication failed")
	assert.NotContains(t, err.Error(), "sesame")
}

// TestVariables leaves all of the URL to the environment and a password file.
func TestVariables(t *testing.T) {
	at := parts.Postgres(t)
	u, err := url.Parse(at)
	require.NoError(t, err)
	password, _ := u.User.Password()
	t.Setenv("PGHOST", u.Query().Get("host"))
	t.Setenv("PGDATABASE", u.Path[1:])
	t.Setenv("PGUSER", u.User.Username())
	t.Setenv("PGPASSWORD", password)
	s := openClosed(t, "", postgres.Options{})
	create(t, s, "r")

	t.Setenv("PGPASSWORD", "")
	file := filepath.Join(t.TempDir(), "pgpass")
	require.NoError(t, os.WriteFile(file, []byte("*:*:*:*:"+password+"\n"), 0o600))
	t.Setenv("PGPASSFILE", file)
	assert.Equal(t, "r", string(run(t, openClosed(t, "", postgres.Options{}), "r").ID))

	t.Setenv("PGPORT", "sesame")
	_, err = postgres.Open(t.Context(), "", postgres.Options{})
	require.ErrorContains(t, err, "a PG variable is invalid")
	assert.NotContains(t, err.Error(), "sesame")
}
