package otlp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	firstPause = 5 * time.Second
	longest    = 30 * time.Second // longest pause between attempts
	patience   = time.Minute      // limit for all attempts together
	mostBytes  = 4 << 20          // maximum answer size
)

// errStopped is returned for exports after the shutdown.
var errStopped = errors.New("the exporter is shut down")

// transport posts an encoded message once. Again reports that a retry may succeed, after the time that the collector
// asks for.
type transport interface {
	post(ctx context.Context, body []byte) (again bool, after time.Duration, err error)
}

// sender sends one signal's messages.
type sender struct {
	transport

	shown   string // the address for messages
	client  *http.Client
	stopped chan struct{}
	once    sync.Once
}

func newSender(s signal) (*sender, error) {
	read, err := s.settings()
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: newHTTPTransport(read), Timeout: read.timeout, CheckRedirect: keepAddress}
	out := &sender{shown: read.shown, client: client, stopped: make(chan struct{})}
	if read.grpc {
		out.transport = newGRPCTransport(read, client)
	} else {
		out.transport = &httpTransport{read, client}
	}
	return out, nil
}

// newHTTPTransport returns the transport for a collector. For gRPC it uses only HTTP/2, also without TLS.
func newHTTPTransport(s settings) *http.Transport {
	out := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: s.tls,
	}
	if s.grpc {
		out.Protocols = &http.Protocols{}
		out.Protocols.SetHTTP2(s.secure)
		out.Protocols.SetUnencryptedHTTP2(!s.secure)
	}
	return out
}

// keepAddress refuses to follow redirects, because they would pass the headers, including keys, to an address that is
// not in the configuration.
func keepAddress(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// close ends waiting attempts. Later exports fail.
func (s *sender) close() {
	s.once.Do(func() {
		close(s.stopped)
		s.client.CloseIdleConnections()
	})
}

// send posts a message until the collector accepts it.
func (s *sender) send(ctx context.Context, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding for %s: %w", s.shown, err)
	}
	until := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(pause*3/2, longest) {
		select {
		case <-s.stopped:
			return errStopped
		default:
		}
		again, after, err := s.post(ctx, body)
		wait := max(after, pause/2+rand.N(pause))
		if err == nil || !again || time.Now().Add(wait).After(until) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		case <-s.stopped:
			timer.Stop()
			return errors.Join(err, errStopped)
		}
	}
}

// partialError returns an error if the collector accepted only a part of the message. In the answers to all signals,
// partial_success is member 1, with the number of rejected items and the reason.
func partialError(answer []byte) error {
	var rejected uint64
	var reason string
	err := eachMember(answer, func(number protowire.Number, _ uint64, success []byte) error {
		if number != 1 || success == nil {
			return nil
		}
		return eachMember(success, func(number protowire.Number, n uint64, text []byte) error {
			switch number {
			case 1:
				rejected = n
			case 2:
				reason = string(text)
			}
			return nil
		})
	})
	if err == nil && (rejected > 0 || reason != "") {
		err = fmt.Errorf("the collector rejected %d items: %s", rejected, reason)
	}
	return err
}

// eachMember calls see with each of the message's members that is a number or bytes.
func eachMember(message []byte, see func(number protowire.Number, n uint64, text []byte) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return fmt.Errorf("reading the collector's answer: %w", protowire.ParseError(size))
		}
		message = message[size:]
		var n uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return fmt.Errorf("reading the collector's answer: %w", protowire.ParseError(size))
		}
		message = message[size:]
		if err := see(number, n, text); err != nil {
			return err
		}
	}
	return nil
}
