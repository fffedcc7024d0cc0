package temporal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

const (
	service      = "/temporal.api.workflowservice.v1.WorkflowService/"
	largestReply = 4 << 20
	// callTimeout limits calls that are answered at once, and pollTimeout polls, which the server answers after a minute
	// if there is nothing.
	callTimeout = 10 * time.Second
	pollTimeout = 70 * time.Second
)

// client calls the methods of Temporal's frontend service.
type client struct {
	address string
	http    *http.Client
	header  http.Header

	mu      sync.Mutex
	methods map[string]*connect.Client[[]byte, []byte]
}

func newClient(address string, o Options) *client {
	transport := &http.Transport{
		Protocols: new(http.Protocols),
		HTTP2:     &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	url := "http://" + address
	if o.TLS != nil {
		url = "https://" + address
		transport.TLSClientConfig = o.TLS.Clone()
		transport.Protocols.SetHTTP2(true)
	} else {
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	header := http.Header{"Temporal-Namespace": {o.Namespace}}
	if o.APIKey != "" {
		header.Set("Authorization", "Bearer "+o.APIKey)
	}
	return &client{
		address: url, http: &http.Client{Transport: transport}, header: header,
		methods: map[string]*connect.Client[[]byte, []byte]{},
	}
}

// call calls a method, and returns the encoded answer.
func (c *client) call(ctx context.Context, timeout time.Duration, method string, body message) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req := connect.NewRequest((*[]byte)(&body))
	for name, values := range c.header {
		req.Header()[name] = slices.Clone(values)
	}
	res, err := c.method(method).CallUnary(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("calling %s of Temporal: %w", method, err)
	}
	return *res.Msg, nil
}

func (c *client) method(name string) *connect.Client[[]byte, []byte] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.methods[name] == nil {
		c.methods[name] = connect.NewClient[[]byte, []byte](c.http, c.address+service+name,
			connect.WithGRPC(), connect.WithCodec(bytesCodec{}), connect.WithReadMaxBytes(largestReply))
	}
	return c.methods[name]
}

func (c *client) closeIdle() { c.http.CloseIdleConnections() }

// errorDetail returns the detail of an error of the server with a type of the package temporal.api.errordetails.v1, or
// nil if there is none.
func errorDetail(err error, name string) []byte {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil
	}
	for _, detail := range failed.Details() {
		if detail.Type() == "temporal.api.errordetails.v1."+name {
			return append(make([]byte, 0, 64), detail.Bytes()...) // not nil, also when empty
		}
	}
	return nil
}

// bytesCodec passes on encoded messages. The statuses of errors are not encoded.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(m any) ([]byte, error) {
	switch m := m.(type) {
	case *[]byte:
		return *m, nil
	case proto.Message:
		return proto.Marshal(m)
	}
	return nil, fmt.Errorf("encoding %T: it is not a message", m)
}

func (bytesCodec) Unmarshal(data []byte, m any) error {
	switch m := m.(type) {
	case *[]byte:
		*m = slices.Clone(data)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, m)
	}
	return fmt.Errorf("decoding %T: it is not a message", m)
}
