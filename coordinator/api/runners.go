package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/coordinator"
	"github.com/grapnel-go/grapnel/coordinator/wire"
	"github.com/grapnel-go/grapnel/durable"
)

// runner returns the runner that sends a request: the name of its token, and the name that it gives itself.
func (a *api) runner(ctx context.Context, name string) coordinator.RemoteRunner {
	return a.RemoteRunner(identityOf(ctx).Name + "/" + name)
}

// heldInput is a runner's request about a run that it holds. Huma sets only fields of the struct itself and of exported ones.
type heldInput[B any] struct {
	Runner string      `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
	ID     agent.RunID `path:"id"`
	Body   B
}

// addReport adds an operation in which a runner says something about a run that it has.
func addReport[B any](
	a *api, name, id, summary string, do func(r coordinator.RemoteRunner, ctx context.Context, run agent.RunID, in B) error,
	change ...func(o *huma.Operation),
) {
	addQuiet(a, route(http.MethodPost, "/runner/runs/{id}/"+name, id, summary, wire.RunnerRole, change...),
		func(ctx context.Context, in *heldInput[B]) error {
			return do(a.runner(ctx, in.Runner), ctx, in.ID, in.Body)
		})
}

func (a *api) addRunners() {
	type claimInput struct {
		Runner string `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
		wire.ClaimRequest
	}
	add(a, route(http.MethodGet, "/runner/runs", "claim-runs", "Wait for signals and for runs to execute", wire.RunnerRole),
		func(ctx context.Context, in *claimInput) (wire.Claim, error) {
			a.record(ctx, "")
			defer durable.TakeCompanion(ctx) // without a claim there is nothing to record
			return a.runner(ctx, in.Runner).Claim(ctx, in.ClaimRequest)
		})

	type claimedInput struct {
		Runner string      `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
		ID     agent.RunID `path:"id"`
	}
	add(a, route(http.MethodGet, "/runner/runs/{id}", "get-claimed-run", "Read a run that the runner has", wire.RunnerRole),
		func(ctx context.Context, in *claimedInput) (wire.ClaimedRun, error) {
			return a.runner(ctx, in.Runner).Run(ctx, in.ID)
		})

	type blueprintInput struct {
		Runner  string `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
		Name    string `path:"name"`
		Version int64  `query:"version" minimum:"1" required:"true"`
	}
	add(a, route(http.MethodGet, "/runner/blueprints/{name}", "get-claimed-blueprint", "Read the blueprint of a run", wire.RunnerRole),
		func(ctx context.Context, in *blueprintInput) (wire.Stored, error) {
			return a.runner(ctx, in.Runner).Blueprint(ctx, in.Name, in.Version)
		})

	add(a, route(http.MethodGet, "/runner/deny-tools", "get-deny-tools", "Read the switch that denies every tool", wire.RunnerRole),
		func(ctx context.Context, _ *struct{}) (durable.Switch, error) { return a.store.DenyTools(ctx) })

	add(a, route(http.MethodGet, "/runner/waivers", "get-waivers", "Read the standing answers in force", wire.RunnerRole),
		func(ctx context.Context, _ *struct{}) (wire.Waivers, error) {
			all, err := a.store.Waivers(ctx, false)
			return wire.Waivers{Waivers: listOf(all)}, err
		})

	type journalInput struct {
		Runner string      `header:"Grapnel-Runner" required:"true" maxLength:"200" pattern:"^[A-Za-z0-9._/-]+$" doc:"The name of the runner."`
		ID     agent.RunID `path:"id"`
		After  int64       `query:"after" minimum:"0"`
	}
	add(a, route(http.MethodGet, "/runner/runs/{id}/journal", "read-journal", "Read the journal, the input and the waits of a run", wire.RunnerRole),
		func(ctx context.Context, in *journalInput) (wire.Journal, error) {
			return a.runner(ctx, in.Runner).Journal(ctx, in.ID, in.After)
		})

	addReport(a, "journal", "write-journal", "Write to the journal of a run",
		func(r coordinator.RemoteRunner, ctx context.Context, run agent.RunID, in wire.JournalCommit) error {
			if u := in.Update; u != nil && u.Status != "" && u.Status != durable.StatusRunning { // it parks or ends
				a.record(ctx, string(u.Status))
			}
			return r.WriteJournal(ctx, run, in)
		}, withLargeBody, withOwnAudit)

	add(a, route(http.MethodPost, "/runner/runs/{id}/renew", "renew-lease", "Keep a run, and receive its signals", wire.RunnerRole, withoutAudit),
		func(ctx context.Context, in *heldInput[wire.Renewal]) (wire.Renewed, error) {
			return a.runner(ctx, in.Runner).Renew(ctx, in.ID, in.Body)
		})

	addReport(a, "release", "release-run", "Give a run back", coordinator.RemoteRunner.Release)
	addReport(a, "park", "park-run", "Give a run back until people have answered", coordinator.RemoteRunner.Park)
	addReport(a, "events", "report-events", "Report events of a run", coordinator.RemoteRunner.AddEvents, withoutAudit)
	addReport(a, "started", "report-started", "Report that the program of a run starts",
		func(r coordinator.RemoteRunner, ctx context.Context, run agent.RunID, in wire.Report) error {
			return r.Start(ctx, run, in.Epoch)
		})
	for status, summary := range map[wire.Status]string{
		wire.Completed: "Report the result of a run", wire.Failed: "Report that a run has failed", wire.Stopped: "Report that a run was stopped",
	} {
		addReport(a, string(status), "report-"+string(status), summary,
			func(r coordinator.RemoteRunner, ctx context.Context, run agent.RunID, in wire.Report) error {
				return r.Report(ctx, run, status, in)
			})
	}
}
