package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/agent"
	"github.com/grapnel-go/grapnel/durable"
	"github.com/grapnel-go/grapnel/durable/command"
	"github.com/grapnel-go/grapnel/durable/memory"
)

func openStore(t *testing.T) durable.Store {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

// shell returns a command that runs a script.
func shell(script string) command.Command {
	return command.Command{Argv: []string{"sh", "-c", script}, Env: map[string]string{"PATH": os.Getenv("PATH")}}
}

// worker returns a worker for one command named "it".
func worker(t *testing.T, store durable.Store, c command.Command, o durable.WorkerOptions) *durable.Worker {
	t.Helper()
	runner, err := command.Runner(durable.Keep(store, durable.Options{}), map[string]command.Command{"it": c})
	require.NoError(t, err)
	o.Runners = map[durable.Kind]durable.Runner{durable.KindCommand: runner}
	w, err := durable.NewWorker(store, o)
	require.NoError(t, err)
	return w
}

func submit(t *testing.T, store durable.Store, params any) durable.Run {
	t.Helper()
	job, err := command.Job("it", params)
	require.NoError(t, err)
	runs, err := store.Submit(t.Context(), job)
	require.NoError(t, err)
	return runs[0]
}

// outcome returns a run and its result.
func outcome(t *testing.T, store durable.Store, id agent.RunID) (durable.Run, durable.Result) {
	t.Helper()
	run, err := store.Run(t.Context(), id)
	require.NoError(t, err)
	result, err := durable.ResultOf(t.Context(), store, id)
	require.NoError(t, err)
	return run, result
}

func TestCommands(t *testing.T) {
	t.Setenv("SECRET_OF_THE_WORKER", "hunter2")
	for name, tc := range map[string]struct {
		command command.Command
		params  any
		status  durable.Status
		reason  agent.StopReason
		want    durable.Result
		error   string
	}{
		"text": {
			command: shell("echo hello"), status: durable.StatusCompleted, reason: agent.StopCompleted,
			want: durable.Result{Text: "hello\n", ExitCode: new(0)},
		},
		"parameters and JSON": {
			command: shell("cat"), params: map[string]int{"n": 3}, status: durable.StatusCompleted, reason: agent.StopCompleted,
			want: durable.Result{Data: json.RawMessage(`{"n":3}`), ExitCode: new(0)},
		},
		"no parameters": {
			command: shell("cat"), status: durable.StatusCompleted, reason: agent.StopCompleted,
			want: durable.Result{Data: json.RawMessage(`{}`), ExitCode: new(0)},
		},
		"only the declared environment": {
			command: command.Command{Argv: []string{"env"}, Env: map[string]string{"COLOUR": "red"}}, status: durable.StatusCompleted, reason: agent.StopCompleted,
			want: durable.Result{Text: "COLOUR=red\nGRAPNEL_IDEMPOTENCY_KEY=run-1/command\nGRAPNEL_RUN=run-1\n", ExitCode: new(0)},
		},
		"exit code": {
			command: shell("echo partly; echo 'no such month' >&2; exit 3"), status: durable.StatusFailed, reason: agent.StopError,
			want: durable.Result{Text: "partly\n", ExitCode: new(3), Error: "the command exited with code 3: no such month"},
		},
		"signal": {
			command: shell("kill -9 $$"), status: durable.StatusFailed, reason: agent.StopError, want: durable.Result{Error: "the command was ended by SIGKILL"},
		},
		"too long": {
			command: func() command.Command {
				c := shell("sleep 600")
				c.Timeout, c.Grace = 50*time.Millisecond, time.Millisecond
				return c
			}(),
			status: durable.StatusFailed, reason: agent.StopTimeLimit, want: durable.Result{Error: "the command ran longer than 50ms"},
		},
		"too much": {
			command: func() command.Command {
				c := shell("printf 123456789")
				c.MaxOutput = 4
				return c
			}(),
			status: durable.StatusCompleted, reason: agent.StopCompleted, want: durable.Result{Text: "1234", Cut: true, ExitCode: new(0)},
		},
		"invalid parameters": {
			command: func() command.Command {
				c := shell("echo ran")
				c.Check = func(json.RawMessage) error { return errors.New("month: missing") }
				return c
			}(),
			status: durable.StatusFailed, reason: agent.StopError, want: durable.Result{Error: "the parameters are invalid: month: missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			job, err := command.Job("it", tc.params)
			require.NoError(t, err)
			job.ID = "run-1"
			_, err = store.Submit(t.Context(), job)
			require.NoError(t, err)
			require.NoError(t, worker(t, store, tc.command, durable.WorkerOptions{}).ExecuteReady(t.Context()))
			run, result := outcome(t, store, "run-1")
			assert.Equal(t, tc.status, run.Status)
			assert.Equal(t, tc.reason, run.Reason)
			assert.Equal(t, tc.want, result)
			assert.Empty(t, run.Owner)
		})
	}
}

// A command that a dead worker has started is in doubt: it runs again only if its definition allows it.
func TestDoubt(t *testing.T) {
	for name, tc := range map[string]struct {
		repeat bool
		status durable.Status
		text   string
		error  string
	}{
		"not repeated": {false, durable.StatusFailed, "", "it is unknown what the command did"},
		"repeated":     {true, durable.StatusCompleted, "again\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			run := submit(t, store, nil)
			dead := durable.Keep(store, durable.Options{Owner: "dead"})
			claimed, err := store.Claim(t.Context(), "dead", time.Nanosecond, 1, run.Needs().Key())
			require.NoError(t, err)
			require.Len(t, claimed, 1)
			_, x := dead.Open(t.Context(), claimed[0])
			require.NoError(t, x.Commit(t.Context(), durable.Commit{Entries: []durable.Entry{{Kind: durable.EntryCall}}}))
			x.Close()

			c := shell("echo again")
			c.Repeat = tc.repeat
			require.NoError(t, worker(t, store, c, durable.WorkerOptions{}).ExecuteReady(t.Context()))
			about, result := outcome(t, store, run.ID)
			assert.Equal(t, tc.status, about.Status)
			assert.Equal(t, tc.text, result.Text)
			assert.Contains(t, result.Error, tc.error)
			assert.Equal(t, 2, about.Attempts)
		})
	}
}

