package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"
)

// signal is a kind of telemetry: its name in variables, its path below a common endpoint, and its service for
// gRPC.
type signal struct{ name, path, service string }

// settings are the settings of a signal from the environment.
type settings struct {
	url     string
	shown   string // url without a password
	header  http.Header
	gzip    bool
	grpc    bool
	secure  bool          // uses TLS
	timeout time.Duration // limit for one attempt
	tls     *tls.Config   // nil means the default
}

const prefix = "OTEL_EXPORTER_OTLP_"

// get returns the value and the name of the variable for the signal or, if it is not set, of the variable for
// all signals.
func (s signal) get(name string) (value, variable string) {
	own := prefix + s.name + "_" + name
	if value = strings.TrimSpace(os.Getenv(own)); value != "" {
		return value, own
	}
	return strings.TrimSpace(os.Getenv(prefix + name)), prefix + name
}

// settings reads the environment. The error joins all mistakes.
func (s signal) settings() (settings, error) {
	out := settings{header: http.Header{"User-Agent": {"Grapnel OTLP exporter"}}, timeout: 10 * time.Second}
	var wrong []error
	note := func(variable string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", variable, err))
		}
	}
	switch value, variable := s.get("PROTOCOL"); value {
	case "", "http/protobuf":
	case "grpc":
		out.grpc = true
	default:
		note(variable, fmt.Errorf("unknown protocol %q: use http/protobuf or grpc", value))
	}
	variable, err := s.readEndpoint(&out)
	note(variable, err)
	// Headers for all signals come first, so that those for this signal override them.
	for _, variable := range []string{prefix + "HEADERS", prefix + s.name + "_HEADERS"} {
		note(variable, addHeaders(out.header, os.Getenv(variable)))
	}
	if value, variable := s.get("TIMEOUT"); value != "" {
		milliseconds, err := strconv.Atoi(value)
		if err != nil || milliseconds <= 0 {
			note(variable, errors.New("expected a number of milliseconds"))
		}
		out.timeout = time.Duration(milliseconds) * time.Millisecond
	}
	switch value, variable := s.get("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		out.gzip = true
	default:
		note(variable, fmt.Errorf("unknown compression %q: use gzip or none", value))
	}
	variable, err = s.readTLS(&out)
	note(variable, err)
	return out, errors.Join(wrong...)
}

// readEndpoint reads the endpoint of the signal. With an error, it returns the name of the invalid variable.
func (s signal) readEndpoint(out *settings) (variable string, err error) {
	value, variable := s.get("ENDPOINT")
	example := "http://localhost:4318"
	if out.grpc {
		example = "http://localhost:4317"
		if value != "" && !strings.Contains(value, "://") { // a gRPC target: another variable selects TLS
			insecure, variable := s.get("INSECURE")
			plain, err := strconv.ParseBool(cmp.Or(insecure, "false"))
			if err != nil {
				return variable, errors.New("use true or false")
			}
			value = lo.Ternary(plain, "http://", "https://") + value
		}
	}
	u, err := url.Parse(cmp.Or(value, example))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return variable, fmt.Errorf("not an endpoint: expected a URL such as %s", example)
	}
	out.secure = u.Scheme == "https"
	switch {
	case out.grpc:
		u.Path = "/opentelemetry.proto.collector." + s.service + "/Export"
	case variable == prefix+"ENDPOINT":
		u.Path = path.Join("/", u.Path, s.path)
	default:
		u.Path = cmp.Or(u.Path, "/")
	}
	out.url, out.shown = u.String(), u.Redacted()
	return variable, nil
}

// addHeaders parses a list such as "a=1,b=2" with values encoded as in URLs.
func addHeaders(h http.Header, list string) error {
	for entry := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return errors.New("not a list of headers: expected name=value, separated by commas, with %2C for a comma in a value")
		}
		h.Set(name, value)
	}
	return nil
}

// readTLS reads certificates. With an error, it returns the name of the invalid variable.
func (s signal) readTLS(out *settings) (variable string, err error) {
	if file, variable := s.get("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return variable, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return variable, errors.New("no certificate in " + file)
		}
		out.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	certificate, variable := s.get("CLIENT_CERTIFICATE")
	key, _ := s.get("CLIENT_KEY")
	if certificate == "" && key == "" {
		return variable, nil
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return variable, err
	}
	if out.tls == nil {
		out.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	out.tls.Certificates = []tls.Certificate{pair}
	return variable, nil
}
