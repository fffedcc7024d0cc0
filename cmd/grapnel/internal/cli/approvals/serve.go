package approvals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/coordinator/api"
	"github.com/grapnel-go/grapnel/coordinator/web"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/approval"
	"github.com/grapnel-go/grapnel/internal/yamlfile"
)

// serving are the flags of "grapnel approvals serve".
type serving struct {
	listen, people, webhook, notify, linkBase string
}

func (r *approvals) newServeInbox() *cobra.Command {
	var o serving
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve what waits as pages and as JSON, on this machine, and send notices",
		Long: `Serve the inbox of the control room until interrupted, on the loopback. It prints one address that
signs in the user of the operating system, once and within an hour.
The people of --people sign in with their own tokens: see "grapnel approvals token".

With --webhook or --notify, people are told about what waits and has no link yet, such as
calls of runs that the command line began. For people on other machines, put a proxy with HTTPS in
front of it and name its address with --link-base.

If the environment configures OpenTelemetry, it measures how long the oldest open wait has been
unanswered (docs/observability.md).`,
		Args: console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, release := console.WithInterrupt(c.Context(), func() {}, func() {})
			defer release()
			return console.WithTelemetry(ctx, "", r.Std.Err, func(ctx context.Context) error {
				return r.WithDirect(ctx, false, func(k *storage.Store) error { return r.serveInbox(ctx, k, &o) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "the loopback `address` to listen on")
	storage.RegisterPeople(c, &o.people)
	f.StringVar(&o.webhook, "webhook", "", "post a notice of what waits to this `URL`")
	f.StringVar(&o.notify, "notify", "", "run this `program` for what waits, with the notice on standard input and GRAPNEL_LINK in its environment")
	f.StringVar(&o.linkBase, "link-base", "", "the `URL` under which people reach it, such as that of a proxy (default: the address itself)")
	return c
}

func (r *approvals) serveInbox(ctx context.Context, k *storage.Store, o *serving) error {
	log := slog.New(slog.NewTextHandler(r.Std.Err, nil))
	people, token, err := withOperator(o.people, log)
	if err != nil {
		return err
	}
	server := approval.Server{Address: o.listen, Grace: time.Second, Options: approval.Options{Log: log}} // streams of open pages do not end
	var origins []string
	if o.linkBase != "" {
		base, err := url.Parse(o.linkBase)
		if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
			return console.Usagef("--link-base is %q: it must be an address such as https://desk.example.com", o.linkBase)
		}
		origins = []string{base.Scheme + "://" + base.Host}
	}
	pages := web.New(web.Options{Store: k.Direct, Token: token, People: people, Origins: origins, Log: log})
	server.Handler = api.Guard(pages, origins)
	listener, err := server.Listen(ctx)
	if err != nil {
		return console.Usage(err)
	}
	own := "http://" + listener.Addr().String()
	links := approval.Links(lo.CoalesceOrEmpty(o.linkBase, own))
	fmt.Fprintln(r.Std.Out, own+web.SignInPath(pages.NewCode()))
	announcer := approval.Announcer{Store: k.Direct, Log: log}
	if o.webhook != "" {
		announcer.Notify = append(announcer.Notify, approval.Webhook{URL: o.webhook, Links: links})
	}
	if o.notify != "" {
		announcer.Notify = append(announcer.Notify, approval.Command{Args: strings.Fields(o.notify), Links: links})
	}
	ctx, cancel := context.WithCancel(ctx)
	go logPeople(ctx, people)
	go durable.MeasureApprovals(ctx, k.Direct, nil, func(err error) { log.ErrorContext(ctx, "measuring what waits failed", "error", err) })
	announced := make(chan error, 1)
	go func() {
		if len(announcer.Notify) == 0 {
			announced <- nil
			return
		}
		announced <- announcer.Run(ctx)
	}()
	err = server.Serve(ctx, listener)
	cancel()
	return errors.Join(err, <-announced)
}

// logPeople uses the people regularly, so that a mistake in a changed file is logged soon.
func logPeople(ctx context.Context, people *approval.People) {
	for ctx.Err() == nil {
		people.All()
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// withOperator returns the people of a file, as it is at any time, with a new token for the user of the operating system.
func withOperator(path string, log *slog.Logger) (*approval.People, string, error) {
	name := console.IdentityName()
	if name == "" {
		return nil, "", console.Usagef("the user of the operating system is unknown: the inbox needs one")
	}
	token, sum := approval.NewToken()
	people, err := approval.OpenPeople(path, approval.PeopleOptions{Also: []approval.Person{{Name: name, Token: sum}}, Log: log})
	if err != nil {
		return nil, "", console.Usage(err)
	}
	return people, token, nil
}

func (r *approvals) newPersonToken() *cobra.Command {
	var person approval.Person
	var expires string
	c := &cobra.Command{
		Use:     "token NAME",
		Short:   "Make a token for a person: print it once, and the entry for the file of people",
		Example: "  grapnel approvals token ann --role lead --expires 90d",
		Args:    console.Takes(1, 1, "needs the name of one person"),
		RunE: func(_ *cobra.Command, args []string) error {
			token, sum := approval.NewToken()
			person.Name, person.Token = args[0], sum
			if expires != "" {
				at, err := console.InstantOf("--expires", expires, time.Now(), 1)
				if err != nil {
					return console.Usage(err)
				}
				person.Expires.Time = at.UTC().Truncate(time.Second)
			}
			if _, err := approval.NewPeople(person); err != nil {
				return console.Usage(err)
			}
			entry, err := yamlfile.Encode("people.yaml", approval.PeopleFile{People: []approval.Person{person}})
			if err != nil {
				return fmt.Errorf("writing the entry: %w", err)
			}
			fmt.Fprintf(r.Std.Err, "The token of %s, which is not shown again. Below it is the entry for the file of people.\n", person.Name)
			fmt.Fprintf(r.Std.Out, "%s\n", token)
			fmt.Fprintf(r.Std.Out, "%s", entry)
			return nil
		},
	}
	c.Flags().StringArrayVar(&person.Roles, "role", nil, "a `role` of the person (may be repeated)")
	c.Flags().StringVar(&expires, "expires", "", "when the token expires: a duration such as 90d, or an RFC 3339 `time`")
	return c
}
