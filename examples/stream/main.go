// Command stream sends a run to a browser while it happens, as server-sent events.
//
//	go run ./examples/stream                           starts the server, and a client that prints what it receives
//	go run ./examples/stream -listen localhost:8080    serves http://localhost:8080/ until Ctrl-C
//
// The model is a script.
package main

import (
	"context"
	_ "embed"
	"flag"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/agent/agenttest"
	"github.com/grapnel-go/grapnel/builder"
	"github.com/grapnel-go/grapnel/capability"
	"github.com/grapnel-go/grapnel/hooks"
	"github.com/grapnel-go/grapnel/toolexec"
)

//go:embed page.html
var page []byte

type Door struct {
	Door string `json:"door"`
}

var openDoor = toolexec.Func("open_door", "Opens a door.", func(_ context.Context, in Door) (string, error) {
	return "the " + in.Door + " is open", nil
})

var onlyOffice = hooks.OnCall("only-office", "open_door", func(_ context.Context, c hooks.ToolContext, in Door) hooks.Result {
	if in.Door != "office" {
		return c.Deny("the " + in.Door + " stays shut")
	}
	return c.Allow()
})

var script = agenttest.Script(
	agenttest.Say("I open both.").Call("open_door", `{"door":"office"}`).Call("open_door", `{"door":"safe"}`),
	agenttest.Say("The office is open."),
)

func main() {
	listen := flag.String("listen", "", "an address to serve browsers at, such as localhost:8080")
	flag.Parse()
	handler, err := newHandler(script)
	if err == nil && *listen != "" {
		server := http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		err = server.ListenAndServe()
	} else if err == nil {
		err = showStream(context.Background(), os.Stdout, handler)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// newHandler serves the page at / and a run at /run.
func newHandler(model agent.Driver) (http.Handler, error) {
	a, err := builder.New().WithDriver(model).With(capability.UseTools(openDoor), capability.UseHooks(onlyOffice)).Build().Get()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	mux.HandleFunc("GET /run", func(w http.ResponseWriter, r *http.Request) { streamRun(w, r, a) })
	return mux, nil
}
