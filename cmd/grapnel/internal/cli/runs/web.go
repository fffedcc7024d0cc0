package runs

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// showWeb prints the address of the page of a run. Unless a coordinator serves it, this process does, until it is interrupted.
func (r *runs) showWeb(ctx context.Context, k *storage.Store, about durable.Run) error {
	if k.Served() {
		at, err := url.JoinPath(k.Address.String(), "ui", "runs", string(about.ID))
		fmt.Fprintln(r.Std.Out, at)
		return err
	}
	ctx, release := console.WithInterrupt(ctx, func() {}, func() {})
	defer release()
	c, err := coordinator.New(coordinator.Options{Store: k.Direct, AllRuns: true})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(r.Std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pages := web.New(web.Options{Coordinator: api.Local{Coordinator: c}, Store: k.Direct, Token: rand.Text(), ReadOnly: true, Log: log})
	server := approval.Server{Handler: api.Guard(pages, nil), Grace: time.Second, Options: approval.Options{Log: log}}
	listener, err := server.Listen(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Std.Out, "http://%s%s\n", listener.Addr(), web.SignInToRun(pages.NewCode(), about.ID))
	return server.Serve(ctx, listener)
}
