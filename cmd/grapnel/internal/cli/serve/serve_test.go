package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeCertificate writes a certificate for localhost with a serial number, and its key.
func writeCertificate(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	require.NoError(t, os.Chtimes(cert, time.Time{}, time.Unix(serial, 0)))
}

// With a certificate, grapnel serve listens on any address; it reads a renewed certificate, and keeps the old one while the new one is
// not complete.
func TestServeWithCertificate(t *testing.T) {
	dir := t.TempDir()
	o := &coordinating{listen: "0.0.0.0:0", tlsCert: filepath.Join(dir, "cert.pem"), tlsKey: filepath.Join(dir, "key.pem")}
	_, err := o.open(t.Context())
	require.ErrorContains(t, err, "--tls-cert")
	writeCertificate(t, o.tlsCert, o.tlsKey, 1)
	listener, err := o.open(t.Context())
	require.NoError(t, err)
	defer listener.Close()
	serial := func() int64 {
		go func() {
			if c, err := listener.Accept(); err == nil {
				_ = c.(*tls.Conn).Handshake() //nolint:noctx // in a test
				_ = c.Close()
			}
		}()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		c, err := dialer.DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		require.NoError(t, err)
		defer c.Close()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	assert.EqualValues(t, 1, serial())
	require.NoError(t, os.WriteFile(o.tlsCert, []byte("half"), 0o600))
	assert.EqualValues(t, 1, serial())
	writeCertificate(t, o.tlsCert, o.tlsKey, 2)
	assert.EqualValues(t, 2, serial())
}

// Without a certificate only the loopback is served, and origins are whole addresses.
func TestServeRefusesAddresses(t *testing.T) {
	for want, o := range map[string]*coordinating{
		"other addresses need --tls-cert": {listen: "0.0.0.0:0"},
		"expected a URL without a path":   {listen: "127.0.0.1:0", origins: []string{"grapnel.example.com"}},
	} {
		_, err := o.open(t.Context())
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, (&coordinating{capacity: 1, grace: 1, tlsCert: "x"}).check(), "give both or neither")
	require.ErrorContains(t, (&coordinating{capacity: 1, grace: 1, rate: -1}).check(), "--rate is -1")
}
