package worker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/action"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/agents"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/gate"
)

// callbackKey is the environment variable with the secret of callback URLs.
const callbackKey = "GRAPNEL_CALLBACK_KEY"

// gateFlags are the flags of a worker about gates.
type gateFlags struct {
	address, url string
}

func (g *gateFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&g.address, "callbacks", "", "serve the callbacks of gates at this loopback `address`, such as localhost:8765")
	f.StringVar(&g.url, "callback-url", "", "the `URL` of a proxy in front of --callbacks, for links; the default is the address itself. "+
		callbackKey+" is the secret that all workers behind one URL share")
}

// watch returns what watches the gates of the store, and serves their callbacks until stop is called.
func (g *gateFlags) watch(
	ctx context.Context, store durable.Store, owner string, o *flags, log *Log,
) (watch func(context.Context), stop func(), err error) {
	stop = func() {}
	if o.once { // it waits for nothing
		return nil, stop, nil
	}
	host := action.Host{Secrets: action.Secrets{File: agents.SecretsFile()}}
	options := gate.Options{Host: host, Owner: owner, Callbacks: g.url, Claim: o.lease, Poll: o.poll}
	if key := os.Getenv(callbackKey); key != "" {
		options.Key = []byte(key)
	}
	serves := gate.HandlerOptions{}
	if g.url != "" {
		at, err := url.Parse(g.url)
		if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
			return nil, stop, fmt.Errorf("--callback-url is %q: it must be a URL, such as https://desk.example.com", g.url)
		}
		serves.Origins = []string{at.Scheme + "://" + at.Host}
	}
	if g.address != "" {
		listener, err := ListenLocally(ctx, "--callbacks", g.address)
		if err != nil {
			return nil, stop, err
		}
		if options.Callbacks == "" {
			options.Callbacks = "http://" + listener.Addr().String()
		}
		stop = ServeCallbacks(listener, store, serves)
		log.Note(fmt.Sprintf("Callbacks: http://%s%s", listener.Addr(), gate.Path))
	}
	w, err := gate.NewWatcher(store, options)
	if err != nil {
		stop()
		return nil, func() {}, err
	}
	return w.Run, stop, nil
}

// ServeCallbacks serves the callbacks of gates until stop is called.
func ServeCallbacks(listener net.Listener, store durable.Store, o gate.HandlerOptions) (stop func()) {
	server := &http.Server{
		Handler: gate.Handler(store, o), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	go func() { _ = server.Serve(listener) }() // it ends with stop
	return func() { _ = server.Close() }
}
