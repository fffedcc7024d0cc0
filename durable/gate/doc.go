// Package gate watches the gates that durable runs wait for, and serves the URLs where callbacks are answered.
//
// A gate by callback, file or command at PreToolUse of a durable run is a question of the call if action.Host.Parks is
// set: the run waits in its store and holds no process. A Watcher then looks for what the gate waits for, in any process
// that has the store:
//
//	watcher, err := gate.NewWatcher(store, gate.Options{Callbacks: "https://desk.example.com"})
//	worker, err := durable.NewWorker(store, durable.WorkerOptions{Runners: runners, Watch: watcher.Run})
//	http.Handle(gate.Path, gate.Handler(store, gate.HandlerOptions{Origins: []string{"https://desk.example.com"}}))
//
// # What is watched, and by whom
//
// Each gate belongs to one watcher at a time, by a claim in the store that expires. Files and commands are checked on the
// host where the run asked for them, at the interval of the gate; at most Options.Parallel checks run at once, and a gate
// holds no goroutine between two checks. When a claim is lost or the watcher stops, its commands are ended, with all of
// their processes.
//
// For a callback, the watcher makes a token, of which the store has only the hash, and sends the webhook of the gate with
// the URL. It sends it again, with the same idempotency key, if it cannot know whether it was sent: after a restart of its
// process, and when it takes the gate over from another watcher. With the same Options.Key in all processes, the URL is the
// same, too. Otherwise it is another one, and every URL of a gate is valid until the gate is decided, so that a receiver may keep
// the first and ignore the others. A URL that was used gets 409 until its run is deleted, one that never was 404.
//
// # Answers
//
// An answer is recorded with durable.Decide: approve, or reject, which denies the call and lets the run continue. A gate
// that fails, such as a webhook that is refused, a command with another exit code or an answer that cannot be read, denies
// the call, or does what on_failure of its rule says. The deadline of a gate is that of its wait: it passes without a
// watcher, and a restart does not change it.
//
// # Trust
//
// A watcher runs the commands that the runs of the store name. Who can write to the store can run commands as the watcher,
// unless the store is encrypted: then it has to know the key, too.
package gate