// The time limit of a job stops its command, if it is stricter than that of the command. What an earlier attempt used
// counts.
func TestJobTime(t *testing.T) {
	const text = "the time limit of the job, 50ms, has passed"
	for name, tc := range map[string]struct {
		script  string
		timeout time.Duration
		limit   time.Duration
		before  time.Duration // since an attempt of a worker that has died
		status  durable.Status
		error   string
	}{
		"stricter":           {"sleep 600", time.Hour, 50 * time.Millisecond, 0, durable.StatusStopped, text},
		"not stricter":       {"sleep 600", 50 * time.Millisecond, time.Hour, 0, durable.StatusFailed, "the command ran longer than 50ms"},
		"enough":             {"echo > ran", time.Hour, time.Hour, time.Minute, durable.StatusCompleted, ""},
		"used before":        {"echo > ran", time.Hour, time.Minute, time.Hour, durable.StatusStopped, "the time limit of the job, 1m0s, has passed"},
		"nothing is allowed": {"echo > ran", time.Hour, -1, 0, durable.StatusStopped, "the time limit of the job, 0s, has passed"},
	} {
		t.Run(name, func(t *testing.T) {
			store, dir := openStore(t), t.TempDir()
			job, err := command.Job("it", nil)
			require.NoError(t, err)
			job.Limits = agent.Limits{Time: tc.limit, Steps: 1}
			runs, err := store.Submit(t.Context(), job)
			require.NoError(t, err)
			if tc.before != 0 {
				claimed, err := store.Claim(t.Context(), "dead", time.Nanosecond, 1, runs[0].Needs().Key())
				require.NoError(t, err)
				begun := durable.Entry{Seq: 1, Kind: durable.EntryCall, At: time.Now().Add(-tc.before)}
				require.NoError(t, store.Commit(t.Context(), claimed[0].Lease(), durable.Commit{Entries: []durable.Entry{begun}}))
			}
			c := shell(tc.script)
			c.Dir, c.Timeout, c.Grace, c.Repeat = dir, tc.timeout, time.Millisecond, true
			require.NoError(t, worker(t, store, c, durable.WorkerOptions{}).ExecuteReady(t.Context()))
			about, result := outcome(t, store, runs[0].ID)
			assert.Equal(t, tc.status, about.Status)
			assert.Equal(t, tc.error, result.Error)
			if tc.status != durable.StatusCompleted {
				assert.Equal(t, agent.StopTimeLimit, about.Reason)
				assert.NoFileExists(t, filepath.Join(dir, "ran"))
			}
		})
	}
}

