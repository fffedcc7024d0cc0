package serve

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/runs"
	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/storage"
	"github.com/grapnel-go/grapnel/coordinator/wire"
)

// NewSessions returns the command sessions.
func NewSessions(std console.Streams) *cobra.Command {
	r := &services{storage.Command{Std: std}}
	return r.AddFlags(console.Group(&cobra.Command{
		Use:   "sessions",
		Short: "List, show and resume the sessions of a coordinator",
		Long: `A session is a series of runs in one conversation with an agent (docs/coordinator.md). These commands work on the sessions of a
coordinator ("grapnel serve"), at --server or in its store.`,
		Example: `  grapnel sessions list --server http://127.0.0.1:8420
  grapnel sessions resume ses_… "And in June?" --wait --server http://127.0.0.1:8420`,
	}, r.newListSessions(), r.newShowSession(), r.newResumeSession()))
}

func (r *services) newListSessions() *cobra.Command {
	var asJSON bool
	var status, name, parent string
	var limit int
	c := &cobra.Command{
		Use:     "list",
		Short:   "List sessions, those with the newest runs first",
		Example: "  grapnel sessions list --status failed --server http://127.0.0.1:8420",
		Args:    console.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for key, value := range map[string]string{"status": status, "agent_name": name, "parent_session_id": parent} {
				if value != "" {
					query.Set(key, value)
				}
			}
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				list, err := k.Client.Sessions(c.Context(), query)
				if err != nil {
					return err
				}
				if asJSON {
					return console.WriteJSON(r.Std.Out, list.Sessions)
				}
				table := console.NewTable(r.Std.Out, "SESSION", "BLUEPRINT", "TYPE", "STATUS", "BEGAN", "UPDATED", "PARENT")
				for _, s := range list.Sessions {
					table.Row(s.SessionID, s.AgentName, s.Type, s.Status, s.CreatedAt, s.UpdatedAt, s.ParentSessionID)
				}
				if list.Next != "" {
					fmt.Fprintf(r.Std.Err, "grapnel: These are the newest %d: --limit shows more.\n", limit)
				}
				return table.Flush()
			})
		},
	}
	f := c.Flags()
	f.StringVar(&status, "status", "", "only sessions whose last run is pending, hooking, running, waiting, completed, failed or stopped")
	f.StringVar(&name, "blueprint", "", "only sessions of the blueprint with this `name`")
	f.StringVar(&parent, "parent-session", "", "only sessions that the one with this `ID` has started")
	f.IntVar(&limit, "limit", 100, "how many to list at most, up to 1000")
	f.BoolVar(&asJSON, "json", false, "write them as a JSON array")
	return c
}

// noSession is the mistake of a command that names an unknown session.
const noSession = `no session %q: "grapnel sessions list" lists them`

var someSession = console.Takes(1, console.Unlimited, `needs the ID of a session: "grapnel sessions list" lists them`)

func (r *services) newShowSession() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the runs of a session, and those that it has started",
		Example: "  grapnel sessions show ses_… --server http://127.0.0.1:8420",
		Args:    someSession,
		RunE: func(c *cobra.Command, args []string) error {
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				s, err := k.Client.Session(c.Context(), agent.SessionID(args[0]))
				if err != nil {
					return storage.Missing(err, noSession, args[0])
				}
				if asJSON {
					return console.WriteJSON(r.Std.Out, s)
				}
				table := console.NewTable(r.Std.Out, "RUN", "BLUEPRINT", "STATUS", "CREATED", "SESSION")
				for _, run := range append(s.Runs, s.Children...) {
					table.Row(run.RunID, run.AgentName, run.Status, run.CreatedAt, run.SessionID)
				}
				return table.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write it as a JSON object")
	return c
}

func (r *services) newResumeSession() *cobra.Command {
	var in wire.ResumeRequest
	var timeout time.Duration
	var o runs.Reporting
	c := &cobra.Command{
		Use:   "resume ID [PROMPT | -]",
		Short: "Submit the next run of a session, in which its agent continues the conversation",
		Long: `Submit the next run of a session of an agent. While another run of it has not ended, the new one waits for that. The
prompt is the arguments, or standard input if they end in "-".

` + runs.SubmitLong + console.ExitHelp,
		Example: `  grapnel sessions resume ses_… "And in June?" --wait --server http://127.0.0.1:8420`,
		Args:    someSession,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if in.Prompt, err = console.PromptOf(args[1:], r.Std.In); err == nil && timeout < 0 {
				err = errors.New("--timeout must be above zero")
			}
			if err != nil {
				return console.Usage(err)
			}
			in.TimeoutSeconds = runs.RoundedSeconds(timeout)
			return r.WithCoordinator(c.Context(), func(k *storage.Store) error {
				submitted, err := k.Client.Resume(c.Context(), agent.SessionID(args[0]), in)
				if err != nil {
					return storage.Missing(err, noSession, args[0])
				}
				return o.Report(c.Context(), r.Std, k, submitted.RunID, submitted)
			})
		},
	}
	f := c.Flags()
	f.DurationVar(&timeout, "timeout", 0, "stop the run after this total `time`")
	f.StringVar(&in.IdempotencyKey, "idempotency-key", "", "identifies the run: submitting again with the same `key` for the session returns the first run")
	o.AddFlags(c)
	return c
}
