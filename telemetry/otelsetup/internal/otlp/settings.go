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
	"unicode"

	"github.com/samber/lo"
	"go.opentelemetry.io/otel"
)

// signal is a kind of telemetry. It has a name for variables, a path below a common endpoint, and a gRPC service.
type signal struct{ name, path, service string }

// settings are a signal's settings from the environment.
type settings struct {
	url     string
	shown   string // url without a password
	header  http.Header
	gzip    bool
	grpc    bool
	secure  bool          // uses TLS
	timeout time.Duration // limit for one attempt
	tls     *tls.Config   // nil for the default
}

const prefix = "OTEL_EXPORTER_OTLP_"

// get returns the value and the name of the signal's variable or, if it is not set, of the variable for all signals.
func (s signal) get(name string) (value, variable string) {
	own := prefix + s.name + "_" + name
	if value = strings.TrimSpace(os.Getenv(own)); value != "" {
		return value, own
	}
	return strings.TrimSpace(os.Getenv(prefix + name)), prefix + name
}

// warn reports a variable's wrong value. The rest of the value is used, or the default.
func warn(variable string, err error) {
	if err != nil {
		otel.Handle(fmt.Errorf("%s: %w", variable, err))
	}
}

// settings reads the environment. It warns about wrong values. The error is about the endpoint, which has no
// substitute.
func (s signal) settings() (settings, error) {
	out := settings{header: http.Header{"User-Agent": {"Grapnel OTLP exporter"}}, timeout: 10 * time.Second}
	switch value, variable := s.get("PROTOCOL"); value {
	case "", "http/protobuf":
	case "grpc":
		out.grpc = true
	default:
		warn(variable, fmt.Errorf("unknown protocol %q: using http/protobuf; the other one is grpc", value))
	}
	if variable, err := s.readEndpoint(&out); err != nil {
		return out, fmt.Errorf("%s: %w", variable, err)
	}
	// Headers for all signals come first, so that this signal's headers override them.
	for _, variable := range []string{prefix + "HEADERS", prefix + s.name + "_HEADERS"} {
		warn(variable, addHeaders(out.header, os.Getenv(variable)))
	}
	if value, variable := s.get("TIMEOUT"); value != "" {
		if milliseconds, err := strconv.Atoi(value); err == nil && milliseconds > 0 && milliseconds < 1<<40 {
			out.timeout = time.Duration(milliseconds) * time.Millisecond
		} else {
			warn(variable, fmt.Errorf("expected a number of milliseconds: using %d", out.timeout.Milliseconds()))
		}
	}
	switch value, variable := s.get("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		out.gzip = true
	default:
		warn(variable, fmt.Errorf("unknown compression %q: using none; the other one is gzip", value))
	}
	warn(s.readTLS(&out))
	return out, nil
}

// readEndpoint reads the signal's endpoint. With an error, it returns the name of the invalid variable.
func (s signal) readEndpoint(out *settings) (variable string, err error) {
	value, variable := s.get("ENDPOINT")
	example := "http://localhost:4318"
	if out.grpc {
		example = "http://localhost:4317"
		if value != "" && !strings.Contains(value, "://") { // a gRPC target: another variable selects TLS
			insecure, variable := s.get("INSECURE")
			plain, err := strconv.ParseBool(cmp.Or(insecure, "false"))
			if err != nil {
				warn(variable, errors.New("expected true or false: using false"))
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

// addHeaders parses a list such as "a=1,b=2" with values encoded as in URLs. It leaves wrong entries out. Its error
// does not show them, because they may be secrets.
func addHeaders(h http.Header, list string) (wrong error) {
	for entry := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || !isHeaderName(name) || err != nil || strings.ContainsFunc(value, unicode.IsControl) {
			wrong = errors.New("an entry is left out: expected name=value, separated by commas, with %2C for a comma in a value")
			continue
		}
		h.Set(name, value)
	}
	return wrong
}

// isHeaderName reports whether HTTP accepts a header name.
func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
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