// waitFor waits until a file exists.
func waitFor(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, time.Minute, 5*time.Millisecond)
}

// A cancellation ends the program of a run.
func TestCancelled(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	run := submit(t, store, nil)
	c := shell("echo > begun; sleep 600")
	c.Dir, c.Grace = dir, time.Millisecond
	done := make(chan error, 1)
	w := worker(t, store, c, durable.WorkerOptions{})
	go func() { done <- w.ExecuteReady(context.WithoutCancel(t.Context())) }()
	waitFor(t, filepath.Join(dir, "begun"))
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalCancel, Text: "not needed"}))
	require.NoError(t, <-done)
	about, result := outcome(t, store, run.ID)
	assert.Equal(t, durable.StatusCancelled, about.Status)
	assert.Equal(t, "cancelled: not needed", result.Error)
}

// A run that is cancelled before it starts runs no program.
func TestCancelledBefore(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	run := submit(t, store, nil)
	require.NoError(t, store.Signal(t.Context(), run.ID, durable.Signal{Kind: durable.SignalCancel}))
	c := shell("echo > begun")
	c.Dir = dir
	require.NoError(t, worker(t, store, c, durable.WorkerOptions{}).ExecuteReady(t.Context()))
	about, _ := outcome(t, store, run.ID)
	assert.Equal(t, durable.StatusCancelled, about.Status)
	assert.NoFileExists(t, filepath.Join(dir, "begun"))
}

// A worker that stops lets a program end in its grace, and ends it otherwise.
func TestStoppedWorker(t *testing.T) {
	for name, tc := range map[string]struct {
		grace  time.Duration
		script string
		repeat bool
		status durable.Status
	}{
		"in time":             {time.Minute, "echo > begun; until test -e free; do sleep 0.01; done", false, durable.StatusCompleted},
		"too late":            {time.Millisecond, "echo > begun; sleep 600", false, durable.StatusFailed},
		"too late, to repeat": {time.Millisecond, "echo > begun; sleep 600", true, durable.StatusReady},
	} {
		t.Run(name, func(t *testing.T) {
			store, dir := openStore(t), t.TempDir()
			run := submit(t, store, nil)
			c := shell(tc.script)
			c.Dir, c.Grace, c.Repeat = dir, time.Millisecond, tc.repeat
			w := worker(t, store, c, durable.WorkerOptions{Grace: tc.grace})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			waitFor(t, filepath.Join(dir, "begun"))
			stop()
			require.Eventually(t, func() bool { return w.Health().State != durable.WorkerRunning }, time.Minute, time.Millisecond)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "free"), nil, 0o600))
			require.NoError(t, <-done)
			about, _ := outcome(t, store, run.ID)
			assert.Equal(t, tc.status, about.Status)
		})
	}
}

func TestRunnerErrors(t *testing.T) {
	k := durable.Keep(openStore(t), durable.Options{})
	_, err := command.Runner(k, map[string]command.Command{"it": {}})
	require.ErrorContains(t, err, `command "it": Argv is empty`)
	_, err = command.Runner(k, map[string]command.Command{"it": {Argv: []string{"no-such-program-anywhere"}}})
	require.ErrorContains(t, err, `command "it"`)
	_, err = command.Job("it", func() {})
	require.ErrorContains(t, err, `command "it"`)
}
