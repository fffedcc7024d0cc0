package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// grpcTransport calls the export method of a signal's service. The collector answers with a message whose only member
// describes rejected items.
type grpcTransport struct {
	settings

	client *connect.Client[[]byte, []byte]
}

func newGRPCTransport(s settings, client *http.Client) *grpcTransport {
	options := []connect.ClientOption{connect.WithGRPC(), connect.WithCodec(bytesCodec{}), connect.WithReadMaxBytes(mostBytes)}
	if s.gzip {
		options = append(options, connect.WithSendGzip())
	}
	return &grpcTransport{settings: s, client: connect.NewClient[[]byte, []byte](client, s.url, options...)}
}

// post implements transport.
func (g *grpcTransport) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	within, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	req := connect.NewRequest(&body)
	for name, values := range g.header {
		req.Header()[name] = slices.Clone(values)
	}
	res, err := g.client.CallUnary(within, req)
	if err != nil {
		again, after = grpcRetry(err)
		return again && ctx.Err() == nil, after, fmt.Errorf("sending telemetry to %s: %w", g.shown, err)
	}
	return false, 0, partialError(*res.Msg)
}

// grpcRetry reports whether a failed call may be repeated, and how long the collector asks to wait. The codes follow
// the OTLP specification. resource_exhausted is retried only if the collector says when. As with HTTP, there is no
// retry if the collector cannot be reached.
func grpcRetry(err error) (again bool, after time.Duration) {
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op == "dial" && !broken.Timeout() {
		return false, 0
	}
	if failed, ok := errors.AsType[*connect.Error](err); ok {
		for _, detail := range failed.Details() {
			if detail.Type() == "google.rpc.RetryInfo" {
				after, again = retryDelay(detail.Bytes())
			}
		}
	}
	switch connect.CodeOf(err) {
	case connect.CodeCanceled, connect.CodeDeadlineExceeded, connect.CodeAborted, connect.CodeOutOfRange, connect.CodeUnavailable, connect.CodeDataLoss:
		return true, after
	case connect.CodeResourceExhausted:
		return again, after
	}
	return false, 0
}

// retryDelay reads a google.rpc.RetryInfo. Member 1 is a duration, with its seconds in member 1 and its nanoseconds in
// 2.
func retryDelay(info []byte) (time.Duration, bool) {
	var seconds, nanoseconds uint64
	err := eachMember(info, func(number protowire.Number, _ uint64, duration []byte) error {
		if number != 1 || duration == nil {
			return nil
		}
		return eachMember(duration, func(number protowire.Number, n uint64, _ []byte) error {
			switch number {
			case 1:
				seconds = n
			case 2:
				nanoseconds = n
			}
			return nil
		})
	})
	longest := uint64(time.Hour / time.Second) // longer waits are never used
	return time.Duration(min(seconds, longest))*time.Second + time.Duration(min(nanoseconds, 1e9)), err == nil
}

// bytesCodec passes on encoded messages. Error statuses are not encoded.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(message any) ([]byte, error) {
	switch m := message.(type) {
	case *[]byte:
		return *m, nil
	case proto.Message:
		return proto.Marshal(m)
	}
	return nil, fmt.Errorf("encoding %T: it is not a message", message)
}

func (bytesCodec) Unmarshal(data []byte, message any) error {
	switch m := message.(type) {
	case *[]byte:
		*m = slices.Clone(data)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("decoding %T: it is not a message", message)
}
