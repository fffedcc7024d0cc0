package policytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/grapnel-go/grapnel/action"
)

// received is a request to the receiver.
type received struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

func (r received) String() string { return r.Method + " " + r.Path }

// receiver is a web service on the loopback interface.
type receiver struct {
	url    string
	server *http.Server
	done   chan struct{}

	mu   sync.Mutex
	says map[string]response
	got  []received
}

// startReceiver starts a receiver.
func startReceiver(says map[string]response) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the receiver: %w", err)
	}
	r := &receiver{url: "http://" + listener.Addr().String(), done: make(chan struct{}), says: says}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.done)
		_ = r.server.Serve(listener) // ends with close
	}()
	return r, nil
}

// answers sets the responses by path.
func (r *receiver) answers(says map[string]response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says = says
}

// ServeHTTP sends the response for the path, or 404.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(io.LimitReader(request.Body, 16*action.DefaultMaxBytes))
	if err != nil {
		return // the client has disconnected
	}
	r.mu.Lock()
	r.got = append(r.got, received{request.Method, request.URL.Path, request.Header, body})
	says, known := r.says[request.URL.Path]
	r.mu.Unlock()
	if !known {
		http.Error(w, "the receiver of this test has no response for "+request.URL.Path, http.StatusNotFound)
		return
	}
	if says.Delay > 0 {
		wait := time.NewTimer(says.Delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-request.Context().Done():
			return
		}
	}
	for name, value := range says.Headers {
		w.Header().Set(name, value)
	}
	if says.Status != 0 {
		w.WriteHeader(says.Status)
	}
	_, _ = w.Write(bodyOf(says.Body)) // the client may have disconnected
}

func (r *receiver) requests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) close() error {
	err := r.server.Close()
	<-r.done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
