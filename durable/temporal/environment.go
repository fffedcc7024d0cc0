package temporal

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// FromEnvironment returns the address and the options that environment variables select, with the names that Temporal's own
// tools use. The address is empty unless TEMPORAL_ADDRESS is set. The caller sets Options.Queues.
//
//	TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS,
//	TEMPORAL_TLS_SERVER_NAME, TEMPORAL_TLS_SERVER_CA_CERT_PATH,
//	TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH
//
// An API key and each of the TEMPORAL_TLS_ variables turn on TLS, unless TEMPORAL_TLS is false.
func FromEnvironment(getenv func(string) string) (address string, o Options, err error) {
	o = Options{Namespace: getenv("TEMPORAL_NAMESPACE"), APIKey: getenv("TEMPORAL_API_KEY")}
	name, ca := getenv("TEMPORAL_TLS_SERVER_NAME"), getenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH")
	certificate, key := getenv("TEMPORAL_TLS_CLIENT_CERT_PATH"), getenv("TEMPORAL_TLS_CLIENT_KEY_PATH")
	encrypted := o.APIKey != "" || name != "" || ca != "" || certificate != "" || key != ""
	if value := getenv("TEMPORAL_TLS"); value != "" {
		if encrypted, err = strconv.ParseBool(value); err != nil {
			return "", Options{}, fmt.Errorf("TEMPORAL_TLS=%q: it is neither true nor false", value)
		}
	}
	if encrypted {
		if o.TLS, err = readTLS(name, ca, certificate, key); err != nil {
			return "", Options{}, err
		}
	}
	return getenv("TEMPORAL_ADDRESS"), o, nil
}

func readTLS(name, ca, certificate, key string) (*tls.Config, error) {
	config := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("TEMPORAL_TLS_SERVER_CA_CERT_PATH: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("TEMPORAL_TLS_SERVER_CA_CERT_PATH: %s has no certificate", ca)
		}
	}
	if (certificate == "") != (key == "") {
		return nil, errors.New("TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH require each other")
	}
	if certificate != "" {
		own, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("TEMPORAL_TLS_CLIENT_CERT_PATH: %w", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
