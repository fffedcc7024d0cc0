package temporal_test

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/durable/temporal"
)

func TestFromEnvironment(t *testing.T) {
	read := func(env map[string]string) (string, temporal.Options, error) {
		return temporal.FromEnvironment(func(name string) string { return env[name] })
	}
	address, o, err := read(nil)
	require.NoError(t, err)
	assert.Empty(t, address)
	assert.Nil(t, o.TLS)

	address, o, err = read(map[string]string{"TEMPORAL_ADDRESS": "host:7233", "TEMPORAL_NAMESPACE": "ours", "TEMPORAL_API_KEY": "secret"})
	require.NoError(t, err)
	assert.Equal(t, []string{"host:7233", "ours", "secret"}, []string{address, o.Namespace, o.APIKey})
	assert.NotNil(t, o.TLS)

	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	_, o, err = read(map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": ca, "TEMPORAL_TLS_SERVER_NAME": "name"})
	require.NoError(t, err)
	assert.Equal(t, "name", o.TLS.ServerName)
	assert.NotNil(t, o.TLS.RootCAs)
	_, o, err = read(map[string]string{"TEMPORAL_TLS_SERVER_NAME": "name", "TEMPORAL_TLS": "false"})
	require.NoError(t, err)
	assert.Nil(t, o.TLS)

	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, env := range map[string]map[string]string{
		"TEMPORAL_TLS=":                          {"TEMPORAL_TLS": "perhaps"},
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH: open": {"TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/missing.pem"},
		"has no certificate":                     {"TEMPORAL_TLS_SERVER_CA_CERT_PATH": empty},
		"require each other":                     {"TEMPORAL_TLS_CLIENT_CERT_PATH": ca},
		"TEMPORAL_TLS_CLIENT_CERT_PATH: open":    {"TEMPORAL_TLS_CLIENT_CERT_PATH": "/missing.pem", "TEMPORAL_TLS_CLIENT_KEY_PATH": "/missing.pem"},
	} {
		_, _, err = read(env)
		assert.ErrorContains(t, err, name)
	}
}
